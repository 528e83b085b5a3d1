"""The parts of a parsed shell text: words, redirections and simple commands. Nothing here runs anything.

The hook path loads these modules, so they import the standard library alone and define no dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Why a text is not read for certain
UNCLOSED_QUOTE = "a quote is not closed"
UNCLOSED_GROUP = "a parenthesis, brace or keyword is not closed"
TOO_DEEP = "the nesting is too deep"
MISPLACED = "an operator is out of place"

# Kinds of the pieces of a word
PLAIN, QUOTED = "plain", "quoted"
VARIABLE, QUOTED_VARIABLE = "variable", "quoted variable"
EXPANSION = "expansion"

NOTHING = range(0)
_PATTERN_SIGNS = frozenset("*?[{~")
_NAME_SIGNS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
_ESCAPES = {
    **dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True)),
    **{c: c for c in "\\'\"?"},
}
_CODES = {"x": (2, 16), "u": (4, 16), "U": (8, 16), **dict.fromkeys("01234567", (3, 8))}
_DIGITS = {8: frozenset("01234567"), 16: frozenset("0123456789abcdefABCDEF")}


class ShellWord:
    """One word after quote removal.

    `pieces` are (kind, text) pairs. The text of a variable is its name; that of any other expansion is its source,
    with `$()` for a command substitution and `<()` for a process substitution.
    """

    __slots__ = ("pieces", "text")

    def __init__(self, pieces: Sequence[tuple[str, str]]) -> None:
        self.pieces = _joined(pieces)
        self.text = "".join(
            f"${text}" if kind in (VARIABLE, QUOTED_VARIABLE) else text for kind, text in self.pieces
        )

    @property
    def bare(self) -> str:
        """The text of a word without quotes and expansions, as keywords are; empty for any other word."""
        return self.pieces[0][1] if len(self.pieces) == 1 and self.pieces[0][0] == PLAIN else ""

    @property
    def expands(self) -> bool:
        """The shell puts something else in the place of a part of the word."""
        return any(kind not in (PLAIN, QUOTED) for kind, _ in self.pieces)

    @property
    def quoted(self) -> bool:
        """A part of the word is quoted."""
        return any(kind in (QUOTED, QUOTED_VARIABLE) for kind, _ in self.pieces)

    @property
    def pattern(self) -> bool:
        """The word may stand for file names, for a list in braces or for a home folder."""
        return any(kind == PLAIN and not _PATTERN_SIGNS.isdisjoint(text) for kind, text in self.pieces)

    def __repr__(self) -> str:
        return f"Word({self.text!r})"


class Redirection:
    """One redirection. `body` is the here-document or here-string that it feeds, once it is read."""

    __slots__ = ("body", "descriptor", "operator", "target")

    def __init__(self, descriptor: str, operator: str, target: ShellWord) -> None:
        self.descriptor = descriptor
        self.operator = operator
        self.target = target
        self.body = target if operator == "<<<" else None

    @property
    def writes(self) -> bool:
        """The shell opens the target for writing."""
        return ">" in self.operator


class ShellCommand:
    """One simple command.

    `piped_from` and `group` are ranges of indices into `Script.commands`: those whose output it reads, and those of
    the compound command whose redirections it holds. `subshell` names the subshell that runs it, as a path from the
    main one, `()`. A loop over words is a command that assigns each of them.
    """

    __slots__ = ("assignments", "group", "piped_from", "redirections", "subshell", "words")

    def __init__(self, subshell: tuple[int, ...]) -> None:
        self.words: list[ShellWord] = []
        self.assignments: list[tuple[str, ShellWord]] = []
        self.redirections: list[Redirection] = []
        self.piped_from = NOTHING
        self.group = NOTHING
        self.subshell = subshell

    @property
    def texts(self) -> tuple[str, ...]:
        """The words as texts."""
        return tuple(word.text for word in self.words)

    def __repr__(self) -> str:
        return f"ShellCommand{self.texts!r}"


class Script:
    """The commands of a shell text, in about the order in which the shell begins them.

    `functions` are the names that it defines, `operators` the control operators and keywords in it. `uncertain` says
    why the text is not read for certain; empty where it is.
    """

    __slots__ = ("commands", "functions", "operators", "retries", "subshells", "uncertain")

    def __init__(self) -> None:
        self.commands: list[ShellCommand] = []
        self.functions: set[str] = set()
        self.operators: set[str] = set()
        self.uncertain = ""
        self.subshells = 0
        self.retries = 0


def name_end(text: str, start: int) -> int:
    """Return where the variable name that begins at `start` ends."""
    end = start
    while end < len(text) and text[end] in _NAME_SIGNS and not (end == start and text[end].isdigit()):
        end += 1
    return end


def decode_escapes(text: str) -> str:
    """Return what the inside of `$'…'` stands for; a zero byte ends it."""
    found: list[str] = []
    at = 0
    while (slash := text.find("\\", at)) >= 0:
        found.append(text[at:slash])
        sign = text[slash + 1 : slash + 2]
        at = slash + 2
        if sign in _CODES:
            most, base = _CODES[sign]
            start = at if base == 16 else at - 1
            at = start
            while at < min(len(text), start + most) and text[at] in _DIGITS[base]:
                at += 1
            code = int(text[start:at], base) if at > start else -1
            found.append("\\" + sign if code < 0 else chr(code) if code < 0x110000 else "\ufffd")
        elif sign == "c":
            found.append("\x1f")  # a control character, whichever it is
            at += 1
        else:
            found.append(_ESCAPES.get(sign, "\\" + sign))
    found.append(text[at:])
    return "".join(found).partition("\0")[0]


def _joined(pieces: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the pieces with neighbouring texts of one kind joined."""
    if len(pieces) < 2:
        return tuple(pieces)
    joined: list[tuple[str, str]] = []
    run: list[str] = []
    for i, (kind, text) in enumerate(pieces):
        run.append(text)
        if kind not in (PLAIN, QUOTED) or i + 1 == len(pieces) or pieces[i + 1][0] != kind:
            joined.append((kind, "".join(run)))
            run = []
    return tuple(joined)


def is_array_start(pieces: list[tuple[str, str]]) -> bool:
    """The word so far is `name=`, `name+=` or `name[…]=`."""
    kind, text = pieces[0] if len(pieces) == 1 else (QUOTED, "")
    return kind == PLAIN and text.endswith("=") and name_end(text, 0) > 0
