"""A conversation as it is stored, and rebuilt from that: the same messages, byte for byte.

Refusals of lopen and the judge that were not mended are read from the messages for the next fresh prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lopen.models.messages import Json, Request, Response, SystemBlock, ToolSpec, ToolUse, Usage
from lopen.models.recording import result_fields
from lopen.models.request_body import sendable, text_block
from lopen.store.journal import ConversationStore, StoredConversation
from lopen.verification.findings import Finding
from lopen.workflow.session import Session


@dataclass
class TurnCounts:
    """The counts that bound a conversation, stored with its steps."""

    turn: int = 0
    answers: int = 0  # whole responses that came
    nudges: int = 0
    continues: int = 0
    false_claims: int = 0  # turns that claimed a completion in vain
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class Resumed:
    """A conversation as it is continued.

    `response` is the last one, where its turn is not over: `results` are the results of ended calls, `cut_off` the
    ids of calls that were running and may have had an effect. `notice` goes to the model with the next message.
    """

    request: Request
    messages: tuple[Json, ...]
    counts: TurnCounts
    response: Response | None
    results: dict[str, Json]
    cut_off: frozenset[str]
    evidence: dict[str, Any]
    notice: str = ""


@dataclass(frozen=True)
class Transcript:
    """The messages of one conversation, stored as they come. A tool's result is stored with its call."""

    store: ConversationStore
    messages: list[Json]

    def keep(self, response: Response, counts: TurnCounts) -> None:
        """Add a whole response, before the first of its tools runs."""
        content = sendable(response.content)
        say(self.messages, "assistant", content)
        uses = [{"id": u.id, "name": u.name, "input": u.input, "error": u.error} for u in response.tool_uses]
        body = {"content": content, "stop_reason": response.stop_reason, "uses": uses}
        self.store.add("assistant", body | {"counts": asdict(counts)})

    def say(self, text: str, counts: TurnCounts) -> None:
        """Add text of lopen's own."""
        content = [text_block(text)]
        say(self.messages, "user", content)
        self.store.add("user", {"content": content, "counts": asdict(counts)})

    def stopped(self) -> None:
        """A call waits for a model that could not be asked: it runs again when the conversation goes on."""
        self.store.add("stopped", {})


def opening_of(request: Request, session: Session, opening: str) -> dict[str, Any]:
    """Return the opening that a conversation is stored with: the request's fixed part and its work."""
    return {
        "step": session.step.value,
        "task": session.task.id if session.task else "",
        "iteration": session.limits.iterations,
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
    stored: StoredConversation, tools: tuple[ToolSpec, ...], runs_again: Callable[[ToolUse, Json], bool]
) -> Resumed:
    """Rebuild the conversation from its stored steps. `runs_again`: a call that began so may simply run once more."""
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
    running: dict[str, Json] = {}
    counts = TurnCounts()
    evidence: dict[str, Any] = {}
    for entry in stored.entries:
        match entry.kind:
            case "assistant":
                if response is not None:
                    _answer(messages, response, results)
                response, results, running = _response(entry.body, opening["model"]), {}, {}
                say(messages, "assistant", entry.body["content"])
                counts = TurnCounts(**entry.body["counts"])
            case "user":
                if response is not None:
                    _answer(messages, response, results)
                response = None
                say(messages, "user", entry.body["content"])
                counts = TurnCounts(**entry.body["counts"])
            case "started":
                running[entry.body["id"]] = entry.body
            case "stopped":  # the call waited for a model that could not be asked: it runs again
                running.clear()
            case "result":
                running.pop(entry.body["id"], None)
                results[entry.body["id"]] = entry.body["block"]
                evidence = entry.body["evidence"]
            case _:
                pass
    uses = response.tool_uses if response is not None else ()
    cut_off = frozenset(use.id for use in uses if use.id in running and not runs_again(use, running[use.id]))
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


def _response(body: dict[str, Any], model: str) -> Response:
    uses = tuple(ToolUse(u["id"], u["name"], u["input"], u["error"]) for u in body["uses"])
    return Response("", model, tuple(body["content"]), uses, body["stop_reason"], Usage())


REFUSAL_CHARS = 4_000  # of one refusal: its words, and the tail of its output
SETTLING = (
    "verify_",
    "record_",
    "select_",
    "update_task_status",
    "write_spec",
)  # tools whose last result counts


def still_refused(messages: Sequence[Json]) -> str:
    """Return the last result of each verification and recording tool where it was a refusal, in words."""
    uses: dict[str, str] = {}
    last: dict[str, dict[str, Any]] = {}
    for block in _blocks(messages):
        if block.get("type") == "tool_use" and _settles(block):
            uses[block["id"]] = block["name"]
        elif block.get("type") == "tool_result" and block["tool_use_id"] in uses:
            tool = uses[block["tool_use_id"]]
            if result_fields(block).get("skipped"):
                continue
            last = {name: result for name, result in last.items() if name != tool} | {
                tool: result_fields(block)
            }
    return "\n".join(_in_words(tool, fields) for tool, fields in last.items() if _is_refusal(fields))


def _blocks(messages: Sequence[Json]) -> Iterator[Json]:
    for message in messages:
        if not isinstance(message["content"], str):
            yield from message["content"]


def _settles(use: Json) -> bool:
    """A task given up as failed settles nothing: its refusals stay."""
    return str(use["name"]).startswith(SETTLING) and use["input"].get("status") != "failed"


def _is_refusal(fields: dict[str, Any]) -> bool:
    # The result that a skipped call rests on tells of it.
    return not fields.get("skipped") and (not fields.get("ok", True) or fields.get("passed") is False)


def _in_words(tool: str, fields: dict[str, Any]) -> str:
    said = fields.get("error") or fields.get("summary") or f"exit code {fields.get('exit_code')}"
    lines = [f"{tool}: {said}"]
    lines += [f"- {Finding(**finding)}" for finding in fields.get("findings", ())]
    head = "\n".join(lines)[:REFUSAL_CHARS]
    output = (
        str(fields.get("output", ""))[-(REFUSAL_CHARS - len(head)) :] if len(head) < REFUSAL_CHARS else ""
    )
    return f"{head}\n{output}".rstrip()
