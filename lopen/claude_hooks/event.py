"""A hook's event, from Claude Code's present shape or from the plain one, and the kind of call that it announces.

Everything in it is data.
"""

from __future__ import annotations

import os

from lopen.claude_hooks.config import HOOK_FILE
from lopen.core.hashing import blake2b
from lopen.core.quick_stdlib import Value, dumps, loads
from lopen.limits.budget import BudgetUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LARGEST = 64 * 1024 * 1024
MOST_COMPARED = 1_000_000  # characters of an output
_ID_SIGNS = "_.:-"
AGENT_TOOLS = ("Task", "Agent")
EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_EDITS = ("write", "edit", "replace", "insert", "create", "delete", "move", "rename", "update", "patch")
_PATHS = ("file_path", "notebook_path", "path", "relative_path")
# Tools that look at what grows by itself
POLLS = frozenset({"BashOutput", "TaskOutput", "AgentOutput", "Monitor", "Read"})
# Tools that change nothing
READ_TOOLS = frozenset(
    {"Read", "Glob", "Grep", "LS", "NotebookRead", "read_file", "list_files", "search_files"}
)
MARK = "LOPEN_HOOK_SESSION"  # in the environment of what a hook starts
_INTERPRETERS = ("python", "node", "perl", "ruby", "php", "deno", "bun")
_WRAPPED = (
    "env nohup time timeout nice ionice stdbuf setsid exec command xargs sudo doas uv uvx pipx poetry pdm hatch pipenv"
    " conda run parallel watch bash sh zsh dash ksh . source"
)
_WRAPPERS = frozenset(_WRAPPED.split())
_PASSED = r"-.*|\w+=.*|\d+(\.\d+)?[smhd]?|run"
_MAY_BE_HOOKS = ("lopen", "python", "pypy", "sh", "bash", "dash", "zsh")  # names of processes
_NAMED = 1_000  # ancestors and words that are looked at, at most


class Malformed(Exception):
    """Not an event: what is wrong with it."""


class HookEvent(Value):
    """One event of a session. `plain` is the older shape, which wants its answer at the top level."""

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
        fields = loads(raw)
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
    text = dumps(response, sort_keys=True, default=str)[:MOST_COMPARED]
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


def edited(event: HookEvent) -> tuple[str, ...]:
    """The file that the call changed. A tool of an MCP server changes one if its name says so and it is given a path."""
    if not event.ok or not isinstance(event.arguments, dict):
        return ()
    path = _text(event.arguments, *_PATHS)
    if event.tool in EDITORS:
        return (path,)
    own = event.tool.rpartition("__")[2].lower()
    return (path,) if event.tool.startswith("mcp__") and path and any(e in own for e in _EDITS) else ()


def runs(words: Sequence[str], scripts: Sequence[str]) -> bool:
    """Tell whether the program that a simple command runs is one of `scripts`, behind wrappers and interpreters."""
    for word in words[:_NAMED]:
        name = os.path.basename(word)
        if name in scripts:
            return True
        if name not in _WRAPPERS and not name.startswith(_INTERPRETERS) and not _is_passed(word):
            return False
    return False


def _is_passed(word: str) -> bool:
    """The word is an option, a variable or a duration of a wrapper."""
    import re  # only for a command that names one of the scripts

    return re.fullmatch(_PASSED, word) is not None


def _runs_hook(command: str) -> bool:
    if "lopen" not in command or "hook" not in command:
        return False
    from lopen.claude_hooks.protect import simple_commands

    return any(_starts_hook(c.words) for c in simple_commands(command))


def _starts_hook(words: Sequence[str]) -> bool:
    return any(
        (os.path.basename(word) == "lopen" and following == "hook") or word.endswith(HOOK_FILE)
        for word, following in zip(words, (*words[1:], ""), strict=False)
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
        name, above = _status(pid)
        found = _arguments(pid) if name.startswith(_MAY_BE_HOOKS) else []
        if _starts_hook(found[:10]) and not (wrapping and found[-2:] == own[-2:]):
            return ""
        wrapping = wrapping and found[-2:] == own[-2:]
        pid = above
    return None


def _arguments(pid: int) -> list[str]:
    return _read(pid, "cmdline").rstrip("\0").split("\0")


def _status(pid: int) -> tuple[str, int]:
    """The name of a process (that of a script, where it runs one) and its parent; 0 where there is none."""
    head, _, rest = _read(pid, "stat").rpartition(")")
    fields = rest.split()
    return head.partition("(")[2], int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else 0


def _read(pid: int, name: str) -> str:
    try:
        descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 10_000).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
