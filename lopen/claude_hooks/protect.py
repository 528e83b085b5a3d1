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

from lopen.core.person import config_folder, data_folder
from lopen.core.shell import SimpleCommand, simple_commands, unwrapped
from lopen.files.protection import state_protection

# docs/reference/workflow.md: verb → its subcommands that only a person may give; empty: all of it
PERSONS_COMMANDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("approve", "confirm", "answer", "skip", "revert", "merge", "hooks"), ()),
    "budget": ("extend", "reset"),
    "circuit": ("ack", "reset"),
    "config": ("set", "unset"),
    "alerts": ("ack",),
    "hook": ("user-prompt-submit", "session-start", "session-end", "stop", "subagent-start", "subagent-stop"),
}
# Programs that only read, print or search their arguments
READERS = frozenset(
    [
        "cat",
        "less",
        "more",
        "head",
        "tail",
        "ls",
        "ll",
        "stat",
        "file",
        "wc",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "ag",
        "diff",
        "cmp",
        "jq",
        "tree",
        "du",
        "echo",
        "printf",
        "test",
        "[",
        "[[",
        "pwd",
        "realpath",
        "readlink",
        "basename",
        "dirname",
        "md5sum",
        "sha256sum",
        "which",
        "type",
        "man",
        "true",
        "false",
        "gh",
    ]
)
_GIT_WRITES = frozenset(["checkout", "restore", "rm", "mv", "clean"])
_COMMANDS = frozenset(["command", "cmd", "script", "args", "argv"])
# Arguments of other servers' tools that are text, not a path
_TEXTS = frozenset(
    [
        "content",
        "contents",
        "text",
        "body",
        "message",
        "prompt",
        "query",
        "pattern",
        "title",
        "description",
        "comment",
        "summary",
        "old_string",
        "new_string",
        "oldtext",
        "newtext",
        "old_text",
        "new_text",
        "code",
    ]
)
_READING_TOOL = re.compile(
    r"(?i)(read|list|get|search|find|stat|view|show|tree|head|tail|grep|glob)(_|$|(?-i:[A-Z]))"
)
_WRITING = re.compile(r"(?i)replace|write|edit|update|set|delete|remove|move")
_PART = re.compile(r"[^\s'\"`;|&<>()\[\],=$]+")  # of a word that holds other words
LONGEST = 200_000  # characters of a text that is read as a shell reads it
_PACKAGE = Path(__file__).resolve().parents[1]


def forbidden(tool: str, arguments: Any, cwd: str) -> str:
    """Return why this call may not be made, in two lines; "" where it may."""
    if not isinstance(arguments, dict):
        return ""
    server, _, own_name = tool.rpartition("__")
    if _READING_TOOL.match(own_name) and not _WRITING.search(own_name):
        return ""
    for name, value in _strings(arguments, ""):
        reason = ""
        if name in _COMMANDS:
            reason = in_shell(value, cwd)
        elif "path" in name or (server and name not in _TEXTS):
            path = value.removeprefix("file://")
            reason = "" if "\n" in path or "://" in path else _protected(path, cwd)
        if reason:
            return reason
    return ""


def in_shell(text: str, cwd: str) -> str:
    """Return why this shell text may not be run; "" where it may."""
    commands = simple_commands(text) if len(text) <= LONGEST else []
    if not commands:  # too long, or no shell reads it: its words alone are looked at
        commands = [SimpleCommand(("?", *_PART.findall(text)))]
    for command in commands:
        words = unwrapped(command.words)
        script = in_shell(words[0], cwd) if words and " " in words[0] else ""  # of `bash -c`
        if reason := script or _persons_command(command.words) or _written(command, cwd):
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


def _persons_command(words: Sequence[str]) -> str:
    """Return why the words may not be run: one of them names lopen, and a restricted subcommand follows."""
    if _is_reader(words):  # it prints its words, except substitutions that the shell runs first
        words = words if any("$(" in word or "`" in word for word in words) else ()
    parts = [part for word in words for part in _PART.findall(word)]
    for at, part in enumerate(parts):
        if os.path.basename(part) in ("lopen", "lopen.exe") or part.endswith("lopen/__main__.py"):
            if not {"uninstall", "remove"}.isdisjoint(parts[:at]):
                return _persons("lopen through a package manager")
            rest = [then for then in parts[at + 1 :] if not then.startswith(("-", "/", ".", "~"))]
            if reason := _restricted(rest):
                return reason
    return ""


def _restricted(words: Sequence[str]) -> str:
    verb, then = [*words, "", ""][:2]
    if verb not in PERSONS_COMMANDS or (PERSONS_COMMANDS[verb] and then not in PERSONS_COMMANDS[verb]):
        return ""
    said = f"lopen {verb} {then}" if PERSONS_COMMANDS[verb] else f"lopen {verb}"
    if verb == "hook":
        return f"{said} is for Claude Code itself.\nNo command tells lopen what happens in the session."
    return _persons(said)


def _written(command: SimpleCommand, cwd: str) -> str:
    """Return why the command may not write the protected path that it names; "" where it names none."""
    words = () if _is_reader(command.words) else command.words[1:]
    parts = (part for word in words for part in (word, word.rpartition("=")[2]) if not part.startswith("-"))
    return next((hit for path in (*command.outputs, *parts) if (hit := _protected(path, cwd))), "")


def _protected(path: str, cwd: str) -> str:
    if not path or "\0" in path or len(path) > 4_096:
        return ""
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


def _persons(what: str) -> str:
    return f"{what} is a person's command.\nAsk the person to give it in a terminal of their own."
