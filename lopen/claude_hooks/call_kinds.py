"""What kind of call an event announces: a tool, a sub-agent, a program that asks an external model, a nested hook."""

from __future__ import annotations

import os
import re

from lopen.claude_hooks.event import AGENT_TOOLS, HookEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
# Tools that look at what grows by itself
POLLS = frozenset({"BashOutput", "TaskOutput", "AgentOutput", "Monitor", "Read"})
MARK = "LOPEN_HOOK_SESSION"  # in the environment of what a hook starts
_INTERPRETERS = ("python", "node", "perl", "ruby", "php", "deno", "bun")
_WRAPPED = (
    "env nohup time timeout nice ionice stdbuf setsid exec command xargs sudo doas uv uvx pipx poetry pdm hatch pipenv"
    " conda run parallel watch bash sh zsh dash ksh . source"
)
_WRAPPERS = frozenset(_WRAPPED.split())
_PASSED = r"-.*|\w+=.*|\d+(\.\d+)?[smhd]?|run"
_NAMED = 1_000  # ancestors and words that are looked at, at most


def kind_of(event: HookEvent, scripts: list[str]) -> str:
    """The kind of a call as circuits know it. `scripts`: names of programs that ask an external model."""
    if event.tool in AGENT_TOOLS:
        return "agent"
    command = command_of(event)
    if not any(script and script in command for script in scripts):
        return "hook" if _runs_hook(command) else "tool"
    from lopen.claude_hooks.protect import simple_commands  # only for a command that may be one of these

    return "external" if any(runs(c.words, scripts) for c in simple_commands(command)) else "tool"


def command_of(event: HookEvent) -> str:
    """The shell text that the call runs; empty where it runs none."""
    command = event.arguments.get("command") if isinstance(event.arguments, dict) else None
    return command if isinstance(command, str) else ""


def runs(words: Sequence[str], scripts: Sequence[str]) -> bool:
    """Tell whether the program that a simple command runs is one of `scripts`, behind wrappers and interpreters."""
    for word in words[:_NAMED]:
        name = os.path.basename(word)
        if name in scripts:
            return True
        if not (name in _WRAPPERS or name.startswith(_INTERPRETERS) or re.fullmatch(_PASSED, word)):
            return False
    return False


def _runs_hook(command: str) -> bool:
    if "lopen" not in command or "hook" not in command:
        return False
    from lopen.claude_hooks.protect import simple_commands

    return any(
        os.path.basename(word) == "lopen" and c.words[i + 1 : i + 2] == ("hook",)
        for c in simple_commands(command)
        for i, word in enumerate(c.words)
    )


def polls(event: HookEvent) -> bool:
    """Tell whether the call only looks at something that may grow, so that asking again is work."""
    if event.tool in POLLS:
        return True
    command = command_of(event)
    if not command or len(command) > _NAMED:
        return False
    from lopen.claude_hooks.protect import simple_commands
    from lopen.claude_hooks.protected_places import READERS

    return all(c.name in READERS or c.name == "sleep" for c in simple_commands(command))


def nested_in(environ: os._Environ[str] | dict[str, str]) -> str | None:
    """The session whose hook this process runs inside ("" where it is unknown); None outside of every hook.

    The mark stands in the environment of what a hook starts; where it was taken away, the ancestors tell.
    """
    if MARK in environ:
        return environ[MARK]
    own, pid = _arguments(os.getpid()), os.getppid()
    wrapping = True  # a shell script or launcher around this very command
    for _ in range(_NAMED):
        if pid <= 1:
            return None
        found = _arguments(pid)
        if _is_hook(found) and not (wrapping and found[-2:] == own[-2:]):
            return ""
        wrapping = wrapping and found[-2:] == own[-2:]
        pid = _parent(pid)
    return None


def _is_hook(arguments: list[str]) -> bool:
    return any(
        os.path.basename(word) == "lopen" and arguments[i + 1 : i + 2] == ["hook"]
        for i, word in enumerate(arguments[:10])
    )


def _arguments(pid: int) -> list[str]:
    return _read(pid, "cmdline").rstrip("\0").split("\0")


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else 0


def _read(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(10_000).decode("utf-8", "replace")
    except OSError:
        return ""
