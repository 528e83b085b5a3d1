"""The commands that a shell text runs, as far as its text tells: variables, aliases and nested shells resolved.

Resolution takes no account of order: a variable stands for each value that the text gives it.
"""

from __future__ import annotations

import re
from itertools import islice, product

from lopen.claude_hooks.nested_shells import (
    MOST_SOURCES,
    UNREAD,
    given_by_xargs,
    possible_texts,
    shell_texts,
    texts_with_lopen,
)
from lopen.claude_hooks.protected_places import ResolvedCommand
from lopen.core.shell_syntax import parse
from lopen.core.shell_values import EXPANSION, PLAIN, QUOTED, ShellCommand, ShellWord

_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly", "alias"})
_RUN_BY_SHELLS = frozenset({"BASH_ENV", "ENV", "PROMPT_COMMAND"})  # variables that hold what a shell runs
_DEFAULT = r"(?s)\$\{(\w+):?[-=+](.*)\}"
_BRACES = r"\{([^{},]*,[^{}]*)\}"
DEEPEST_TEXT, DEEPEST_VALUE = 8, 10
# Bounds of the work for one text; past them it is uncertain
MOST_TEXTS, MOST_CHARACTERS = 200, 500_000
MOST_ALTERNATIVES = 32
MOST_WAYS, MOST_FED = 2_000, 10_000
MOST_COMMANDS = 4_000  # those that can be checked before the hook's time is up


class Resolution:
    """The commands of a text and of the texts that its shells run.

    `uncertain`: something in it cannot be told. `cut`: it has more than `MOST_COMMANDS`, and the rest is left out.
    """

    def __init__(self, text: str) -> None:
        self.commands: list[ResolvedCommand] = []
        self.uncertain = self.cut = False
        self._values: dict[str, list[ShellWord]] = {}
        self._aliases: dict[str, list[ShellWord]] = {}
        self._known: dict[str, list[str]] = {}
        self._texts, self._characters = MOST_TEXTS, MOST_CHARACTERS
        self._value_depth = 0
        self._ways_left, self._fed_left = MOST_WAYS, MOST_FED
        self._read(text, (), 0, is_shell=True)

    def _read(self, text: str, subshell: tuple[int, ...], depth: int, *, is_shell: bool) -> None:
        """Add the commands of a text; one that may be mere words, no `is_shell`, leaves no doubt."""
        self._texts -= 1
        self._characters -= len(text)
        if depth > DEEPEST_TEXT or self._texts < 0 or self._characters < 0:
            self.uncertain = True
            return
        script = parse(text)
        self.uncertain = self.uncertain or (is_shell and bool(script.uncertain))
        for command in script.commands:
            self._note_values(command)
        for command in script.commands:
            self._read_environment(command, subshell, depth)
        resolved: list[list[ResolvedCommand]] = []
        sources: dict[tuple[int, int], list[ResolvedCommand]] = {(0, 0): []}
        for command in script.commands:
            self.cut = self.cut or len(self.commands) >= MOST_COMMANDS
            if self.cut:
                return
            ways = self._ways(command, subshell)
            resolved.append(ways)
            piped = (command.piped_from.start, command.piped_from.stop)
            if piped not in sources:
                sources[piped] = [way for i in command.piped_from for way in resolved[i]][:MOST_SOURCES]
                self.uncertain = self.uncertain or len(sources[piped]) == MOST_SOURCES
            for way in ways:
                way.sources = sources[piped]
                self.commands.append(way)
                self._read_inner(way, depth)
            if ways and ways[0].fed and command.group:
                self._feed(ways[0].fed, resolved[command.group.start : command.group.stop], depth)

    def _read_environment(self, command: ShellCommand, subshell: tuple[int, ...], depth: int) -> None:
        """Read what a program may take from its environment to run it (`GIT_EDITOR='lopen …' git commit`)."""
        for _, value in command.assignments if command.words else ():
            for text in self._texts_of(value) if value.expands or "lopen" in value.text else ():
                for inner in texts_with_lopen(text.lstrip("|! ")):
                    self._read(inner, (*subshell, -self._texts), depth + 1, is_shell=False)

    def _feed(self, text: str, group: list[list[ResolvedCommand]], depth: int) -> None:
        """Give the commands of a group the input that the group is given."""
        self._fed_left -= len(group)
        self.uncertain = self.uncertain or self._fed_left < 0
        for way in (way for ways in group for way in ways) if self._fed_left >= 0 else ():
            way.fed = way.fed or text
            self._read_inner(way, depth)

    def _note_values(self, command: ShellCommand) -> None:
        """Note the variables and aliases that a command sets."""
        for name, value in command.assignments:
            self.uncertain = self.uncertain or name in _RUN_BY_SHELLS
            self._values.setdefault(name, []).append(value)
        declaring = command.words[0].text if command.words else ""
        if declaring in _DECLARING:
            noted = self._aliases if declaring == "alias" else self._values
            for word in command.words[1:]:
                kind, text = word.pieces[0] if word.pieces else (PLAIN, "")
                name, sign, start = text.partition("=")
                if sign:
                    noted.setdefault(name, []).append(ShellWord([(kind, start), *word.pieces[1:]]))
        elif declaring == "hash" and [word.text for word in command.words[1:2]] == ["-p"]:
            for word in command.words[3:]:  # `hash -p PROGRAM NAME…`
                self._aliases.setdefault(word.text, []).append(command.words[2])
        self._known.clear()

    def _ways(self, command: ShellCommand, subshell: tuple[int, ...]) -> list[ResolvedCommand]:
        combined = list(islice(product(*map(self._alternatives, command.words)), MOST_ALTERNATIVES + 1))
        self._ways_left -= len(combined) - 1
        if len(combined) > MOST_ALTERNATIVES or self._ways_left < 0:
            self.uncertain = True
            combined = combined[: MOST_ALTERNATIVES if self._ways_left >= 0 else 1]
        if command.words and "{" in (program := command.words[0]).text and program.pattern:
            self.cut = self.cut or not _expanded(program.text)  # the program itself cannot be told
        writes: list[str] = []
        fed: list[str] = []
        for redirection in command.redirections:
            if redirection.writes:
                writes += self._texts_of(redirection.target)
            elif redirection.body is not None:
                fed += self._texts_of(redirection.body)
        ways = []
        for words in combined:
            way = ResolvedCommand(
                tuple(text for part in words for text in part), (*subshell, *command.subshell)
            )
            way.writes, way.fed = tuple(writes), "\n".join(fed)
            ways.append(way)
        return ways

    def _listed(self, text: str) -> list[str]:
        """Return the words that the lists in braces of a word stand for; with too many of them, the word as it is."""
        words = _expanded(text)
        self.uncertain = self.uncertain or not words
        return words or [text]

    def _texts_of(self, word: ShellWord) -> list[str]:
        return [" ".join(part) for part in self._alternatives(word)]

    def _alternatives(self, word: ShellWord) -> list[tuple[str, ...]]:
        """Return what a word may become: alternatives of one word, of several, or of none."""
        if not word.expands:
            return [tuple(self._listed(word.text) if word.pattern else [word.text])]
        values = [
            [text] if kind in (PLAIN, QUOTED) else self._values_of(kind, text) for kind, text in word.pieces
        ]
        found = []
        for chosen in islice(product(*values), MOST_ALTERNATIVES):
            text = "".join(chosen)
            self._characters -= len(text)
            if self._characters < 0:
                self.uncertain = True
                break
            parts = self._listed(text) if word.pattern else [text]
            found.append(tuple(parts if word.quoted else [p for part in parts for p in part.split()]))
        return found

    def _values_of(self, kind: str, text: str) -> list[str]:
        """The values of a variable or another expansion; its own source where none is known."""
        source = [text if kind == EXPANSION else f"${text}"]
        default = re.fullmatch(_DEFAULT, text) if kind == EXPANSION else None
        if kind == EXPANSION and default is None:
            return source
        name = default[1] if default else text
        if name not in self._known:
            if self._value_depth >= DEEPEST_VALUE:
                self.uncertain = True
                return source
            self._known[name] = []  # while they are worked out: a variable may name itself
            self._value_depth += 1
            values = [t for value in self._values.get(name, []) for t in self._texts_of(value)]
            self._value_depth -= 1
            self._known[name] = list(dict.fromkeys(values))
        values = self._known[name] + ([re.sub(r"['\"\\]", "", default[2])] if default else [])
        self.uncertain = self.uncertain or len(values) > MOST_ALTERNATIVES
        return values[:MOST_ALTERNATIVES] or source

    def _read_inner(self, way: ResolvedCommand, depth: int) -> None:
        """Read the texts that this command has a shell run."""
        if way.name in self._aliases and depth < DEEPEST_TEXT:
            rest = " ".join(quoted(word) for word in way.words[1:])
            for value in self._aliases[way.name]:
                for text in self._texts_of(value):
                    self._read(f"{text} {rest}", way.subshell, depth + 1, is_shell=True)
        self._read_shell_texts(way, depth)
        for text in possible_texts(way):
            self._read(text, (*way.subshell, -self._texts), depth + 1, is_shell=False)
        if way.sources and "xargs" in way.words[:4]:
            given = given_by_xargs(way)
            self.commands.append(given)
            self._read_shell_texts(given, depth)

    def _read_shell_texts(self, way: ResolvedCommand, depth: int) -> None:
        for text in shell_texts(way):
            if text == UNREAD or (text.startswith("$") and not any(c.isspace() for c in text)):
                self.uncertain = True
            else:
                self._read(text, (*way.subshell, -self._texts), depth + 1, is_shell=True)
            if self._texts < 0:
                return


def quoted(word: str) -> str:
    """Return the word in single quotes, as a shell reads it back."""
    return "'" + word.replace("'", "'\\''") + "'"


def _expanded(text: str) -> list[str]:
    """The words that the lists in braces of a word stand for; none where they are too many."""
    if "{" not in text:
        return [text]
    done: list[str] = []
    left = [text]
    while left and len(done) + len(left) <= MOST_ALTERNATIVES:
        first = left.pop(0)
        found = re.search(_BRACES, first)
        if found is None:
            done.append(first)
        else:
            left[:0] = [first[: found.start()] + part + first[found.end() :] for part in found[1].split(",")]
    return [] if left else done
