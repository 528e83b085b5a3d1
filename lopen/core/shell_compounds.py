"""A reader of the compound commands of a shell text: keywords, groups, loops, cases, functions, conditions."""

from __future__ import annotations

from lopen.core.shell_values import (
    MISPLACED,
    NOTHING,
    PLAIN,
    QUOTED,
    Redirection,
    Script,
    ShellCommand,
    ShellWord,
)
from lopen.core.shell_words import WordReader

_OPENING = frozenset({"if", "while", "until", "{", "for", "select", "case"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
_PASSING = frozenset({"then", "else", "elif", "do", "!", "time", "coproc", "function"})
_KEYWORDS = _OPENING | _CLOSING | _PASSING


class Group:
    """A compound command that is open: its keyword, its first command, and what is piped into it."""

    __slots__ = ("keyword", "piped_from", "start")

    def __init__(self, keyword: str, start: int, piped_from: range) -> None:
        self.keyword = keyword
        self.start = start
        self.piped_from = piped_from


class Level:
    """The state of one list of commands, up to the sign that closes it.

    `start` is the index of the first command in the present part of a pipeline.
    """

    __slots__ = (
        "closing",
        "command",
        "groups",
        "heredocs",
        "inherited",
        "names_coprocess",
        "piped_from",
        "start",
    )

    def __init__(self, closing: str, start: int, inherited: range, subshell: tuple[int, ...]) -> None:
        self.closing = closing
        self.start = start
        self.inherited = self.piped_from = inherited
        self.groups: list[Group] = []
        self.heredocs: list[Redirection] = []
        self.command = ShellCommand(subshell)
        self.names_coprocess = False


class CompoundReader(WordReader):
    """A reader with the state of the list of commands that it is in."""

    def __init__(self, text: str, script: Script, depth: int, subshell: tuple[int, ...]) -> None:
        super().__init__(text, script, depth, subshell)
        self.level = Level("", len(script.commands), NOTHING, subshell)

    def end_command(self) -> None:
        """Add the command that was read to the script, and begin another."""
        command = self.level.command
        if command.words or command.assignments or command.redirections:
            command.piped_from = self.level.piped_from
            self.script.commands.append(command)
        self.level.command = ShellCommand(self.subshell)

    def blanks(self, *, newlines: bool = False) -> None:
        """Pass blanks and escaped newlines; with `newlines` these and comments too."""
        while self.at < len(self.text):
            c = self.text[self.at]
            if c in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif newlines and c == "\n":
                self.newline()
            elif newlines and c == "#":
                self.comment()
            else:
                return

    def is_keyword(self, text: str) -> bool:
        """The unquoted word `text` is a keyword where the reader stands."""
        command = self.level.command
        if text not in _KEYWORDS or command.assignments or command.redirections:
            return False
        return not command.words or (self._names_coprocess() and text in _OPENING)

    def _names_coprocess(self) -> bool:
        return self.level.names_coprocess and len(self.level.command.words) == 1

    def keyword(self, keyword: str) -> bool:
        """Read what belongs to a keyword that was read; True where it closes the list of commands."""
        level = self.level
        innermost = level.groups[-1].keyword if level.groups else ""
        if keyword == "}" and level.closing == "}" and innermost != "{":
            return True
        self.script.operators.add(keyword)
        level.command.words.clear()
        level.names_coprocess = keyword == "coproc"
        if keyword == "do" or (keyword == "{" and innermost in ("for", "select")):
            self._begin_body(keyword)
        elif keyword in _CLOSING:
            self._close_group()
        elif keyword in _OPENING:
            level.groups.append(Group(keyword, level.start, level.piped_from))
            if keyword == "case":
                self._case()
            elif keyword in ("for", "select"):
                self._loop()
        elif keyword == "function":
            self.blanks()
            self.script.functions.add(self.read_word().text)
            self.blanks()
            self._empty_parentheses()
        elif keyword == "time":
            self.blanks()
            while self.text.startswith(("-p ", "-p\t", "-- ", "--\t"), self.at):
                self.at += 3
                self.blanks()
        return False

    def _begin_body(self, keyword: str) -> None:
        """Begin the body of a loop, which braces may hold too."""
        if self.level.groups:
            self.level.groups[-1].keyword = keyword

    def _close_group(self) -> None:
        """End the innermost compound command; redirections of it may follow."""
        level = self.level
        if not level.groups:
            self.doubt(MISPLACED)
            return
        group = level.groups.pop()
        level.start, level.piped_from = group.start, group.piped_from
        level.command.group = range(group.start, len(self.script.commands))

    def open_parenthesis(self) -> None:
        """Read a function's `()`, an arithmetic command or a subshell."""
        level = self.level
        if len(level.command.words) <= 1 and self._empty_parentheses():
            self.script.functions.update(level.command.texts)
            level.command.words.clear()
            return
        if self._names_coprocess():
            level.command.words.clear()
        self.end_command()
        start, opened = len(self.script.commands), self.at
        if self.text.startswith("((", self.at) and self.arithmetic("(("):
            expression = self.text[opened + 2 : self.at - 2]
            level.command.words += [ShellWord([(PLAIN, "((")]), ShellWord([(QUOTED, expression)])]
            return
        self.script.operators.add("(")
        self.at += 1
        self.nested(")")
        level.start = start
        level.command.group = range(start, len(self.script.commands))

    def _empty_parentheses(self) -> bool:
        """Pass `()`; False where there is none."""
        start = self.at
        if self.text.startswith("(", start):
            self.at += 1
            self.blanks()
            if self.text.startswith(")", self.at):
                self.at += 1
                return True
        self.at = start
        return False

    def _loop(self) -> None:
        """Read the head of `for` or `select`: an assignment of each of its words, or an arithmetic one."""
        self.blanks()
        if self.text.startswith("((", self.at) and self.arithmetic("(("):
            return
        name = self.read_word().text
        self.blanks(newlines=True)
        if not self._at_word("in"):
            return
        self.at += 2
        self.blanks()
        while self.text[self.at : self.at + 1] not in ("", *";\n&|()") and self._word_ahead():
            self.level.command.assignments.append((name, self.read_word()))
            self.blanks()

    def _word_ahead(self) -> bool:
        return self.text[self.at] not in "<>" or self.text.startswith("(", self.at + 1)

    def _at_word(self, word: str) -> bool:
        end = self.at + len(word)
        return self.text.startswith(word, self.at) and self.text[end : end + 1] in ("", *" \t\n;|&()")

    def _case(self) -> None:
        self.blanks()
        self.read_word()
        self.blanks(newlines=True)
        if not self._at_word("in"):
            self.doubt(MISPLACED)
            return
        self.at += 2
        self.case_patterns()

    def case_patterns(self) -> None:
        """Read the patterns before a list of commands; nothing where `esac` stands there."""
        self.blanks(newlines=True)
        if self._at_word("esac"):
            return
        if self.text.startswith("(", self.at):
            self.at += 1
        while self.at < len(self.text):
            self.blanks(newlines=True)
            c = self.text[self.at : self.at + 1]
            if c == ")":
                self.at += 1
                return
            start = self.at
            self.read_word()
            if self.at == start:
                self.at += 1
                if c != "|":
                    self.doubt(MISPLACED)

    def conditional(self) -> None:
        """Read `[[ … ]]` from behind its opening word; operators are words in it."""
        words = self.level.command.words
        while words[-1].bare != "]]":
            self.blanks()
            c = self.text[self.at : self.at + 1]
            if c in ("", *"\n;"):
                return
            start = self.at
            words.append(self.read_word())
            if self.at == start:
                self.at += 1
                words[-1] = ShellWord([(PLAIN, c)])
