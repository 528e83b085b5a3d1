"""From stream events to a response: blocks are gathered here, and nothing counts before `message_stop`. Pure.

Known deltas append to their field (`text`, `thinking`, `partial_json`); a kind of block or delta this
version does not know is kept the same way, so that it can be sent back. Whatever breaks the order of the
protocol is a `TransientFailure`: the response is thrown away whole.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast, get_args

from lopen.llm.messages import Json, OnText, Response, StopReason, ToolUse, TransientFailure, Usage

STOP_REASONS: Final = frozenset(get_args(StopReason))
MOST_TOKENS: Final = 100_000_000  # more in one request is a fault of the endpoint, not a count
REPLACED: Final = frozenset({"signature"})  # comes once, whole; everything else textual is appended
USAGE_FIELDS: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
}


class Assembly:
    """One response in the making. Feed it every event, then ask for the response."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._id = ""
        self._model = ""
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._stop_reason = ""
        self.started = False
        self.stopped = False

    def feed(self, event: object) -> None:
        """Take one event. Kinds this version does not know are passed over, as the API asks of its clients."""
        if self.stopped:
            return
        fields = _mapping(event, "an event")
        kind = fields.get("type")
        if kind == "message_start":
            self._start(_mapping(fields.get("message"), "message_start"))
        elif kind == "content_block_start":
            self._open_block(fields)
        elif kind == "content_block_delta":
            self._grow(fields)
        elif kind == "content_block_stop":
            self._block(fields).stopped = True
        elif kind == "message_delta":
            self._conclude(fields)
        elif kind == "message_stop":
            self.stopped = True

    def response(self, request_id: str = "") -> Response:
        """The whole response. Raises `TransientFailure` where the stream ended or contradicted itself before."""
        if not self.started or not self.stopped:
            _broken("the stream ended before message_stop")
        if not all(block.stopped for block in self._blocks.values()):
            _broken("message_stop came inside a content block")
        if not self._stop_reason:
            _broken("message_stop came without a stop reason")
        content, tool_uses = self._finished()
        return Response(
            id=self._id,
            model=self._model,
            content=content,
            tool_uses=tool_uses,
            stop_reason=_stop_reason(self._stop_reason, tool_uses),
            usage=Usage(**{name: self._usage.get(key, 0) for name, key in USAGE_FIELDS.items()}),
            request_id=request_id,
        )

    def _start(self, message: Mapping[str, Any]) -> None:
        if self.started:
            _broken("message_start came twice")
        self.started = True
        self._id = str(message.get("id") or "")
        self._model = str(message.get("model") or "")
        self._count(message.get("usage"))

    def _open_block(self, fields: Mapping[str, Any]) -> None:
        index = fields.get("index")
        if not self.started or not isinstance(index, int) or index in self._blocks:
            _broken("a content block started out of order")
        start = _mapping(fields.get("content_block"), "content_block_start")
        block = _Block({key: value for key, value in start.items() if value is not None})
        self._blocks[index] = block
        if block.start.get("type") == "text" and block.start.get("text"):
            self._on_text(_whole(str(block.start["text"])))

    def _grow(self, fields: Mapping[str, Any]) -> None:
        delta = _mapping(fields.get("delta"), "content_block_delta")
        block = self._block(fields)
        block.add(delta)
        text = delta.get("text")
        if delta.get("type") == "text_delta" and isinstance(text, str) and text:
            self._on_text(_whole(text))

    def _block(self, fields: Mapping[str, Any]) -> _Block:
        index = fields.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None or block.stopped:
            _broken("a delta came for a content block that is not open")
        return block

    def _conclude(self, fields: Mapping[str, Any]) -> None:
        delta = _mapping(fields.get("delta"), "message_delta")
        self._stop_reason = str(delta.get("stop_reason") or self._stop_reason)
        self._count(fields.get("usage"))

    def _count(self, usage: object) -> None:
        """Counts are cumulative, so the largest one said is right; what is no sensible count is passed over."""
        if not isinstance(usage, Mapping):
            return
        for key in USAGE_FIELDS.values():
            said = usage.get(key)
            if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= MOST_TOKENS:
                self._usage[key] = max(said, self._usage.get(key, 0))

    def _finished(self) -> tuple[tuple[Json, ...], tuple[ToolUse, ...]]:
        content: list[Json] = []
        tool_uses: list[ToolUse] = []
        for block in self._blocks.values():
            finished, tool_use = block.finished()
            content.append(finished)
            if tool_use is not None:
                tool_uses.append(tool_use)
        if len({use.id for use in tool_uses}) < len(tool_uses):
            _broken("two tool calls carry the same id")
        return tuple(content), tuple(tool_uses)


@dataclass(slots=True)
class _Block:
    """A content block in the making. Pieces lie in lists, so that a long one costs no more than its length."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)
    stopped: bool = False

    def add(self, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key == "type":
                continue
            if key == "citation":
                self.start["citations"] = [*self.start.get("citations", ()), value]
            elif isinstance(value, str) and key not in REPLACED:
                self.pieces.setdefault(key, []).append(value)
            elif value is not None:
                self.start[key] = value

    def finished(self) -> tuple[Json, ToolUse | None]:
        block = dict(self.start)
        raw = "".join(self.pieces.pop("partial_json", ()))
        for key, pieces in self.pieces.items():
            block[key] = _whole(str(self.start.get(key, "")) + "".join(pieces))
        if "input" not in block and not raw and block.get("type") not in ("tool_use", "server_tool_use"):
            return block, None
        given, error = parse_input(raw) if raw else parse_input(json.dumps(block.get("input") or {}))
        block["input"] = given if given is not None else {}  # the API takes nothing but an object back
        if block.get("type") != "tool_use":
            return block, None
        return block, ToolUse(_name(block, "id"), _name(block, "name"), given, error)


def parse_input(raw: str) -> tuple[Json | None, str]:
    """A tool call's input from its JSON text, and why it cannot be used where it cannot.

    Strict: one object, no key twice, no NaN or infinity, no half of a surrogate pair.
    """
    try:
        value = json.loads(
            _whole(raw), object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite
        )
        if re.search(r"\\u[dD][89a-fA-F]", raw):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return None, f"the input is not valid JSON: {error.msg} at character {error.pos}"
    except UnicodeEncodeError:
        return None, "the input is not valid JSON: it holds half of a surrogate pair"
    except RecursionError:
        return None, "the input is not valid JSON: it is nested too deeply"
    except ValueError as error:
        return None, f"the input is not valid JSON: {error}"
    if not isinstance(value, dict):
        return None, f"the input is a JSON {type(value).__name__}, not an object"
    return value, ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} comes twice")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _whole(text: str) -> str:
    """Text that can be encoded: surrogate halves that came in two pieces are joined, lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _stop_reason(said: str, tool_uses: tuple[ToolUse, ...]) -> StopReason:
    """A reason that a later API version adds is read by what came: calls are run, else the turn ended."""
    if said in STOP_REASONS:
        return cast(StopReason, said)
    return "tool_use" if tool_uses else "end_turn"


def _name(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    if not isinstance(value, str) or not value:
        _broken(f"a tool call has no {key}")
    return value


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _broken(f"{what} is not an object")
    return value


def _broken(how: str) -> NoReturn:
    raise TransientFailure(f"the endpoint's answer was broken off or malformed: {how}")
