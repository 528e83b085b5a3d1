"""The simple commands of a shell text, nested ones included, without running anything.

It reads what bash reads. Where it cannot tell, `Script.uncertain` says why. Time is linear in the text's length,
and nesting is bounded. `shell_values` has what it returns; the readers of words and of compound commands are in
`shell_words` and `shell_compounds`.
"""

from __future__ import annotations

from lopen.core.shell_compounds import CompoundReader, Level
from lopen.core.shell_values import (
    MISPLACED,
    PLAIN,
    QUOTED,
    TOO_DEEP,
    UNCLOSED_GROUP,
    Redirection,
    Script,
    ShellWord,
)
from lopen.core.shell_words import DEEPEST

_SEPARATORS = (";;&", ";;", ";&", "&&", "||", "|&", ";", "&", "|")
_REDIRECTIONS = ("&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">")


def parse(text: str) -> Script:
    """Return the commands of `text`. No text raises an error."""
    script = Script()
    _Reader(text, script, 0, ()).read_all()
    return script


class _Reader(CompoundReader):
    """One pass over a text; substitutions are read where they stand."""

    def read_all(self) -> None:
        """Read the whole text as commands."""
        while self.at < len(self.text):
            self._token()
        self._end_level()

    def nested(self, closing: str) -> None:
        outer, subshell = self.level, self.subshell
        self.depth += 1
        self.subshell = self._new_subshell()
        self.level = Level(closing, len(self.script.commands), outer.piped_from, self.subshell)
        if self.depth > DEEPEST:
            self.give_up(TOO_DEEP)
        closed = False
        while not closed and self.at < len(self.text):
            closed = self._token()
        if not closed:
            self.doubt(UNCLOSED_GROUP)
        self._end_level()
        self.level, self.subshell = outer, subshell
        self.depth -= 1

    def nested_text(self, text: str) -> None:
        if self.depth >= DEEPEST:
            self.doubt(TOO_DEEP)
            return
        inner = _Reader(text, self.script, self.depth + 1, self._new_subshell())
        inner.level.inherited = inner.level.piped_from = self.level.piped_from
        inner.read_all()

    def _new_subshell(self) -> tuple[int, ...]:
        self.script.subshells += 1
        return (*self.subshell, self.script.subshells)

    def _end_level(self) -> None:
        self.end_command()
        if self.level.groups or (self.level.heredocs and self.level.closing):
            self.doubt(UNCLOSED_GROUP)

    def _token(self) -> bool:
        """Read one token of a list of commands; True where it closes the list."""
        c = self.text[self.at]
        if c in " \t":
            self.at += 1
        elif c == "\\" and self.text.startswith("\n", self.at + 1):
            self.at += 2
        elif c == "#":
            self.comment()
        elif c == "\n":
            self._separate(c)
            self.newline()
        elif operator := self._redirection_operator():
            self._redirect("", operator)
        elif c in ";&|":
            operator = next(o for o in _SEPARATORS if self.text.startswith(o, self.at))
            self.at += len(operator)
            self._separate(operator)
        elif c == "(":
            self.open_parenthesis()
        elif c == ")":
            self.at += 1
            if self.level.closing == ")":
                return True
            self.doubt(MISPLACED)
            self._separate(c)
        else:
            return self._word()
        return False

    def _separate(self, operator: str) -> None:
        """End the command; `operator` says what the next one reads."""
        level = self.level
        self.end_command()
        self.script.operators.add(operator)
        end = len(self.script.commands)
        group = level.groups[-1] if level.groups else None
        if operator in ("|", "|&"):
            level.piped_from = range(level.start, end)
        else:
            level.piped_from = group.piped_from if group else level.inherited
        level.start = end
        if operator in (";;", ";&", ";;&") and group and group.keyword == "case":
            self.case_patterns()

    def _word(self) -> bool:
        """Read a word of a command, or a keyword; True where it closes the list."""
        command, start = self.level.command, self.at
        first = not command.words
        word = self.read_word(assignable=first)
        self.at += self.at == start
        if _is_descriptor(word.bare) and (operator := self._redirection_operator()):
            self._redirect(word.bare, operator)
        elif self.is_keyword(word.bare):
            return self.keyword(word.bare)
        elif first and (assignment := _assignment(word)):
            command.assignments.append(assignment)
        else:
            command.words.append(word)
            if first and word.bare == "[[":
                self.conditional()
        return False

    def _redirection_operator(self) -> str:
        """The redirection operator at the cursor; empty where there is none, or a process substitution."""
        if self.text[self.at : self.at + 1] not in ("<", ">", "&") or self.text.startswith(
            ("<(", ">("), self.at
        ):
            return ""
        return next((o for o in _REDIRECTIONS if self.text.startswith(o, self.at)), "")

    def _redirect(self, descriptor: str, operator: str) -> None:
        if descriptor and operator.startswith("&"):  # `2&>x` gives the command an argument
            self.level.command.words.append(ShellWord([(PLAIN, descriptor)]))
        self.at += len(operator)
        self.blanks()
        start = self.at
        target = self.read_word()
        if operator in ("<<", "<<-") and target.expands:  # the shell does not expand a delimiter
            if target.quoted:
                self.doubt(MISPLACED)
            target = ShellWord([(PLAIN, self.text[start : self.at])])
        redirection = Redirection(descriptor, operator, target)
        self.level.command.redirections.append(redirection)
        if operator in ("<<", "<<-"):
            self.level.heredocs.append(redirection)

    def newline(self) -> None:
        self.at += 1
        heredocs, self.level.heredocs = self.level.heredocs, []
        for redirection in heredocs:
            body = self._here_document(redirection)
            if redirection.target.quoted:
                redirection.body = ShellWord([(QUOTED, body)])
            elif self.depth >= DEEPEST:
                self.doubt(TOO_DEEP)
            else:
                inner = _Reader(body, self.script, self.depth + 1, self.subshell)
                redirection.body = ShellWord(inner.quoted_text(""))

    def _here_document(self, redirection: Redirection) -> str:
        """Pass the lines of a here-document and the one that ends it; return them."""
        delimiter, body = redirection.target.text, []
        while self.at < len(self.text):
            line = self._line(joined=not redirection.target.quoted)
            line = line.lstrip("\t") if redirection.operator == "<<-" else line
            if line == delimiter:
                break
            behind = line[len(delimiter) :]
            if self.level.closing == ")" and ")" in behind and line.startswith(delimiter):
                self.at -= len(behind) + 1  # the substitution ends on this line
                break
            body.append(line)
        return "\n".join([*body, ""])

    def _line(self, *, joined: bool) -> str:
        """Pass a line; `joined` with those that follow behind a backslash at its end."""
        lines: list[str] = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line, self.at = self.text[self.at : end], end + 1
            if not joined or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return "".join([*lines, line])
            lines.append(line[:-1])
        return "".join(lines)


def _is_descriptor(text: str) -> bool:
    """The word before a redirection operator names a file descriptor: `2` or `{name}`."""
    return text.isdecimal() or (text[:1] == "{" and text[-1:] == "}" and text[1:-1].isidentifier())


def _assignment(word: ShellWord) -> tuple[str, ShellWord] | None:
    """The name and the value where the word is an assignment."""
    kind, text = word.pieces[0] if word.pieces else (PLAIN, "")
    name, sign, value = text.partition("=")
    name = name.removesuffix("+").partition("[")[0]
    if kind != PLAIN or not sign or not (name.isascii() and name.isidentifier()):
        return None
    return name, ShellWord([(PLAIN, value), *word.pieces[1:]] if value else word.pieces[1:])
