"""The texts that a command has a shell run: its arguments, its input, the files it writes."""

from __future__ import annotations

import os
import re

from lopen.claude_hooks.protected_places import READERS, SHELLS, ResolvedCommand, reads_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SOURCING = frozenset({"source", "."})
# What a source of a pipe prints can be told from its text
_PRINTING = frozenset({"echo", "printf", "cat", "tee"})
_GIT_ALIAS = r"(?s)(?:alias\.[\w-]+=)?!(.*)"  # `!` before a git alias: a shell runs the rest
# Files that a shell may be given to run: those without an ending, scripts, and what a shell reads at its start
_SCRIPT = r"(?i)^(?!/dev/).*?((^|/)[^/.]+|\.(sh|bash|zsh|ksh|fish|command|mk)|rc|profile)$"
# A program that other text goes before: `exec=lopen …`, `!lopen …`, `|/usr/bin/lopen …`
_FROM_LOPEN = r"(?s)[=!|:]((?:[\w./~-]*/)?lopen\s.*)"
UNREAD = "$()"
_XARGS_VALUED = frozenset({"-n", "-I", "-P", "-L", "-d", "-s", "-a", "-E"})
MOST_SOURCES = 100


def shell_texts(way: ResolvedCommand) -> Iterator[str]:
    """Texts that a shell in this command runs; `$()` for one that cannot be read."""
    names = [os.path.basename(word) for word in way.words]
    if names and names[0] in ("git", "git.exe"):
        yield from (found[1] for word in way.words if (found := re.match(_GIT_ALIAS, word)))
    shell = next((i for i, name in enumerate(names) if name in SHELLS), None)
    if names[:1] and names[0] in _SOURCING:
        yield from (UNREAD for word in way.words[1:] if word.startswith("<("))
        if "/dev/stdin" in way.words or "-" in way.words:
            yield from [way.fed] if way.fed else _printed(way)
    if shell is None or names[0] in READERS:
        return
    rest = way.words[shell + 1 :]
    if names[shell] == "eval":
        yield " ".join(rest)
        return
    commands = [
        rest[i + 1]
        for i, word in enumerate(rest[:-1])
        if word.startswith("-") and not word.startswith("--") and "c" in word
    ]
    yield from commands
    yield from (UNREAD for word in rest if word.startswith("<("))
    if way.fed:
        yield way.fed
    elif not commands:
        operands = [word for word in rest if not word.startswith("-")]
        reads_input = not operands or "-s" in rest or "/dev/stdin" in rest
        yield from (text for text in _printed(way) if reads_input or text != UNREAD)


def _printed(way: ResolvedCommand) -> Iterator[str]:
    """Return what is piped into a command, filters passed over; `$()` behind a text that cannot be told for certain."""
    left, seen = list(way.sources), 0
    while left and seen < MOST_SOURCES:
        source, seen = left.pop(), seen + 1
        if source.fed:
            yield source.fed
        elif source.name in ("echo", "printf"):
            yield _said(source)
        elif source.words:
            yield " ".join(source.words[1:])
        if source.name not in _PRINTING:
            yield UNREAD
        left += source.sources[: MOST_SOURCES - len(left)]
    if left:
        yield UNREAD


def _said(way: ResolvedCommand) -> str:
    """Return what an echo or printf prints."""
    return " ".join(way.words[1:]).replace("\\n", "\n")


def possible_texts(way: ResolvedCommand) -> Iterator[str]:
    """Words that may be shell texts, and texts put into a file that a shell may run later."""
    if not way.words:
        return
    if way.name not in READERS and not reads_git(way.words):
        for word in way.words:
            yield from texts_with_lopen(word.removeprefix("--split-string=").removeprefix("-S"))
    into = [word for word in way.words[1:] if not word.startswith("-")] if way.name == "tee" else []
    if any(re.match(_SCRIPT, target) for target in (*way.writes, *into)):
        if way.name in ("echo", "printf"):
            yield _said(way)
        elif way.name in ("cat", "tee"):
            yield way.fed or "\n".join(_said(s) for s in way.sources if s.name in ("echo", "printf"))


def texts_with_lopen(word: str) -> Iterator[str]:
    """Return a word that may be a shell text about lopen, as it is and from lopen's name on."""
    if "lopen" in word and any(c.isspace() for c in word.strip()):
        yield word
        if found := re.search(_FROM_LOPEN, word):
            yield found[1]


def given_by_xargs(way: ResolvedCommand) -> ResolvedCommand:
    """The command that xargs runs, with its input added or put in the place of the placeholder."""
    options = list(way.words[way.words.index("xargs") + 1 :])
    placeholder, words = "", options
    while words and words[0].startswith("-"):
        option, words = words[0], words[1:]
        value = option[2:]
        if option in _XARGS_VALUED and words:
            value, words = words[0], words[1:]
        placeholder = value if option.startswith("-I") else placeholder
    known = all(source.name in ("echo", "printf") for source in way.sources)
    said = " ".join(_said(source) for source in way.sources) if known else UNREAD
    if placeholder:
        words = [part for word in words for part in _filled(word, placeholder, said)]
        return ResolvedCommand(tuple(words), way.subshell)
    return ResolvedCommand((*words, *said.split()), way.subshell)


def _filled(word: str, placeholder: str, said: str) -> Sequence[str]:
    return said.split() if word == placeholder else [word.replace(placeholder, said)]
