"""The calls that a Claude Code session may not make: a person's commands of lopen, and changes to protected paths.

The test of a shell text is a test of its words. A spelling that it misses is still refused by the person's command
itself (docs/reference/claude-code-hooks.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lopen.core.person import PERSONS_COMMANDS, config_folder, data_folder
from lopen.core.shell import SimpleCommand, simple_commands
from lopen.files.protection import state_protection

# Programs that only read, print or search their arguments
_READERS = (
    "cat less more head tail ls ll stat file wc grep egrep fgrep rg ag diff cmp jq tree du echo printf test [ [[ pwd "
    "realpath readlink basename dirname md5sum sha256sum which type man true false gh"
)
READERS = frozenset(_READERS.split())
_GIT_WRITES = frozenset(["checkout", "restore", "rm", "mv", "clean"])
_COMMANDS = frozenset(["command", "cmd", "script", "args", "argv"])  # arguments of tools that hold a command
_READING_TOOL = re.compile(
    r"(?i)(read|list|get|search|find|stat|view|show|tree|head|tail|grep|glob)(_|$|(?-i:[A-Z]))"
)
_WRITING = re.compile(r"(?i)replace|write|edit|update|set|delete|remove|move")
_TEXT = re.compile(  # names of an argument that is read, not a path
    r".*(text|content|body|message|title|subject|description|comment|summary|reason|prompt|query|question|pattern|string"
    r"|code)s?"
)
_PART = re.compile(r"[^\s'\"`;|&<>()\[\],=$]+")  # of a word that holds other words
_PACKAGE = Path(__file__).resolve().parents[1]


def forbidden(tool: str, arguments: Any, cwd: str) -> str:
    """Return why this call may not be made, in two lines; "" where it may."""
    server, _, own_name = tool.rpartition("__")
    if not isinstance(arguments, dict) or (_READING_TOOL.match(own_name) and not _WRITING.search(own_name)):
        return ""
    for name, value in _strings(arguments, ""):
        if name in _COMMANDS:
            reason = in_shell(value, cwd)
        else:
            is_path = "path" in name or bool(server and not _TEXT.fullmatch(name))
            reason = _protected([value.removeprefix("file://")], cwd) if is_path else ""
        if reason:
            return reason
    return ""


def in_shell(text: str, cwd: str) -> str:
    """Return why this shell text may not be run; "" where it may."""
    for command in simple_commands(text) or [SimpleCommand(("?", text))]:
        parts = _PART.findall(os.path.expandvars(" ".join(command.words)))
        named = list(dict.fromkeys([*command.outputs, *command.words[1:], *parts[1:]]))
        if _is_reader(command.words):  # it prints its words, except substitutions that the shell runs first
            parts = parts if any("$(" in word or "`" in word for word in command.words) else []
            named = list(command.outputs)
        if reason := _persons_command(parts) or _protected(named, cwd):
            return reason
    return ""


def _strings(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield every string in a call's arguments with the name that it or its list stands under, in lower case."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        lower = {str(key).lower(): inner for key, inner in value.items()}
        if isinstance(lower.get("command"), str) and isinstance(lower.get("args"), list):
            lower["command"] = [lower["command"], *lower["args"]]
        for key, inner in lower.items():
            yield from _strings(inner, key)
    elif isinstance(value, list):
        if name in _COMMANDS:
            yield name, " ".join(map(str, value))
        for inner in value:
            yield from _strings(inner, name)


def _is_reader(words: Sequence[str]) -> bool:
    program = os.path.basename(words[0]) if words else ""
    return program in READERS or (program == "git" and _GIT_WRITES.isdisjoint(words))


def _persons_command(parts: Sequence[str]) -> str:
    """Return why the parts of a command may not be run: one of them names lopen, and a person's command follows."""
    for at, part in enumerate(parts):
        if os.path.basename(part) not in ("lopen", "lopen.exe") and not part.endswith("lopen/__main__.py"):
            continue
        if not {"uninstall", "remove"}.isdisjoint(parts[:at]):
            return _refusal("lopen through a package manager")
        verb, then = [*(p for p in parts[at + 1 :] if not p.startswith(("-", "/", ".", "~"))), "", ""][:2]
        for name in (verb, f"{verb} {then}"):
            if name in PERSONS_COMMANDS:
                return _refusal(f"lopen {name}")
        if verb == "hook":
            return (
                "lopen hook is for Claude Code itself.\nNo command tells lopen what happens in the session."
            )
    return ""


def _protected(paths: Sequence[str], cwd: str) -> str:
    """Return why the paths may not be written; "" where none of them is protected."""
    for path in paths:
        if (
            path.startswith("-")
            or "://" in path
            or "\n" in path
            or "\0" in path
            or not 0 < len(path) <= 4_096
        ):
            continue
        joined = os.path.normpath(os.path.join(cwd, os.path.expanduser(os.path.expandvars(path))))
        for place in {joined, os.path.realpath(joined)}:
            if state_protection(Path(place).parts) or os.path.basename(place) == ".claude" or _is_own(place):
                return (
                    f"{path[:200]} is protected: lopen and people alone change .claude/settings*, .lopen/ and lopen's own"
                    " folders.\nLeave it as it is, or tell the person what should change."
                )
    return ""


def _is_own(place: str) -> bool:
    """Return True in the person's folders of lopen and in an installed lopen."""
    own = [config_folder(), data_folder()]
    if _PACKAGE.parent.name in ("site-packages", "dist-packages"):
        own.append(str(_PACKAGE))
    return any(f"{place}/".startswith(f"{folder}/") for folder in own if folder)


def _refusal(what: str) -> str:
    return f"{what} is a person's command.\nAsk the person to give it in a terminal of their own."
