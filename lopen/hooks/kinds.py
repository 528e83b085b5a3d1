"""What kind of call a tool call is to the circuit breaker: a sub-agent, an external model, a hook, or a tool."""

from __future__ import annotations

import os

from lopen.hooks.event import HookEvent

AGENT_TOOLS = ("Task", "Agent")


def kind_of(event: HookEvent, scripts: list[str]) -> str:
    """`scripts`: names of the scripts that call an external model."""
    if event.tool in AGENT_TOOLS:
        return "agent"
    command = event.arguments.get("command") if isinstance(event.arguments, dict) else None
    if not isinstance(command, str):
        return "tool"
    external = any(script and script in command for script in scripts)
    if not external and "lopen" not in command:
        return "tool"
    from lopen.hooks.protect import simple_commands  # only for a command that may be one of these

    words = [c.words for c in simple_commands(command)]
    if any(os.path.basename(word) in scripts for line in words for word in line):
        return "external"
    called = any(
        os.path.basename(word) == "lopen" and line[i + 1 : i + 2] == ("hook",)
        for line in words
        for i, word in enumerate(line)
    )
    return "hook" if called else "tool"
