"""Build a response from stream events; it is complete only after `message_stop`. Pure.

Known deltas append to their field (`text`, `thinking`, `partial_json`). Unknown kinds of blocks and deltas are stored
the same way, so that they can be sent back. A violation of the protocol's order is a `TransientFailure`, and the
whole response is discarded.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn, cast, get_args

from lopen.models.messages import (
    Json,
    OnText,
    OnUsage,
    Response,
    StopReason,
    ToolUse,
    TransientFailure,
    Usage,
    ignore_usage,
)

STOP_REASONS: Final = frozenset(get_args(StopReason))
MAX_TOKENS: Final = 100_000_000  # a larger count for one request is an error of the endpoint
BYTES_PER_TOKEN: Final = (
    3  # of streamed output: fewer than a token has on average, so that the estimate is not too low
)
REPLACED: Final = frozenset({"signature"})  # arrives once and complete; other texts are appended
UNCOUNTED: Final = REPLACED | {"type"}  # of a delta: no output of the model
INPUT_FIELDS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
OUTPUT_FIELD: Final = "output_tokens"


class StreamParser:
    """Builds one response: pass every event to `feed`, then call `response`."""

    def __init__(self, on_text: OnText, on_usage: OnUsage = ignore_usage) -> None:
        self._on_text = on_text
        self._on_usage = on_usage
        self._streamed_bytes = 0
        self._id = ""
        self._model = ""
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._stop_reason = ""
        self.started = False
        self.stopped = False

    def feed(self, event: object) -> None:
        """Process one event. Unknown kinds are ignored, as the API requires."""
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
        if self.started and not self.stopped:
            self._on_usage(self._usage_so_far())

    def _usage_so_far(self) -> Usage:
        """Return the announced usage, with the output that has come as an estimate."""
        usage = self._announced()
        streamed = -(-self._streamed_bytes // BYTES_PER_TOKEN)
        return replace(usage, output_tokens=max(usage.output_tokens, streamed))

    def _whole_usage(self) -> Usage:
        """Return the reported usage; what streamed in where no output is reported."""
        known = self._announced() if OUTPUT_FIELD in self._usage else self._usage_so_far()
        whole = OUTPUT_FIELD in self._usage and any(key in self._usage for key in INPUT_FIELDS)
        return replace(known, estimated=not whole)

    def _announced(self) -> Usage:
        read, written, cached = (self._usage.get(key, 0) for key in INPUT_FIELDS)
        return Usage(read, self._usage.get(OUTPUT_FIELD, 0), written, cached)

    def response(self, request_id: str = "") -> Response:
        """Return the complete response; raises `TransientFailure` if the stream was incomplete or inconsistent."""
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
            usage=self._whole_usage(),
            request_id=request_id,
        )

    def _start(self, message: Mapping[str, Any]) -> None:
        if self.started:
            _broken("message_start came twice")
        self.started = True
        self._id = _whole(str(message.get("id") or ""))
        self._model = _whole(str(message.get("model") or ""))
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
        self._streamed_bytes += sum(
            len(value.encode("utf-8", "surrogatepass"))
            for key, value in delta.items()
            if isinstance(value, str) and key not in UNCOUNTED
        )
        text = delta.get("text")
        if delta.get("type") == "text_delta" and isinstance(text, str) and text:
            self._on_text(_whole(text))
        piece, tool = delta.get("partial_json"), block.start.get("name")
        if isinstance(piece, str) and piece and isinstance(tool, str):
            self._on_text(_whole(piece), tool)

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
        """Update the usage. Counts are cumulative, so the largest is right; invalid ones are ignored."""
        if not isinstance(usage, Mapping):
            return
        for key in (*INPUT_FIELDS, OUTPUT_FIELD):
            count = usage.get(key)
            if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_TOKENS:
                self._usage[key] = max(count, self._usage.get(key, 0))

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
    """A content block under construction. Lists of pieces keep the cost linear in its length."""

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
        block = _encodable(block)
        if "input" not in block and not raw and block.get("type") not in ("tool_use", "server_tool_use"):
            return block, None
        given, error = parse_input(raw) if raw else parse_input(json.dumps(block.get("input") or {}))
        block["input"] = given if given is not None else {}  # the API accepts only an object
        if block.get("type") != "tool_use":
            return block, None
        return block, ToolUse(_name(block, "id"), _name(block, "name"), given, error)


def parse_input(raw: str) -> tuple[Json | None, str]:
    """Parse a tool call's input; return it and "", or None and the reason why it is not valid.

    Strict: one object, no duplicate key, no NaN or infinity, no lone surrogate.
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
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {next(key for key, count in counts.items() if count > 1)!r} comes twice")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def _whole(text: str) -> str:
    """Return text that can be encoded: join surrogate pairs that were split, and replace lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _encodable(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block whose texts can all be encoded."""
    text = json.dumps({key: value for key, value in block.items() if key != "input"}, ensure_ascii=False)
    whole = _whole(text)
    return (
        block if whole is text else {**json.loads(whole), **{k: v for k, v in block.items() if k == "input"}}
    )


def _stop_reason(reason: str, tool_uses: tuple[ToolUse, ...]) -> StopReason:
    """Return the reason; an unknown one becomes "tool_use" if there are calls, or else "end_turn"."""
    if reason in STOP_REASONS:
        return cast(StopReason, reason)
    return "tool_use" if tool_uses else "end_turn"


def _name(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    if not isinstance(value, str) or not value:
        _broken(f"a tool call has no {key}")
    return _whole(value)


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _broken(f"{what} is not an object")
    return value


def _broken(how: str) -> NoReturn:
    raise TransientFailure(f"the endpoint's answer was incomplete or malformed: {how}")
