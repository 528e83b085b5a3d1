"""A hook's event, from Claude Code's present shape or from the plain one. Everything in it is data."""

from __future__ import annotations

import json
import os

from lopen.base.value import Value
from lopen.limits.budgets.budget import BudgetUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 64 * 1024 * 1024
_ID_SIGNS = "_.:-"


class Malformed(Exception):
    """Not an event: what is wrong with it."""


class HookEvent(Value):
    """What happened. `plain` is the older shape, which wants its answer at the top level."""

    session: str
    tool: str = ""
    arguments: Any = None
    call_id: str = ""
    ok: bool = True
    usage: BudgetUsage | None = None
    model: str = ""
    transcript: str = ""
    prompt: str = ""
    cwd: str = ""
    agent: str = ""  # the sub-agent that makes the call; older versions of Claude Code do not tell
    source: str = ""  # why a session starts: startup, resume, clear, compact
    plain: bool = False


def parse(raw: bytes, name: str) -> HookEvent:
    """The event `name` in `raw`; Malformed where it is none."""
    if len(raw) > LARGEST:
        raise Malformed(f"the event is longer than {LARGEST // 1024 // 1024} MB")
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the event is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise Malformed("the event is not a JSON object")
    session = _text(fields, "session_id", "sessionId")
    if not _is_id(session):
        raise Malformed("the event has no usable session_id")
    event = HookEvent(
        session,
        tool=_text(fields, "tool_name", "tool")[:200],
        arguments=fields.get("tool_input", fields.get("arguments")),
        call_id=_text(fields, "tool_use_id")[:200],
        transcript=_text(fields, "transcript_path"),
        prompt=_text(fields, "prompt"),
        cwd=_text(fields, "cwd"),
        agent=_text(fields, "agent_id")[:200],
        source=_text(fields, "source"),
        plain="session_id" not in fields,
    )
    if name not in ("pre-tool-use", "post-tool-use"):
        return event
    if not event.tool:
        raise Malformed("the event names no tool")
    response = fields.get("tool_response", fields.get("response"))
    failed = fields.get("hook_event_name") == "PostToolUseFailure" or _failed(response)
    return event.replace(ok=not failed, usage=usage_of(response), model=_model(response))


def usage_of(holder: Any) -> BudgetUsage | None:
    """The `usage` object in a response or message; None where there is none, or a malformed one."""
    usage = holder.get("usage") if isinstance(holder, dict) else None
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [usage.get(name) or 0 for name in names]
    if not all(type(count) is int and 0 <= count < 10**9 for count in counts):
        return None
    return BudgetUsage(*counts) if any(counts) else None


def _is_id(text: str) -> bool:
    return (
        len(text) <= 200
        and text[:1].isalnum()
        and all(c.isalnum() or c in _ID_SIGNS for c in text)
        and text.isascii()
    )


def _text(fields: dict[str, Any], *names: str) -> str:
    return next((fields[n] for n in names if isinstance(fields.get(n), str)), "")


def _model(response: Any) -> str:
    return _text(response, "model")[:100] if isinstance(response, dict) else ""


def _failed(response: Any) -> bool:
    if not isinstance(response, dict):
        return False
    said = response.get("is_error") is True or response.get("success") is False
    return said or response.get("interrupted") is True or bool(response.get("error"))


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
    from lopen.claude_hooks.protect import simple_commands  # only for a command that may be one of these

    words = [c.words for c in simple_commands(command)]
    if any(os.path.basename(word) in scripts for line in words for word in line):
        return "external"
    called = any(
        os.path.basename(word) == "lopen" and line[i + 1 : i + 2] == ("hook",)
        for line in words
        for i, word in enumerate(line)
    )
    return "hook" if called else "tool"
