"""Command lines as text: when one is a test run. Nothing here runs anything."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

_LONGEST = 20_000  # characters of a command that are looked at
_OPERATOR = re.compile(r"[;&|()<>\n]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"(python|py|pypy)(\d+(\.\d+)?)?$")
_DURATION = re.compile(r"\d+(\.\d+)?[smhd]?$")
# Words before the program that runs: `timeout 60 pytest`, `uv run pytest`, `if true; then pytest; fi`
_BEFORE = frozenset(
    {"env", "time", "nice", "timeout", "command", "exec", "xvfb-run", "npx", "bunx", "pnpx", "bash", "sh"}
    | {"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "run"}
    | {"if", "then", "else", "do", "while", "!", "{"}
)
# Programs whose first argument says what they do: `npm test` is not `npm install`.
_TWO_WORDS = frozenset(
    {"npm", "yarn", "pnpm", "bun", "deno", "node", "cargo", "go", "make", "gmake", "just", "task"}
    | {"mvn", "mvnw", "gradle", "gradlew", "python", "dotnet", "bundle", "rake", "composer", "php", "ruby"}
    | {"bazel", "sbt", "mix", "swift", "nx", "turbo", "lein"}
)
_SETTING_UP = frozenset(
    {"cd", "export", "source", ".", "set", "mkdir", "true", "echo", "pushd", "popd", "fi"}
)
_FILTERS = frozenset(
    {"tail", "head", "tee", "grep", "cat"}
)  # of the output: they say nothing about what was run


def looks_like_tests(command: str, test_command: str | None) -> bool:
    """Return True if `command` runs what the specification's `verify-tests` runs, on all or on some of the tests."""
    return bool(test_command) and bool(_programs(test_command or "") & _programs(command))


@lru_cache(maxsize=64)  # the specification's command is asked about at every call
def _programs(command: str) -> frozenset[tuple[str, ...]]:
    """The programs that a line runs: `pytest`, `npm test`, … without wrappers and arguments."""
    found = (_program(words) for words in _simple_commands(command[:_LONGEST]))
    return frozenset(program for program in found if program and program[0] not in _SETTING_UP | _FILTERS)


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each simple command, those of `bash -c SCRIPT` included; nothing for a line that no shell reads."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.commenters = " \t\r", ""
    words: list[str] = []
    try:
        for word in (*lexer, ";"):
            if not _OPERATOR.fullmatch(word):
                words.append(word)
            elif words:
                yield words
                if words[0] in ("bash", "sh") and len(words) > 2 and words[1].endswith("c"):
                    yield from _simple_commands(words[2])
                words = []
    except ValueError:  # a quote is never closed
        return


def _program(words: list[str]) -> tuple[str, ...]:
    rest = list(words)
    while rest and (rest[0] in _BEFORE or rest[0].startswith("-") or _is_setting(rest[0])):
        rest = rest[1:]
    if not rest:
        return ()
    name = posixpath.basename(rest[0])
    if _PYTHON.match(name):
        if rest[1:2] == ["-m"]:
            return tuple(rest[2:3])
        name = "python"
    if name not in _TWO_WORDS:
        return (name,)
    plain = [word.removeprefix("./") for word in rest[1:] if not word.startswith("-") and word != "run"]
    return (name, *plain[:1])


def _is_setting(word: str) -> bool:
    return bool(_ASSIGNMENT.match(word) or _DURATION.match(word))
