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
from lopen.core.shell import SimpleCommand, UnclosedQuote, simple_commands
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
_GIT_WRITES = frozenset({"checkout", "restore", "rm", "mv", "clean"})
# Tools whose strings are text, but for those named as paths
_TEXT_TOOLS = frozenset(
    {"Write", "Edit", "MultiEdit", "NotebookEdit", "Task", "Agent", "Skill", "SlashCommand", "ExitPlanMode"}
    | {"WebFetch", "WebSearch", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "BashOutput"}
)
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
    ]
)
_READING_TOOL = re.compile(
    r"(?i)(read|list|get|search|find|stat|view|show|tree|head|tail|grep|glob)(_|$|(?-i:[A-Z]))"
)
_WRITING = re.compile(r"(?i)replace|write|edit|update|set|delete|remove|move")
_PERSONS_COMMAND = re.compile(
    r"\blopen(?:\.exe)?['\"]?(?:\s+-\S+(?:\s+[/.~]\S*)?)*[\s,'\"]+("
    + "|".join(
        rf"{verb}[\s,'\"]+(?:{'|'.join(then)})" if then else verb for verb, then in PERSONS_COMMANDS.items()
    )
    + r")\b"
)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish", "eval", "watch", "ssh"})
_ROUGH_WORD = re.compile(r"[^\s'\"`;|&<>()=,]+")
DEEPEST_ARGUMENT = 50
LONGEST = 200_000  # characters of a text whose words are read one by one
_PACKAGE = Path(__file__).resolve().parents[1]


def forbidden(tool: str, arguments: Any, cwd: str) -> str:
    """Return why this call may not be made, in two lines; "" where it may."""
    if not isinstance(arguments, dict):
        return ""
    own_name = tool.rpartition("__")[2]
    if tool not in _TEXT_TOOLS and _READING_TOOL.match(own_name) and not _WRITING.search(own_name):
        return ""
    for name, value in _strings(arguments, "", 0):
        reason = ""
        if name in ("command", "cmd", "script"):
            reason = in_shell(value, cwd)
        elif name == "code" and _PERSONS_COMMAND.search(value):
            reason = _persons("lopen through an interpreter")
        elif "path" in name or not (tool in _TEXT_TOOLS or name in _TEXTS):
            path = value.removeprefix("file://")
            reason = "" if "\n" in path or "://" in path else _protected(path, cwd)
        if reason:
            return reason
    return ""


def in_shell(text: str, cwd: str) -> str:
    """Return why this shell text may not be run; "" where it may."""
    try:
        commands = simple_commands(text) if len(text) <= LONGEST else []
    except UnclosedQuote:
        commands = [SimpleCommand(("?", *_ROUGH_WORD.findall(text)))]
    if len(text) > LONGEST and (found := _PERSONS_COMMAND.search(text)):
        return _persons(f"lopen {found[1]}")
    for command in commands:
        if reason := _persons_command(command, cwd) or _written(command, cwd):
            return reason
    return ""


def _strings(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield every string in a call's arguments with the name that it or its list stands under, in lower case."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict) and depth < DEEPEST_ARGUMENT:
        lower = {str(key).lower(): inner for key, inner in value.items()}
        if isinstance(lower.get("command"), str) and isinstance(lower.get("args"), list):
            lower["command"] = " ".join(map(str, (lower["command"], *lower["args"])))
        for key, inner in lower.items():
            yield from _strings(inner, key, depth + 1)
    elif isinstance(value, list) and depth < DEEPEST_ARGUMENT:
        if name in ("command", "cmd", "args", "argv"):
            yield "command", " ".join(map(str, value))
        for inner in value:
            yield from _strings(inner, name, depth + 1)


def _is_reader(words: Sequence[str]) -> bool:
    program = os.path.basename(words[0]) if words else ""
    return program in READERS or (program == "git" and _GIT_WRITES.isdisjoint(words))


def _persons_command(command: SimpleCommand, cwd: str) -> str:
    words = command.words
    for word in words:
        if "lopen" in word and any(c.isspace() for c in word):
            runs = os.path.basename(words[0]) in _SHELLS or "$(" in word or "`" in word
            if (runs and (reason := in_shell(word, cwd))) or (
                not _is_reader(words) and (reason := _named_in(word))
            ):
                return reason
    if _is_reader(words) and not any("`" in word for word in words):
        return ""
    for at, word in enumerate(words):
        name = os.path.basename(word.strip("`\"'"))
        if name in ("lopen", "lopen.exe", "lopen.__main__") or word.endswith("lopen/__main__.py"):
            rest = words[at + 1 :]
            if not {"uninstall", "remove"}.isdisjoint(words[:at]):
                return _persons("lopen through a package manager")
            return _named_in(" ".join(("lopen", *rest)))
    return ""


def _named_in(text: str) -> str:
    found = _PERSONS_COMMAND.search(text)
    if found is None:
        return ""
    said = " ".join(re.findall(r"[\w-]+", found[1]))
    if said.startswith("hook "):
        return f"lopen {said} is for Claude Code itself.\nNo command tells lopen what happens in the session."
    return _persons(f"lopen {said}")


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
