"""A scripted Messages endpoint on loopback, shared by all tests: real HTTP, real refusals, answers from a list.

    with ScriptedEndpoint([tools(("write_file", {"path": "a.py", "content": "x"})), text("done")]) as endpoint:
        ...  # point the SDK at endpoint.url
    assert len(endpoint.requests) == 2

Requests that offer `submit_verdict` are the oracle's: they are answered by `oracle` and do not use up the script.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from lopen.models.messages import Json, Usage
from lopen.models.recording import result_fields, result_text
from tests import fake_api
from tests.fake_api import Answer, Message, MessagesEndpoint, NoResponse, Raw, Status, estimated_tokens
from tests.messages_api import PromptCache, refusal

Body = dict[str, Any]
Turn = Answer | Callable[[Body], Answer]
Route = tuple[Callable[[Body], bool], "Turn | Iterable[Turn]"]

__all__ = [
    "Message",
    "NoResponse",
    "Raw",
    "ScriptedEndpoint",
    "Status",
    "ToolResult",
    "cut_stream",
    "error_event",
    "invalid_sse",
    "last_result",
    "message",
    "miscounted",
    "opening",
    "reset",
    "silence",
    "status",
    "text",
    "tool_results",
    "tools",
    "verdict",
]


class ScriptedEndpoint:
    """Answers requests in the script's order; a single turn that is no list answers every time.

    `requests` and `oracle_requests` hold the bodies that came, in order. `routes` are asked first: the
    first whose predicate holds answers (a research agent's requests, say). A script that is used up
    answers with a 400 that says so.
    """

    def __init__(
        self,
        script: Turn | Iterable[Turn] = (),
        *,
        oracle: Turn | Iterable[Turn] | None = None,
        routes: Sequence[Route] = (),
        key: str = "",
        first: Callable[[Body], object] = bool,
    ) -> None:
        """`first` is called with each request before it is answered, with several at the same time: it may wait."""
        self.requests: list[Body] = []
        self.oracle_requests: list[Body] = []
        self.routed_requests: list[Body] = []
        self._script = _Queue(script)
        self._oracle = _Queue(verdict() if oracle is None else oracle)
        self._routes = [(predicate, _Queue(turns)) for predicate, turns in routes]
        self._ids = itertools.count(1)
        self._guard = threading.Lock()
        self._first = first
        self._cache = PromptCache()
        self._endpoint = MessagesEndpoint(self._answer, key=key)

    @property
    def url(self) -> str:
        return self._endpoint.url

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to be sent here."""
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "test-key"}

    @property
    def connections(self) -> int:
        """Connections open at this moment."""
        return self._endpoint.connections

    @property
    def left(self) -> int:
        """Turns of the script not used yet."""
        return self._script.left

    def __enter__(self) -> ScriptedEndpoint:
        self._endpoint.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._endpoint.__exit__(kind, error, trace)

    def _answer(self, body: Body) -> Answer:
        if (problem := refusal(body)) is not None:  # what the API refuses never reaches the script
            return Status(400, problem)
        self._first(body)
        with self._guard:
            turn = self._turn(body)
            answer = turn(body) if callable(turn) else turn
            if isinstance(answer, Message):
                answer = _answering_all(answer, body)
            return self._numbered(answer, body) if isinstance(answer, Message) else answer

    def _turn(self, body: Body) -> Turn:
        for predicate, queue in self._routes:
            if predicate(body):
                self.routed_requests.append(body)
                return queue.next()
        if any(tool["name"] == "submit_verdict" for tool in body.get("tools", ())):
            self.oracle_requests.append(body)
            return self._oracle.next()
        self.requests.append(body)
        return self._script.next()

    def _numbered(self, answer: Message, body: Body) -> Message:
        """Tool calls get ids here, so that a turn that answers twice never gives the same id twice."""
        blocks = [self._with_id(block) for block in answer.content]
        unparsed = {block["id"] for block in blocks if block.pop("unparsed", False)}
        usage = answer.usage or self._cache.input_usage(body) + Usage(output_tokens=estimated_tokens(blocks))
        return replace(answer, content=blocks, usage=usage, unparsed=answer.unparsed | unparsed)

    def _with_id(self, block: Json) -> Body:
        if block.get("type") == "tool_use" and "id" not in block:
            return {**block, "id": f"toolu_{next(self._ids):06}"}
        return dict(block)


def asked_criteria(body: Body) -> list[str]:
    """The ids of the acceptance criteria that a request to the judge shows."""
    return [line.partition(":")[0] for part in _parts(body, "Acceptance criteria").values() for line in part]


def asked_questions(body: Body) -> list[str]:
    """The ids of the questions that a request to the judge asks."""
    return list(_parts(body, "Questions about the change: answer each"))


def _parts(body: Body, title: str) -> dict[str, list[str]]:
    """The fenced parts below a title of the evidence: name → lines."""
    content = body["messages"][0]["content"]
    lines = "\n".join(block.get("text", "") for block in content).splitlines()
    parts: dict[str, list[str]] = {}
    here, name = False, ""
    for line in lines:
        if line.startswith("<<<"):
            name = json.loads(line.partition(" ")[2])
        elif line.startswith(">>>"):
            name = ""
        elif not name and line.startswith("# "):
            here = line == f"# {title}"
        elif here and name:
            parts.setdefault(name, []).append(line)
    return parts


def _answering_all(answer: Message, body: Body) -> Message:
    """A verdict that passes and names neither criteria nor questions answers all of them: a judge that does its work."""
    blocks = []
    for block in answer.content:
        given = block.get("input")
        if block.get("name") == "submit_verdict" and isinstance(given, dict) and given.get("passed") is True:
            yes = [{"id": name, "holds": "yes"} for name in asked_criteria(body)]
            justified = [
                {"id": name, "answer": "justified", "because": "asked for"} for name in asked_questions(body)
            ]
            block = {**block, "input": {"criteria": yes, "questions": justified, **given}}
        blocks.append(block)
    return replace(answer, content=blocks)


class _Queue:
    """Turns one after another, or one for ever."""

    def __init__(self, turns: Turn | Iterable[Turn]) -> None:
        single = callable(turns) or isinstance(turns, (Message, Status, Raw, NoResponse))
        self._always: Turn | None = turns if single else None  # type: ignore[assignment]  # narrowed by `single`
        self._turns: list[Turn] = [] if single else list(turns)  # type: ignore[arg-type]  # narrowed by `single`

    @property
    def left(self) -> int:
        return len(self._turns)

    def next(self) -> Turn:
        if self._always is not None:
            return self._always
        return self._turns.pop(0) if self._turns else Status(400, "the script has no turn left")


# What the model says


def message(*blocks: Json, stop_reason: str = "end_turn", usage: Usage | None = None) -> Message:
    """Any content blocks."""
    return Message(blocks, stop_reason, usage)


def text(words: str, *, stop_reason: str = "end_turn", usage: Usage | None = None) -> Message:
    """A turn that only talks."""
    return message({"type": "text", "text": words}, stop_reason=stop_reason, usage=usage)


def tools(
    *calls: tuple[str, Mapping[str, Any]],
    say: str = "",
    stop_reason: str = "tool_use",
    usage: Usage | None = None,
) -> Message:
    """A turn that calls tools, in this order, after saying `say`."""
    words: list[Json] = [{"type": "text", "text": say}] if say else []
    uses: list[Json] = [{"type": "tool_use", "name": name, "input": dict(given)} for name, given in calls]
    return message(*words, *uses, stop_reason=stop_reason, usage=usage)


def verdict(
    passed: bool = True,
    *,
    confidence: str = "high",
    summary: str = "All criteria hold.",
    findings: Sequence[Json] = (),
    criteria: Sequence[Json] = (),
) -> Message:
    """The judge's answer; one that is not passed names an error, or it would be undecided.

    A passing one that names no criteria answers `yes` to each that the request shows, and each question "justified".
    """
    if not passed and not findings:
        findings = [{"severity": "error", "message": summary}]
    given = {
        "passed": passed,
        "confidence": confidence,
        "summary": summary,
        "findings": [dict(finding) for finding in findings],
        **({"criteria": [dict(criterion) for criterion in criteria]} if criteria else {}),
    }
    return tools(("submit_verdict", given))


# What goes wrong


def status(code: int, message: str = "", **headers: str) -> Status:
    """A refusal; `retry_after="3"` becomes the header `retry-after: 3`."""
    return Status(code, message, {name.replace("_", "-"): value for name, value in headers.items()})


def cut_stream(answer: Message | None = None, *, events: int | None = None) -> Raw:
    """A message that hangs up after `events` events; by default just before `message_stop`."""
    whole = [fake_api.encode(event) for event in message_events(answer or text("never finished"))]
    return Raw(whole[:-1] if events is None else whole[:events], then="hang_up")


def error_event(kind: str = "overloaded_error", message: str = "Overloaded", *, after: int = 3) -> Raw:
    """An error event after the first `after` events of a message."""
    begun = [fake_api.encode(event) for event in message_events(text("never finished"))][:after]
    return Raw([*begun, fake_api.encode({"type": "error", "error": {"type": kind, "message": message}})])


def invalid_sse() -> Raw:
    """An event stream that is none."""
    return Raw([b"event: message_start\ndata: {not json\n\n"])


def reset() -> NoResponse:
    """The connection is reset before anything is answered."""
    return NoResponse("reset")


def silence(answer: Message | None = None, *, events: int = 3) -> Raw:
    """A message that falls silent after `events` events, until the endpoint closes."""
    begun = [fake_api.encode(event) for event in message_events(answer or text("never finished"))]
    return Raw(begun[:events], then="silence")


def miscounted(answer: Message, usage: object) -> Raw:
    """A whole message whose `usage` is not what the API reports; None: without any."""
    events = []
    for event in message_events(answer):
        holder = event.get("message", event)
        if "usage" in holder:
            holder["usage"] = usage
        events.append(fake_api.encode(event))
    return Raw(events)


def message_events(answer: Message) -> Iterable[Json]:
    blocks = [
        {"id": f"toolu_raw_{i}", **b} if b["type"] == "tool_use" else b for i, b in enumerate(answer.content)
    ]
    whole = {"id": "msg_raw", "model": "raw", "content": blocks, "stop_reason": answer.stop_reason}
    return fake_api.message_events(whole, answer.usage or Usage(10, 10))


# What came back


def opening(body: Json) -> str:
    """The text of a conversation's first message."""
    return "\n".join(block["text"] for block in body["messages"][0]["content"])


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result as it was sent to the model: `data` is the JSON object on its first line."""

    id: str
    tool: str
    data: dict[str, Any]
    text: str
    is_error: bool


def tool_results(body: Json) -> list[ToolResult]:
    """Every tool result in the conversation, oldest first."""
    blocks = [b for m in body["messages"] if not isinstance(m["content"], str) for b in m["content"]]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    return [
        ToolResult(
            id=block["tool_use_id"],
            tool=names.get(block["tool_use_id"], ""),
            data=result_fields(block),
            text=result_text(block),
            is_error=bool(block.get("is_error")),
        )
        for block in blocks
        if block["type"] == "tool_result"
    ]


def last_result(body: Json, tool: str = "") -> ToolResult:
    """The latest result, of `tool` where one is named; what is missing is an error that shows what is there."""
    found = [result for result in tool_results(body) if tool in ("", result.tool)]
    if not found:
        raise LookupError(f"no result of {tool or 'any tool'} in {json.dumps(body['messages'])[:2000]}")
    return found[-1]
