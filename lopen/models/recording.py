"""A recording of model exchanges: its values, its file, and how it is made.

The file is a sequence of independent gzip members: a header line, then one line of JSON per exchange. A crash while
one is written loses only that one. An exchange contains only its news: the tool calls since the previous one and
the response. `RecordingModel` wraps any model; if the recording cannot be written, the run warns once and continues.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from lopen.core.clock import Clock
from lopen.core.errors import LopenError
from lopen.core.events import Event, Notice
from lopen.core.files import private_folder, replace_file
from lopen.models.messages import (
    Json,
    Model,
    OnText,
    OnUsage,
    Request,
    Response,
    StopReason,
    Usage,
    ignore_usage,
)

VERSION: Final = 1
Redact = Callable[[str], str]
KEPT: Final = frozenset({"type", "id", "name", "tool_use_id", "signature"})  # of a content block
# Patterns of text that differs from run to run without a meaning, and their replacements
MASKS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(r"(?:/private)?(?:/var/folders|/tmp|/var/tmp|/dev/shm)/[^\s'\"`:;,)\]}]+"),
        "<temporary path>",
    ),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<hash>"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,128}\b"), "<hash>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|milliseconds?|s|secs?|seconds?|min|minutes?)\b"), "<duration>"),
)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call with its result. `passed` and `exit_code` are None if the tool does not return them."""

    tool: str
    input: Json
    ok: bool
    passed: bool | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    """A model's response. `unparsed` lists the tool calls whose input was not valid JSON."""

    content: tuple[Json, ...]
    stop_reason: StopReason
    usage: Usage
    unparsed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One request and its response. `after` is the previous exchange of the conversation, or 0 for its first one.

    `opening` is a digest of the first message, which distinguishes conversations.
    """

    n: int
    purpose: str
    step: str
    model: str
    offered: tuple[str, ...]
    calls: tuple[RecordedCall, ...]
    after: int = 0
    opening: str = ""
    response: RecordedResponse = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Recording:
    """A header and its exchanges, in the order they happened."""

    module: str
    created: str
    exchanges: tuple[RecordedExchange, ...]


class UnreadableRecording(LopenError):
    """The file is damaged or is not a recording."""


def header_line(module: str, created: str) -> dict[str, Any]:
    """Return the first line of a recording."""
    return {"lopen_recording": VERSION, "module": module, "created": created}


def member(line: Mapping[str, Any] | RecordedExchange) -> bytes:
    """Return a line as a gzip member; the same line always gives the same bytes."""
    line = asdict(line) if isinstance(line, RecordedExchange) else line
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
    return gzip.compress(text.encode(), 6, mtime=0)


def load(path: Path) -> Recording:
    """Read the recording in `path`, without a last line that a crash truncated.

    Raises:
        UnreadableRecording: the content is not valid; the message names the line.
    """
    lines = list(_lines(path))
    if not lines:
        raise UnreadableRecording(f"{path} is empty: no exchange was recorded")
    header = _header(path, lines[0])
    if header.get("lopen_recording") != VERSION or not isinstance(header.get("module"), str):
        raise UnreadableRecording(
            f"{path}:1: not a recording that this version of lopen reads", hint=f"Expected version {VERSION}."
        )
    exchanges = tuple(_exchange(path, number, text) for number, text in enumerate(lines[1:], start=2))
    return Recording(str(header["module"]), str(header.get("created", "")), exchanges)


def save(path: Path, recording: Recording, *, mode: int | None = None) -> None:
    """Write a whole recording; the file is there complete or not at all."""
    header = member(header_line(recording.module, recording.created))
    replace_file(path, header + b"".join(map(member, recording.exchanges)), mode=mode)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the text of each complete member; raises `UnreadableRecording`."""
    try:
        data = path.read_bytes()
        while data:
            unpack = zlib.decompressobj(wbits=31)
            text = unpack.decompress(data)
            if not unpack.eof:  # truncated by a crash
                return
            yield text
            data = unpack.unused_data
    except zlib.error as error:
        raise UnreadableRecording(f"{path} is damaged, or not a recording: {error}") from error
    except OSError as error:
        raise UnreadableRecording(f"cannot read {path}: {error.strerror or error}") from error


def _header(path: Path, text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecording(f"{path}:1: not a line of JSON") from error
    return value if isinstance(value, dict) else {}


@cache
def _adapter() -> TypeAdapter[RecordedExchange]:
    return TypeAdapter(RecordedExchange)


def _exchange(path: Path, number: int, text: bytes) -> RecordedExchange:
    try:
        return _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        said = [*([".".join(map(str, problem["loc"]))] if problem["loc"] else []), problem["msg"]]
        raise UnreadableRecording(f"{path}:{number}: {': '.join(said)}") from error


class Recorder:
    """Appends to the recording in `path`, creating it if it does not exist. Thread-safe.

    `redact` removes secrets from texts and tool inputs before they are written.

    Raises:
        OSError: the file is not writable.
        UnreadableRecording: the file is not a recording.
    """

    def __init__(self, path: Path, module: str, *, redact: Redact, clock: Clock) -> None:
        self._path = path
        self._redact = redact
        self._guard = threading.Lock()
        self._recorded: dict[str, int] = {}  # digest of a response's content → its exchange
        known = Recording(module, clock.now().isoformat(timespec="seconds"), ())
        if path.exists() and path.stat().st_size:
            known = load(path)
        self._n = len(known.exchanges)
        private_folder(path.parent)
        save(path, known, mode=0o600)  # without a truncated last member

    def record(self, request: Request, response: Response, *, step: str) -> None:
        """Append one exchange to the file."""
        with self._guard:
            exchange = self._exchange(request, response, step)
            self._append(_redacted(exchange, self._redact))
            self._n = exchange.n
            self._recorded[_digest(response.content)] = exchange.n

    def _exchange(self, request: Request, response: Response, step: str) -> RecordedExchange:
        at = last_assistant(request.messages)
        return RecordedExchange(
            n=self._n + 1,
            purpose=request.purpose,
            step=step,
            model=response.model or request.model,
            offered=tuple(tool.name for tool in request.tools),
            calls=calls_since(request.messages),
            after=0 if at is None else self._recorded.get(_digest(request.messages[at]["content"]), 0),
            opening=opening(request),
            response=RecordedResponse(
                tuple(response.content),
                response.stop_reason,
                response.usage,
                tuple(use.id for use in response.tool_uses if use.input is None),
            ),
        )

    def _append(self, exchange: RecordedExchange) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        with os.fdopen(os.open(self._path, flags, 0o600), "ab") as file:
            file.write(member(exchange))


class RecordingModel:
    """A model whose exchanges are recorded. `step` returns the session's current step."""

    def __init__(
        self, inner: Model, recorder: Recorder, step: Callable[[], str], notify: Callable[[Event], None]
    ) -> None:
        self._inner = inner
        self._recorder: Recorder | None = recorder
        self._step = step
        self._notify = notify

    @property
    def local(self) -> bool:
        """Same as in the wrapped model."""
        return bool(getattr(self._inner, "local", False))

    def connect(self) -> None:
        """Same as in the wrapped model."""
        self._inner.connect()

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        """Send through the wrapped model; record the response if it is complete."""
        step = self._step()
        response = self._inner.send(request, on_text, on_usage)
        recorder = self._recorder
        if recorder is not None:
            try:
                recorder.record(request, response, step=step)
            except OSError as error:
                self._recorder = None
                self._notify(
                    Notice("warning", f"the recording ends here: {error}", "The run itself continues.")
                )
        return response


def masked(text: str) -> str:
    """Return `text` with times, hashes, durations and temporary paths replaced."""
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def opening(request: Request) -> str:
    """Return a digest of the conversation's first message, masked."""
    content = request.messages[0]["content"] if request.messages else ""
    blocks: Sequence[Json] = [{"text": content}] if isinstance(content, str) else content
    text = "\n".join(str(block.get("text", "")) for block in blocks)
    return hashlib.blake2b(masked(text).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _digest(content: Any) -> str:
    text = json.dumps(list(content), sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _redacted(exchange: RecordedExchange, redact: Redact) -> RecordedExchange:
    """Redact the model's texts and the tool inputs. Ids and names contain no secrets and must stay distinct."""
    content = tuple(
        {key: value if key in KEPT else _walked(value, redact) for key, value in block.items()}
        for block in exchange.response.content
    )
    return replace(
        exchange,
        calls=tuple(replace(call, input=_walked(call.input, redact)) for call in exchange.calls),
        response=replace(exchange.response, content=content),
    )


def _walked(value: Any, redact: Redact) -> Any:
    """Redact every string in the value, except keys."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _walked(inner, redact) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walked(inner, redact) for inner in value]
    return value


def calls_since(messages: Sequence[Json]) -> tuple[RecordedCall, ...]:
    """Return the calls of the last assistant message, in order, with their results.

    Earlier calls were part of an earlier request.
    """
    at = last_assistant(messages)
    if at is None:
        return ()
    results = {b.get("tool_use_id"): b for message in messages[at + 1 :] for b in _blocks(message)}
    return tuple(
        _call(block, results[block["id"]])
        for block in _blocks(messages[at])
        if block.get("type") == "tool_use" and block.get("id") in results
    )


def last_assistant(messages: Sequence[Json]) -> int | None:
    """Return the index of the last assistant message, or None."""
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] == "assistant"), None)


def result_fields(block: Json) -> dict[str, Any]:
    """Return the JSON object on the first line of a tool result; empty if there is none."""
    line = result_text(block).partition("\n")[0]
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def result_text(block: Json) -> str:
    """Return the complete text of a tool result."""
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))


def _call(use: Json, result: Json) -> RecordedCall:
    fields = result_fields(result)
    ok = fields.get("ok")
    passed, exit_code = fields.get("passed"), fields.get("exit_code")
    return RecordedCall(
        tool=str(use.get("name", "")),
        input=use.get("input") or {},
        ok=ok if isinstance(ok, bool) else not result.get("is_error", False),
        passed=passed if isinstance(passed, bool) else None,
        exit_code=exit_code if isinstance(exit_code, int) and not isinstance(exit_code, bool) else None,
    )


def _blocks(message: Json) -> Iterator[Json]:
    content = message["content"]
    if not isinstance(content, str):
        yield from content
