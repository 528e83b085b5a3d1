"""The programs of a verify command, and those that are missing. Runs nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from lopen.base.shell_syntax import parse

_BUILT_IN = frozenset(
    {
        ":",
        ".",
        "((",
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
    """The first word of every simple command of a shell's line; nothing where the line cannot be read for certain."""
    script = parse(command)
    moved = False
    for simple in script.commands if not script.uncertain else ():
        words = simple.words[simple.texts[:1] == ("exec",) :]
        if not words or words[0].expands or words[0].pattern or words[0].text.startswith("-"):
            continue
        name = words[0].text
        known = name in _BUILT_IN or name in script.functions
        if not known and not (moved and "/" in name and not name.startswith("/")):
            yield name
        moved = moved or name == "cd"


def _is_there(name: str, root: Path, path: str | None) -> bool:
    if "/" in name:
        return os.access(root / name, os.X_OK)
    return shutil.which(name, path=path) is not None
