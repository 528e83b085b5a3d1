"""A hook's event, from Claude Code's present shape or from the plain one. Everything in it is data."""

from __future__ import annotations

import json

from lopen.base.hashing import blake2b
from lopen.base.value import Value
from lopen.limits.budgets.budget import BudgetUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 64 * 1024 * 1024
MOST_COMPARED = 1_000_000  # characters of an output
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
    agent_transcript: str = ""  # of the sub-agent that ends
    launched: str = ""  # the sub-agent that a call started
    in_background: bool = False  # it goes on after the call's end
    source: str = ""  # why a session starts: startup, resume, clear, compact
    closing: str = ""  # the text that a turn ends with
    held_back: bool = False  # a hook has held the end of this turn back already
    background: tuple[str, ...] | None = None  # sub-agents that still run, where the event tells
    output: str = ""  # the beginning of a digest of what the call gave
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
        agent_transcript=_text(fields, "agent_transcript_path"),
        source=_text(fields, "source"),
        closing=_text(fields, "last_assistant_message"),
        held_back=fields.get("stop_hook_active") is True,
        background=_running(fields.get("background_tasks")),
        plain="session_id" not in fields,
    )
    if name not in ("pre-tool-use", "post-tool-use", "post-tool-use-failure"):
        return event
    if not event.tool:
        raise Malformed("the event names no tool")
    if name == "pre-tool-use":
        return event
    response = fields.get("tool_response", fields.get("response"))
    failed = name == "post-tool-use-failure" or fields.get("hook_event_name") == "PostToolUseFailure"
    failed = (failed and fields.get("is_interrupt") is not True) or _failed(response)
    launched = _text(response, "agentId")[:200] if isinstance(response, dict) else ""
    return event.replace(
        ok=not failed,
        usage=usage_of(response),
        model=_model(response),
        launched=launched,
        in_background=isinstance(response, dict) and response.get("status") == "async_launched",
        output=_digest(response),
    )


def _running(tasks: Any) -> tuple[str, ...] | None:
    """The ids of the sub-agents among the tasks in the background; None where the event does not list them."""
    if not isinstance(tasks, list):
        return None
    agents = [t for t in tasks if isinstance(t, dict) and t.get("type") == "subagent"]
    return tuple(_text(task, "id")[:200] for task in agents)


def _digest(response: Any) -> str:
    """A digest of what a call gave, its times left out."""
    if isinstance(response, dict):
        response = {name: value for name, value in response.items() if not name.lower().endswith("ms")}
    text = json.dumps(response, sort_keys=True, default=str)[:MOST_COMPARED]
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


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
    return said or bool(response.get("error"))


AGENT_TOOLS = ("Task", "Agent")
