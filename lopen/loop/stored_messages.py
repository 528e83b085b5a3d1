"""A conversation as it is stored, and rebuilt from that: the same messages, byte for byte. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lopen.llm.messages import Json, Request, Response, SystemBlock, ToolSpec, ToolUse, Usage
from lopen.storage.conversations import StoredConversation
from lopen.workflow.session import Session


@dataclass(frozen=True, slots=True)
class Resumed:
    """A conversation as it is continued.

    `response` is the last one, where its turn is not over: `results` are those of its calls that ended, `cut_off` the
    ids of calls that were running and may have had an effect. `counts` are the conversation's own.
    """

    request: Request
    messages: tuple[Json, ...]
    counts: dict[str, int]
    response: Response | None
    results: dict[str, Json]
    cut_off: frozenset[str]
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


def rebuilt(
    stored: StoredConversation, tools: tuple[ToolSpec, ...], runs_again: Callable[[str], bool]
) -> Resumed:
    """Rebuild the conversation from its stored steps. `runs_again`: a tool of that name may simply run once more."""
    opening = stored.opening
    request = Request(
        model=opening["model"],
        system=tuple(SystemBlock(block["text"], block["cached"]) for block in opening["system"]),
        messages=(),
        tools=tools,
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
    uses = response.tool_uses if response is not None else ()
    cut_off = frozenset(use.id for use in uses if use.id in running and not runs_again(use.name))
    return Resumed(request, tuple(messages), counts, response, results, cut_off, evidence)


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
