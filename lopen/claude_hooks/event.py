"""A hook's event as Claude Code sends it, and the kind of call that it announces. Everything in it is data."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from lopen.claude_hooks.protect import READERS
from lopen.core.shell import SimpleCommand, simple_commands, unwrapped
from lopen.models.messages import Usage

LARGEST = 64 * 1024 * 1024
MOST_COMPARED = 1_000_000  # characters of an output
LONGEST_READ = 20_000  # characters of a command whose words are read
AGENT_TOOLS = ("Task", "Agent")
EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_EDITS = ("write", "edit", "replace", "insert", "create", "delete", "move", "rename", "update", "patch")
_PATHS = ("file_path", "notebook_path", "path", "relative_path")
# Tools that look at what grows by itself
POLLS = frozenset({"BashOutput", "TaskOutput", "AgentOutput", "Monitor", "Read"})
MARK = "LOPEN_HOOK_SESSION"  # in the environment of a hook's processes
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_INTERPRETERS = ("python", "node", "perl", "ruby", "php", "deno", "bun")


class Malformed(Exception):
    """The input is not an event; the message names the fault."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The call that an event is about, and how it ended."""

    tool: str = ""
    arguments: Any = None
    id: str = ""
    ok: bool = True
    usage: Usage | None = None
    model: str = ""
    launched: str = ""  # the sub-agent that it started
    in_background: bool = False  # it goes on after the call's end
    output: str = ""  # the beginning of a digest of its result

    @property
    def command(self) -> str:
        """The shell text that the call runs; empty where it runs none."""
        return _text(self.arguments, "command") if isinstance(self.arguments, dict) else ""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event of a session."""

    session: str
    call: ToolCall = ToolCall()
    transcript: str = ""
    prompt: str = ""
    cwd: str = ""
    agent: str = ""  # the sub-agent that makes the call
    agent_transcript: str = ""  # of the sub-agent that ends
    source: str = ""  # why a session starts: startup, resume, clear, compact
    background: tuple[str, ...] | None = None  # sub-agents that still run, where the event tells


def parse(raw: bytes, name: str) -> HookEvent:
    """Return the event `name` in `raw`; raise `Malformed` where it is none."""
    if len(raw) > LARGEST:
        raise Malformed(f"the event is longer than {LARGEST // 1024 // 1024} MB")
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the event is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise Malformed("the event is not a JSON object")
    session = _text(fields, "session_id")
    if not _SESSION_ID.fullmatch(session):
        raise Malformed("the event has no usable session_id")
    event = HookEvent(
        session,
        transcript=_text(fields, "transcript_path"),
        prompt=_text(fields, "prompt"),
        cwd=_text(fields, "cwd"),
        agent=_text(fields, "agent_id")[:200],
        agent_transcript=_text(fields, "agent_transcript_path"),
        source=_text(fields, "source"),
        background=_running(fields.get("background_tasks")),
    )
    if name not in ("pre-tool-use", "post-tool-use", "post-tool-use-failure"):
        return event
    call = ToolCall(
        _text(fields, "tool_name")[:200], fields.get("tool_input"), _text(fields, "tool_use_id")[:200]
    )
    if not call.tool:
        raise Malformed("the event names no tool")
    if name != "pre-tool-use":
        interrupted = fields.get("is_interrupt") is True
        call = _ended(call, fields.get("tool_response"), name == "post-tool-use-failure" and not interrupted)
    return replace(event, call=call)


def _ended(call: ToolCall, response: Any, failed: bool) -> ToolCall:
    if not isinstance(response, dict):
        return replace(call, ok=not failed, output=_digest(response))
    failed = failed or response.get("is_error") is True or response.get("success") is False
    return replace(
        call,
        ok=not (failed or response.get("error")),
        usage=usage_of(response),
        model=_text(response, "model")[:100],
        launched=_text(response, "agentId")[:200],
        in_background=response.get("status") == "async_launched",
        output=_digest(response),
    )


def _running(tasks: Any) -> tuple[str, ...] | None:
    """The ids of the sub-agents among the tasks in the background; None where the event does not list them."""
    if not isinstance(tasks, list):
        return None
    agents = [t for t in tasks if isinstance(t, dict) and t.get("type") == "subagent"]
    return tuple(_text(task, "id")[:200] for task in agents)


def _digest(response: Any) -> str:
    """Return a digest of a call's result, without times."""
    if isinstance(response, dict):
        response = {name: value for name, value in response.items() if not name.lower().endswith("ms")}
    text = json.dumps(response, sort_keys=True, default=str)[:MOST_COMPARED]
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def usage_of(holder: Any) -> Usage | None:
    """The `usage` object in a response or message; None where there is none, or a malformed one."""
    usage = holder.get("usage") if isinstance(holder, dict) else None
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [usage.get(name) or 0 for name in names]
    if not all(type(count) is int and 0 <= count < 10**9 for count in counts):
        return None
    return Usage(*counts) if any(counts) else None


def _text(fields: dict[str, Any], *names: str) -> str:
    return next((fields[n] for n in names if isinstance(fields.get(n), str)), "")


def kind_of(call: ToolCall, scripts: Sequence[str]) -> str:
    """Return the kind of a call as circuits know it. `scripts`: names of programs that ask an external model."""
    if call.tool in AGENT_TOOLS:
        return "agent"
    return "external" if any(runs(command.words, scripts) for command in _commands(call)) else "tool"


def _commands(call: ToolCall) -> list[SimpleCommand]:
    """Return the simple commands of the call; none of a very long text."""
    return simple_commands(call.command) if len(call.command) <= LONGEST_READ else []


def edited(call: ToolCall) -> tuple[str, ...]:
    """Return the file that the call changed. A tool of an MCP server changes one if its name and a path say so."""
    if not call.ok or not isinstance(call.arguments, dict):
        return ()
    path = _text(call.arguments, *_PATHS)
    if call.tool in EDITORS:
        return (path,)
    own = call.tool.rpartition("__")[2].lower()
    return (path,) if call.tool.startswith("mcp__") and path and any(e in own for e in _EDITS) else ()


def runs(words: Sequence[str], scripts: Sequence[str]) -> bool:
    """Tell whether the program that a simple command runs is one of `scripts`, behind wrappers and interpreters."""
    named = [os.path.basename(word) for word in unwrapped(words) if not word.startswith("-")]
    return any(name in scripts for name in named[: 2 if "".join(named[:1]).startswith(_INTERPRETERS) else 1])


def polls(call: ToolCall) -> bool:
    """Tell whether the call only looks at something that may grow, so that asking again is work."""
    if call.tool in POLLS:
        return True
    commands = _commands(call)
    return bool(commands) and all(
        os.path.basename(c.words[0]) in (*READERS, "sleep") for c in commands if c.words
    )


def runs_verify(call: ToolCall, lines: Sequence[str]) -> bool:
    """Tell whether the call's text ends with one of the verify commands, so that its exit code is that command's.

    Only `cd`, variables and wrappers (`timeout`) lead there.
    """
    if not lines or call.command.rstrip("; \n").endswith("&"):
        return False
    commands = _commands(call)
    return any(_end_alike(commands, simple_commands(line)) for line in lines)


def _end_alike(commands: list[SimpleCommand], wanted: list[SimpleCommand]) -> bool:
    """Tell whether the last commands are the wanted ones, and run whatever came before them."""
    tail = commands[-len(wanted) :] if wanted else []
    if len(tail) < len(wanted) or not tail or {"|", "|&", "||"} & set(tail[0].before):
        return False
    joined = all(one.before == other.before for one, other in zip(tail[1:], wanted[1:], strict=True))
    return joined and all(
        unwrapped(one.words) == unwrapped(other.words) for one, other in zip(tail, wanted, strict=True)
    )


def passes_verify(call: ToolCall, lines: Sequence[str]) -> bool:
    """Tell whether the call that ended ran a verify command to a good end."""
    return (
        call.ok
        and not (call.command and call.arguments.get("run_in_background"))
        and runs_verify(call, lines)
    )
