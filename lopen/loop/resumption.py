"""Continuing a conversation that a kill or a pause cut off, from the turn where it stopped.

The stored messages are sent again byte for byte; a call that was running is answered as interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lopen.llm.messages import Json, Request, Response, SystemBlock, ToolSpec, ToolUse, Usage
from lopen.loop.context import SessionContext
from lopen.storage.conversations import StoredConversation
from lopen.workflow.session import PauseKind, Session
from lopen.workflow.steps import PLANNING_STEPS, Step

# Pauses that say nothing of the conversation: it goes on where it stopped
CONTINUED: frozenset[PauseKind] = frozenset({"interrupted", "endpoint", "budget", "storage", "person"})
FILES_NAMED = 20
CALLS_LISTED = 40


@dataclass(frozen=True, slots=True)
class Resumed:
    """A conversation as it is continued.

    `response` is the last one, where its turn is not over: `results` are those of its calls that ended,
    `running` the ids of calls that were running. `counts` are the conversation's own.
    """

    request: Request
    messages: tuple[Json, ...]
    counts: dict[str, int]
    response: Response | None
    results: dict[str, Json]
    running: frozenset[str]
    evidence: dict[str, Any]


def opening_of(request: Request, session: Session, opening: str) -> dict[str, Any]:
    """Return what a conversation is stored under: the request's fixed part and the work it belongs to."""
    return {
        "step": session.step.value,
        "task": session.task.id if session.task else "",
        "iteration": session.iterations,
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": [{"text": block.text, "cached": block.cached} for block in request.system],
        "tools": digest(request.tools),
        "opening": opening,
    }


def digest(tools: Sequence[ToolSpec]) -> str:
    """Return a hash of the offered tools: a conversation goes on only with the same ones."""
    shown = [[tool.name, tool.description, tool.input_schema] for tool in tools]
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def fits(context: SessionContext, stored: StoredConversation) -> bool:
    """Return whether the stored conversation is that of the session's present work, with the same model and tools."""
    session, opening = context.record.journal.session, stored.opening
    if opening["iteration"] != session.iterations or any(
        entry.body.get("recorded") for entry in stored.entries if entry.kind == "result"
    ):
        return False
    began = Step(opening["step"])
    planning = began in PLANNING_STEPS and session.step in PLANNING_STEPS
    if not planning and (began is not session.step or opening["task"] != _task_id(session)):
        return False
    tools = tuple(tool.spec for tool in context.registry.offered(session.step))
    return bool(opening["model"] == context.model_for(session.step) and opening["tools"] == digest(tools))


def _task_id(session: Session) -> str:
    return session.task.id if session.task else ""


def resumed(context: SessionContext, stored: StoredConversation) -> Resumed:
    """Rebuild the conversation from its stored steps."""
    opening = stored.opening
    request = Request(
        model=opening["model"],
        system=tuple(SystemBlock(block["text"], block["cached"]) for block in opening["system"]),
        messages=(),
        tools=tuple(tool.spec for tool in context.registry.offered(context.record.journal.session.step)),
        max_tokens=opening["max_tokens"],
    )
    messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": opening["opening"]}]}]
    response: Response | None = None
    results: dict[str, Json] = {}
    running: set[str] = set()
    counts: dict[str, int] = {}
    evidence: dict[str, Any] = {}
    for entry in stored.entries:
        match entry.kind:
            case "assistant":
                if response is not None:
                    _answer(messages, response, results)
                response, results, running = _response(entry.body, opening["model"]), {}, set()
                say(messages, "assistant", entry.body["content"])
                counts = entry.body["counts"]
            case "user":
                if response is not None:
                    _answer(messages, response, results)
                response = None
                say(messages, "user", entry.body["content"])
                counts = entry.body["counts"]
            case "started":
                running.add(entry.body["id"])
            case "stopped":  # the call waited for a model that could not be asked: it runs again
                running.clear()
            case "result":
                running.discard(entry.body["id"])
                results[entry.body["id"]] = entry.body["block"]
                evidence = entry.body["evidence"]
            case _:
                pass
    return Resumed(request, tuple(messages), counts, response, results, frozenset(running), evidence)


def _answer(messages: list[Json], response: Response, results: dict[str, Json]) -> None:
    say(messages, "user", [results[use.id] for use in response.tool_uses if use.id in results])


def say(messages: list[Json], role: str, content: Sequence[Json]) -> None:
    """Add to the messages; the endpoint refuses empty content, and roles alternate."""
    if not content:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1] = {"role": role, "content": [*messages[-1]["content"], *content]}
    else:
        messages.append({"role": role, "content": list(content)})


def stored_response(response: Response, content: Sequence[Json], counts: dict[str, int]) -> dict[str, Any]:
    """Return a response as it is stored before the first of its tools runs."""
    return {
        "content": list(content),
        "stop_reason": response.stop_reason,
        "uses": [
            {"id": u.id, "name": u.name, "input": u.input, "error": u.error} for u in response.tool_uses
        ],
        "counts": counts,
    }


def _response(body: dict[str, Any], model: str) -> Response:
    uses = tuple(ToolUse(u["id"], u["name"], u["input"], u["error"]) for u in body["uses"])
    return Response("", model, tuple(body["content"]), uses, body["stop_reason"], Usage())


def changed_files(context: SessionContext, stored: StoredConversation) -> tuple[str, ...]:
    """Return the project's files that changed after the last stored step, and those it wrote that are gone."""
    root = context.project.root
    own = f"specs/{context.record.journal.session.module}/"
    found = []
    for path in context.project.workspace.list_files().files:
        try:
            changed = (root / path).lstat().st_mtime_ns > stored.at_ns
        except OSError:
            continue
        if changed and not path.startswith(own):
            found.append(path)
    gone = [p for p in dict.fromkeys(_written(stored)) if not (root / p).exists()]
    return (*found, *(f"{path} (deleted)" for path in gone))


def _written(stored: StoredConversation) -> Iterator[str]:
    done = {e.body["id"] for e in stored.entries if e.kind == "result" and e.body.get("ok")}
    for entry in stored.entries:
        for use in entry.body["uses"] if entry.kind == "assistant" else ():
            if use["name"] in ("write_file", "edit_file") and use["id"] in done:
                yield str((use["input"] or {}).get("path", ""))


def changes_notice(paths: Sequence[str]) -> str:
    """Return the line that tells the model of changed files; empty where none changed."""
    if not paths:
        return ""
    more = f" and {len(paths) - FILES_NAMED} more" if len(paths) > FILES_NAMED else ""
    return (
        f"The run was interrupted here. Files changed since: {', '.join(paths[:FILES_NAMED])}{more}."
        " Read them again before you rely on what you saw of them."
    )


def summary(stored: StoredConversation) -> str:
    """Return in a few lines what was read and done, for a conversation that cannot be continued."""
    done = {e.body["id"] for e in stored.entries if e.kind == "result"}
    lines = []
    for entry in stored.entries:
        for use in entry.body["uses"] if entry.kind == "assistant" else ():
            given = use["input"] or {}
            about = next(
                (str(given[k]) for k in ("path", "command", "pattern", "section") if given.get(k)), ""
            )
            state = "" if use["id"] in done else " (interrupted)"
            lines.append(f"- {use['name']} {' '.join(about.split())[:100]}{state}".rstrip())
    if not lines:
        return ""
    return "Before the interruption these calls were made:\n" + "\n".join(lines[-CALLS_LISTED:])
