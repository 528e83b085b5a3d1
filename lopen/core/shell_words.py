"""A reader of the words of a shell text: quoting, expansions, arrays, and where the commands nested in them are."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lopen.core.shell_values import (
    EXPANSION,
    MISPLACED,
    PLAIN,
    QUOTED,
    QUOTED_VARIABLE,
    TOO_DEEP,
    UNCLOSED_GROUP,
    UNCLOSED_QUOTE,
    VARIABLE,
    Script,
    ShellWord,
    decode_escapes,
    is_array_start,
    name_end,
)

DEEPEST = 40
MOST_RETRIES = 50
_STOPS = frozenset(" \t\n;|&()<>\\'\"$`")
_QUOTED_STOPS = {'"': frozenset('"\\$`'), "": frozenset("\\$`")}
_BACKQUOTED_STOPS = frozenset("`\\")
_SPECIAL_PARAMETERS = frozenset("@*#?$!-0123456789")
_PATTERN_OPERATORS = ("#", "%", "/", "^", ",")


class WordReader(ABC):
    """A cursor over a shell text that reads words. What it finds goes to `script`."""

    def __init__(self, text: str, script: Script, depth: int, subshell: tuple[int, ...]) -> None:
        self.text = text
        self.at = 0
        self.script = script
        self.depth = depth
        self.subshell = subshell

    @abstractmethod
    def nested(self, closing: str) -> None:
        """Read commands up to `closing` and pass it."""

    @abstractmethod
    def nested_text(self, text: str) -> None:
        """Read the commands of a text that stood between backquotes."""

    @abstractmethod
    def newline(self) -> None:
        """Pass a newline outside quotes, and the here-documents that begin behind it."""

    def doubt(self, reason: str) -> None:
        """Note that the text is not read for certain."""
        self.script.uncertain = self.script.uncertain or reason

    def give_up(self, reason: str) -> None:
        """Note that the rest of the text cannot be read for certain, and go to its end."""
        self.doubt(reason)
        self.at = len(self.text)

    def comment(self) -> None:
        """Pass a comment, up to the end of its line."""
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def read_word(self, *, assignable: bool = False) -> ShellWord:
        """Read the word at the cursor; where it is `assignable`, `name[…]=` is a part of it."""
        pieces: list[tuple[str, str]] = []
        if assignable:
            self._subscript(pieces)
        while self.at < len(self.text):
            c = self.text[self.at]
            if c not in _STOPS:
                pieces.append((PLAIN, self._run(_STOPS)))
            elif c == "\\":
                self._backslash(pieces)
            elif c == "'":
                pieces.append((QUOTED, self._single_quoted()))
            elif c == '"':
                self.at += 1
                pieces += self.quoted_text('"')
            elif c in "$`":
                pieces.append(self._expansion(quoted=False))
            elif c in "<>" and self._process_substitution():
                pieces.append((EXPANSION, c + "()"))
            elif c == "(" and is_array_start(pieces):
                self._array(pieces)
            else:
                break
        return ShellWord(pieces)

    def _run(self, stops: frozenset[str]) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at]

    def _backslash(self, pieces: list[tuple[str, str]]) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following != "\n":
            pieces.append((QUOTED, following or "\\"))
        self.at += 2

    def _single_quoted(self) -> str:
        start = self.at + 1
        end = self.text.find("'", start)
        if end < 0:
            self.give_up(UNCLOSED_QUOTE)
            return self.text[start:]
        self.at = end + 1
        return self.text[start:end]

    def _escaped_quoted(self) -> str:
        """Read `$'…'`, in which a backslash escapes as in C."""
        self.at += 2
        start = self.at
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        inner = self.text[start : self.at]
        if self.at >= len(self.text):
            self.give_up(UNCLOSED_QUOTE)
        self.at += 1
        return decode_escapes(inner)

    def quoted_text(self, closing: str) -> list[tuple[str, str]]:
        """Read to the closing double quote and pass it; without one, to the end: the body of a here-document."""
        pieces: list[tuple[str, str]] = [(QUOTED, "")]
        stops = _QUOTED_STOPS[closing]
        while self.at < len(self.text):
            c = self.text[self.at]
            if c not in stops:
                pieces.append((QUOTED, self._run(stops)))
            elif c == closing:
                self.at += 1
                return pieces
            elif c == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                escaped = following in stops or following == "\n"
                pieces.append((QUOTED, following.strip("\n") if escaped else c + following))
                self.at += 2
            else:
                pieces.append(self._expansion(quoted=True))
        if closing:
            self.give_up(UNCLOSED_QUOTE)
        return pieces

    def _expansion(self, *, quoted: bool) -> tuple[str, str]:
        """Read what begins with `$` or a backquote."""
        start = self.at
        following = self.text[start + 1 : start + 2]
        if self.text[start] == "`":
            self._backquoted(quoted=quoted)
            return EXPANSION, "$()"
        if following == "'" and not quoted:
            return QUOTED, self._escaped_quoted()
        if following == '"' and not quoted:  # a string to translate: the quote is read next
            self.at += 1
            return QUOTED, ""
        if following == "(":
            if not self.text.startswith("((", start + 1) or not self.arithmetic("$(("):
                self.at += 2
                self.nested(")")
            return EXPANSION, "$()"
        if following == "{":
            return self._braces(quoted=quoted)
        if following == "[":
            self.at += 2
            self._matched("[", "]")
            return EXPANSION, self.text[start : self.at]
        self.at = end = name_end(self.text, start + 1)
        if end > start + 1:
            return (QUOTED_VARIABLE if quoted else VARIABLE), self.text[start + 1 : end]
        if following in _SPECIAL_PARAMETERS:
            self.at += 1
            return EXPANSION, "$" + following
        return (QUOTED if quoted else PLAIN), "$"

    def _braces(self, *, quoted: bool) -> tuple[str, str]:
        """Read `${…}`; some shells run the commands of `${ …; }`."""
        start = self.at
        if self.text[start + 2 : start + 3] in (" ", "\t", "\n", "|"):
            self.at += 3
            self.nested("}")
            return EXPANSION, "$()"
        self.at = end = name_end(self.text, start + 2)
        name = self.text[start + 2 : end]
        single_quotes = not quoted or self.text[end : end + 1] in _PATTERN_OPERATORS
        self._matched("", "}", single_quotes=single_quotes)
        rest = self.text[end : self.at]
        if name and rest in ("}", "[@]}", "[*]}"):
            return (QUOTED_VARIABLE if quoted and rest == "}" else VARIABLE), name
        return EXPANSION, self.text[start : self.at]

    def _matched(self, opening: str, closing: str, *, single_quotes: bool = True) -> bool:
        """Pass the text up to `closing`, with nested pairs; False where it does not come."""
        level = 0
        self.depth += 1
        if self.depth > DEEPEST:
            self.give_up(TOO_DEEP)
        while self.at < len(self.text) and (level or self.text[self.at] != closing):
            c = self.text[self.at]
            if c == '"':
                self.at += 1
                self.quoted_text('"')
            elif c == "'" and single_quotes:
                self._single_quoted()
            elif c in "$`":
                self._expansion(quoted=not single_quotes)
            elif not (closing == "}" and c in "<>" and self._process_substitution()):
                level += (c == opening) - (c == closing)
                self.at += 2 if c == "\\" else 1
        self.depth -= 1
        if self.at >= len(self.text):
            self.give_up(UNCLOSED_GROUP)
            return False
        self.at += 1
        return True

    def arithmetic(self, opening: str) -> bool:
        """Read `((…))` with its `opening`; False, with nothing read, where it holds subshells instead."""
        start, commands, uncertain = self.at, len(self.script.commands), self.script.uncertain
        self.at += len(opening)
        if self._matched("(", ")") and self.text.startswith(")", self.at):
            self.at += 1
            return True
        del self.script.commands[commands:]
        self.script.uncertain = uncertain
        self.script.retries += 1
        if self.script.retries > MOST_RETRIES:
            self.give_up(TOO_DEEP)
            return True
        self.at = start
        return False

    def _process_substitution(self) -> bool:
        """Read `<(…)` or `>(…)`; False where there is none."""
        if not self.text.startswith("(", self.at + 1):
            return False
        self.at += 2
        self.nested(")")
        return True

    def _backquoted(self, *, quoted: bool) -> None:
        """Read a backquoted substitution; a backslash in it protects another backquote, `$` or backslash."""
        inner: list[str] = []
        escapable = '`$\\"' if quoted else "`$\\"
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "`":
            if self.text[self.at] == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                inner.append(following if following in escapable else "\\" + following)
                self.at += 2
            else:
                inner.append(self._run(_BACKQUOTED_STOPS))
        if self.at >= len(self.text):
            self.give_up(UNCLOSED_QUOTE)
        self.at += 1
        self.nested_text("".join(inner))

    def _subscript(self, pieces: list[tuple[str, str]]) -> None:
        """Read `name[…]`; separators in it end the command in some shells."""
        start, end = self.at, name_end(self.text, self.at)
        if end == start or self.text[end : end + 1] != "[":
            return
        self.at = end + 1
        self._matched("[", "]")
        if any(c in self.text[end : self.at] for c in ";|&\n"):
            self.doubt(MISPLACED)
        pieces.append((PLAIN, self.text[start : self.at]))

    def _array(self, pieces: list[tuple[str, str]]) -> None:
        """Read the elements of `name=(…)`; the word has a blank behind each."""
        self.at += 1
        self.depth += 1
        if self.depth > DEEPEST:
            self.give_up(TOO_DEEP)
        while self.at < len(self.text) and self.text[self.at] != ")":
            c = self.text[self.at]
            if c == "\n":
                self.newline()
            elif c == "#":
                self.comment()
            elif c in " \t":
                self.at += 1
            elif c in ";|&(" or (c in "<>" and not self.text.startswith("(", self.at + 1)):
                self.doubt(MISPLACED)
                self.at += 1
            else:
                pieces += [*self.read_word().pieces, (QUOTED, " ")]
        self.depth -= 1
        if self.at >= len(self.text):
            self.give_up(UNCLOSED_GROUP)
        self.at += 1
