"""Command lines as text: when two are the same, and when one is a test run. Nothing here runs anything."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache

from lopen.core.shell_syntax import parse
from lopen.core.shell_values import UNCLOSED_QUOTE

_READ, _PARSED = 4_000, 100_000  # characters of a command that are compared, and that are parsed
_BLANKS = re.compile(r"""('[^']*'|"(?:\\.|[^"\\])*")|\s+""")
_DOT_PREFIX = re.compile(r"(?<!\S)\./(?=\S)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_DURATION = re.compile(r"\d+(\.\d+)?[smhd]?$")
_PREFIXES = frozenset(
    {"env", "time", "nice", "timeout", "command", "exec", "xvfb-run", "npx", "bunx", "pnpx", "bash", "sh"}
)
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
_SCRIPT_OPTION = re.compile(r"-[a-z]*c$")
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"})  # `<runner> run <command>`
_PYTHON = re.compile(r"(python|py|pypy)(\d+(\.\d+)?)?$")
# Programs whose first argument says what they do: `npm test` is not `npm install`.
_TWO_WORDS = frozenset(
    {"npm", "yarn", "pnpm", "bun", "deno", "node", "cargo", "go", "make", "gmake", "just", "task"}
    | {"mvn", "mvnw", "gradle", "gradlew", "python", "dotnet", "bundle", "rake", "composer", "php", "ruby"}
    | {"bazel", "sbt", "mix", "swift", "nx", "turbo", "lein"}
)
_SETTING_UP = frozenset({"cd", "export", "source", ".", "set", "mkdir", "true", "echo", "pushd", "popd"})


def normal_command(command: str) -> str:
    """The command with blanks outside quotes made single and `./` prefixes dropped: equal text, equal command."""
    if len(command) > _READ:
        return command
    single = _BLANKS.sub(lambda m: m[1] or " ", command).strip()
    return _DOT_PREFIX.sub("", single)


def looks_like_tests(command: str, test_command: str | None) -> bool:
    """Return True if `command` runs what the specification's `verify-tests` runs, on all or on some of the tests."""
    if not test_command:
        return False
    wanted = _programs(test_command)
    return bool(wanted & _programs(command))


@lru_cache(maxsize=64)  # the specification's command is asked about at every call
def _programs(command: str) -> frozenset[tuple[str, ...]]:
    """Return the programs that the simple commands of the line run: `pytest`, `npm test`, … without wrappers and arguments."""
    script = parse(command[:_PARSED])
    if script.uncertain == UNCLOSED_QUOTE:  # no shell runs it
        return frozenset()
    # A filter of the output (tail, tee) says nothing about what was run
    found = {_program(simple.texts) for simple in script.commands if not simple.piped_from}
    for simple in script.commands:
        found |= _programs(inner) if (inner := _shell_script(simple.texts)) else frozenset()
    return frozenset(program for program in found if program and program[0] not in _SETTING_UP)


def _shell_script(words: Sequence[str]) -> str:
    """The script of `bash -c SCRIPT`, or an empty text."""
    for shell, option, script in zip(words, words[1:], words[2:], strict=False):
        if posixpath.basename(shell) in _SHELLS and _SCRIPT_OPTION.match(option):
            return script
    return ""


def _program(words: Sequence[str]) -> tuple[str, ...]:
    words = _unwrapped(words)
    if not words:
        return ()
    name = posixpath.basename(words[0])
    if _PYTHON.match(name):
        if words[1:2] == ["-m"]:
            return tuple(words[2:3])
        name = "python"
    if name not in _TWO_WORDS:
        return (name,)
    plain = [w.removeprefix("./") for w in words[1:] if not w.startswith("-")]
    if name in {"npm", "yarn", "pnpm", "bun"} and plain[:1] == ["run"]:
        plain = plain[1:]
    return (name, *plain[:1])


def _unwrapped(words: Sequence[str]) -> list[str]:
    """The words from the program on: without assignments, `timeout 60`, `uv run` and their like."""
    rest = list(words)
    while rest:
        head = posixpath.basename(rest[0])
        if _ASSIGNMENT.match(rest[0]):
            rest = rest[1:]
        elif head in _PREFIXES:
            rest = rest[1:]
            while rest and (rest[0].startswith("-") or _DURATION.match(rest[0])):
                rest = rest[1:]
        elif head in _RUNNERS and rest[1:2] == ["run"]:
            rest = rest[2:]
        else:
            return rest
    return rest
