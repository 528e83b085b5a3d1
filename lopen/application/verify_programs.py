"""The programs that a verify command starts, and which of them are not here. Nothing is run for it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

_SEPARATORS = re.compile(r"[();|&\n]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BEFORE_A_COMMAND = frozenset(
    {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec"}
)
_NO_COMMAND = frozenset({"for", "case", "select", "function", "fi", "done", "esac", "in", "}"})
_BUILT_IN = frozenset(
    {
        ":",
        ".",
        "[",
        "[[",
        "alias",
        "bg",
        "break",
        "cd",
        "command",
        "continue",
        "echo",
        "eval",
        "exit",
        "export",
    }
    | {
        "false",
        "fg",
        "getopts",
        "hash",
        "jobs",
        "kill",
        "local",
        "printf",
        "pwd",
        "read",
        "readonly",
        "return",
    }
    | {"set", "shift", "source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unset", "wait"}
)


def missing(command: str, root: Path, path: str | None) -> list[str]:
    """Programs of the command that neither `path` (as in PATH) nor the project at `root` has, each once.

    What only the shell could tell is left out: a name in a variable, a relative one after `cd`.
    """
    return sorted({name for name in programs(command) if not _is_there(name, root, path)})


def programs(command: str) -> Iterator[str]:
    """The first word of every simple command of a shell's line; nothing where a quote is left open."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        words = [*lexer, ";"]
    except ValueError:
        return
    moved, simple = False, list[str]()
    for word in words:
        if not _SEPARATORS.fullmatch(word):
            simple.append(word)
            continue
        name = _program(simple)
        if name and name not in _BUILT_IN and not (moved and "/" in name and not name.startswith("/")):
            yield name
        moved, simple = moved or name == "cd", []


def _program(words: list[str]) -> str:
    for at, word in enumerate(words):
        if word in _NO_COMMAND or word.startswith("-") or set(word) <= set("<>&"):
            return ""
        if word not in _BEFORE_A_COMMAND and not _ASSIGNMENT.match(word):
            return "" if re.search(r"[$`*?]", words[at]) else word
    return ""


def _is_there(name: str, root: Path, path: str | None) -> bool:
    if "/" in name:
        return os.access(root / name, os.X_OK)
    return shutil.which(name, path=path) is not None
