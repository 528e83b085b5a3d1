"""The limits of a Claude Code session: no person's commands of lopen, no edits of `.claude/settings*` and `.lopen/`.

A way in that this misses is still refused by the person's commands themselves and by the
sandbox; a false alarm costs a session a call, so what only prints or searches is left alone.
"""

from __future__ import annotations

import os

from lopen.claude_hooks.command_writes import written
from lopen.claude_hooks.persons_commands import names_verb, persons_command, untold_program
from lopen.claude_hooks.protected_places import (
    LONGEST,
    SHELLS,
    ResolvedCommand,
    is_claude,
    protected,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


# The program or a protected place, but not a folder or a package that has lopen in its name
_MENTION = (
    r"\blopen\b(?![/-])|\.lopen\b|\.claude/settings|\.claude\b(?!/)"
    r"|(\.config|\.local/share|Application Support|XDG_(CONFIG|DATA)_HOME\}?)['\"]?/lopen\b"
)
_PLAIN_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./-:,@+%")
_RESERVED_WORDS = "if then elif else fi for while until do done case esac select function in time coproc"
_RESERVED = frozenset(_RESERVED_WORDS.split())
# Tools whose strings are text, but for those named as paths
_TEXT_TOOLS = frozenset(
    {"Write", "Edit", "MultiEdit", "NotebookEdit", "Task", "Agent", "Skill", "SlashCommand", "ExitPlanMode"}
    | {"WebFetch", "WebSearch", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "BashOutput"}
)
_TEXT_NAMES = (
    "content contents text body message prompt query pattern title description comment summary"
    " old_string new_string oldtext newtext old_text new_text"
)
_TEXTS = frozenset(_TEXT_NAMES.split())
_READING_TOOL = (
    r"(?i)(read|list|get|search|find|stat|view|show|tree|directory_tree|head|tail|grep|glob)(_|$|(?-i:[A-Z]))"
)
_WRITING = r"(?i)replace|write|edit|update|set|delete|remove|move"
_REMOVING_TOOL = r"(?i)delete|remove|move|rename|rmdir|unlink"
DEEPEST_ARGUMENT = 50


def forbidden(tool: str, arguments: Any, cwd: str, root: str) -> str:
    """Why this call of a tool that may change something is not allowed; empty where it is."""
    if not isinstance(arguments, dict):
        return ""
    command = arguments.get("command")
    if isinstance(command, str):
        return in_shell(f"{command} {_quoted(arguments.get('args'))}".rstrip(), cwd, root)
    removing = False
    if tool not in _TEXT_TOOLS:
        import re  # only for a tool of an MCP server

        own = tool.rpartition("__")[2]
        if re.match(_READING_TOOL, own) and not re.search(_WRITING, own):
            return ""
        removing = re.search(_REMOVING_TOOL, own) is not None
    for name, value in _strings(arguments, "", 0):
        if "path" not in name.lower() and (tool in _TEXT_TOOLS or name.lower() in _TEXTS):
            continue
        if name.lower() == "code" and names_verb(value):
            return _no_person("lopen through an interpreter")
        if name.lower() in ("command", "cmd", "script"):
            if reason := in_shell(value, cwd, root):
                return reason
            continue
        path = value.removeprefix("file://")
        if (
            "\n" not in path
            and "://" not in path
            and ((hit := protected(path, cwd)) or (removing and is_claude(path)))
        ):
            return _no_edit(hit or path)
    return ""


def _strings(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every string in a call's arguments, with the name that it or its list stands under."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict) and depth < DEEPEST_ARGUMENT:
        for key, inner in value.items():
            yield from _strings(inner, str(key), depth + 1)
    elif isinstance(value, list) and depth < DEEPEST_ARGUMENT:
        if name.lower() in ("command", "cmd", "args", "argv"):
            yield "command", _quoted(value)
        for inner in value:
            yield from _strings(inner, name, depth + 1)


def _quoted(words: Any) -> str:
    """The words of a command as a shell text; empty where they are none."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return ""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def in_shell(text: str, cwd: str, root: str) -> str:
    """Why this shell text is not allowed; empty where it is."""
    if len(text) > LONGEST:
        return _no_person("a command that long") if names_verb(text) else ""
    commands, uncertain, cut = _read(text)
    named = ("lopen" in text or ".claude" in text) and _mentions_lopen(text)
    folders: dict[tuple[int, ...], str] = {(): cwd}
    for command in commands:
        verb = persons_command(command, named=named) or untold_program(command.words, text)
        if verb.startswith("hook "):
            return f"lopen {verb} is for Claude Code itself.\nNo command tells lopen what happens in the session."
        if verb:
            return _no_person(f"lopen {verb}")
        here = _folder(command.subshell, folders)
        hit = written(command, here, root)
        if hit:
            return _no_edit(hit)
        folders[command.subshell] = _moved(command.words, here)
    if cut:
        return "this text has more commands than lopen can check: give it in parts."
    return _unreadable() if uncertain and named else ""


def _read(text: str) -> tuple[list[ResolvedCommand], bool, bool]:
    """The commands of a text, whether it is uncertain, and whether it has more than can be read."""
    if words := plain_words(text):
        return [ResolvedCommand(words, ())], False, False
    from lopen.claude_hooks.resolved_commands import Resolution  # slow to load

    resolution = Resolution(text)
    return resolution.commands, resolution.uncertain, resolution.cut


def plain_words(text: str) -> tuple[str, ...]:
    """The words of a text that is one command as it stands, in which a shell has nothing to expand; else none."""
    words = () if set(text) - _PLAIN_SIGNS else tuple(text.split())
    if words[:1] and (words[0] in _RESERVED or any(os.path.basename(word) in SHELLS for word in words)):
        return ()
    return words


def _mentions_lopen(text: str) -> bool:
    import re

    return re.search(_MENTION, text) is not None


def _folder(subshell: tuple[int, ...], folders: dict[tuple[int, ...], str]) -> str:
    """The working directory of a subshell: that of the one around it until it moves."""
    while subshell not in folders:
        subshell = subshell[:-1]
    return folders[subshell]


def simple_commands(text: str) -> list[ResolvedCommand]:
    """Every simple command of a text, those inside `bash -c` and its kin too."""
    return _read(text)[0] if len(text) <= LONGEST else []


def _moved(words: Sequence[str], cwd: str) -> str:
    operands = [w for w in words[1:] if not w.startswith("-")]
    if words[:1] in (("cd",), ("pushd",)) and operands:
        return os.path.normpath(os.path.join(cwd, os.path.expanduser(operands[0])))
    return cwd


def _no_person(what: str) -> str:
    return f"{what} is a person's command.\nAsk the person to give it in a terminal of their own."


def _unreadable() -> str:
    return (
        "this command names lopen or a protected path, and lopen cannot tell what it runs:"
        " write it plainly, without eval and without texts that only a shell can know, or ask the person to give it."
    )


def _no_edit(path: str) -> str:
    return (
        f"{path[:200]} is protected: lopen and people alone change .claude/settings*, .lopen/ and lopen's own folders."
        "\nLeave it as it is, or tell the person what should change."
    )
