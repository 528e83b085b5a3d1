"""A recording of model exchanges: its values and its file, which is read as untrusted input.

The file is a sequence of independent gzip members: a header line, then one line of JSON per exchange. A crash while
one is written loses only that one. An exchange contains only what is new: the tool calls since the previous one and
the response.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast, get_args

from lopen.base.errors import LopenError
from lopen.base.files import replace_file
from lopen.llm.messages import Json, StopReason, Usage

VERSION: Final = 1
MOST_FILE_BYTES: Final = 64 * 2**20
MOST_LINE_BYTES: Final = 32 * 2**20
CHUNK: Final = 16 * 1024
MOST_EXCHANGES: Final = 100_000
MOST_TOTAL_BYTES: Final = 512 * 2**20


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call with its result. `passed` and `exit_code` are None if the tool does not return them."""

    tool: str
    input: Json
    ok: bool
    passed: bool | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One request and its response. `after` is the previous exchange of the conversation, or 0 for its first one.

    `opening` is a digest of the first message, which distinguishes parallel conversations. `unparsed` lists the
    tool calls whose input was not valid JSON.
    """

    n: int
    purpose: str
    step: str
    model: str
    offered: tuple[str, ...]
    calls: tuple[RecordedCall, ...]
    content: tuple[Json, ...]
    stop_reason: StopReason
    usage: Usage
    after: int = 0
    opening: str = ""
    unparsed: tuple[str, ...] = ()


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


def exchange_line(exchange: RecordedExchange) -> dict[str, Any]:
    """Return the line of JSON of an exchange."""
    fields = asdict(exchange)
    response = {name: fields.pop(name) for name in ("content", "stop_reason", "usage", "unparsed")}
    return {**fields, "response": response}


def member(line: Mapping[str, Any]) -> bytes:
    """Return a line as a gzip member; the same line always gives the same bytes."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
    return gzip.compress(text.encode(), 6, mtime=0)


def load(path: Path) -> Recording:
    """Read the recording in `path`, without a last member that a crash truncated. Time and memory are bounded.

    Raises:
        UnreadableRecording: the content is not valid; the message names the line.
    """
    lines = enumerate((text for text, _ in read_members(path)), start=1)
    number, first = next(lines, (0, b""))
    if not number:
        raise UnreadableRecording(f"{path} is empty: no exchange was recorded")
    header = _object(path, number, first)
    if header.get("lopen_recording") != VERSION or not isinstance(header.get("module"), str):
        raise UnreadableRecording(
            f"{path}:1: not a recording that this version of lopen reads", hint=f"Expected version {VERSION}."
        )
    exchanges: list[RecordedExchange] = []
    for number, text in lines:
        if number > MOST_EXCHANGES:
            raise UnreadableRecording(f"{path}:{number}: more than {MOST_EXCHANGES} exchanges")
        exchanges.append(_exchange(path, number, text))
    return Recording(str(header["module"]), str(header.get("created", "")), tuple(exchanges))


def save(path: Path, recording: Recording) -> None:
    """Write a whole recording; the file is there complete or not at all."""
    lines = [header_line(recording.module, recording.created), *map(exchange_line, recording.exchanges)]
    replace_file(path, b"".join(map(member, lines)), mode=None)


def merge(recordings: Iterable[Recording]) -> Recording:
    """Join the parts of a session's recording, renumbering exchanges. The header is that of the first part."""
    parts = list(recordings)
    exchanges: list[RecordedExchange] = []
    for part in parts:
        base = len(exchanges)
        numbers = {exchange.n: base + i for i, exchange in enumerate(part.exchanges, start=1)}
        exchanges += [replace(e, n=numbers[e.n], after=numbers.get(e.after, 0)) for e in part.exchanges]
    return replace(parts[0], exchanges=tuple(exchanges))


def read_members(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the text of each complete member and its end in the file; raises `UnreadableRecording`."""
    try:
        size = path.stat().st_size
        if size > MOST_FILE_BYTES:
            raise UnreadableRecording(f"{path} is larger than {MOST_FILE_BYTES // 2**20} MB")
        data = memoryview(path.read_bytes())
    except OSError as error:
        raise UnreadableRecording(f"cannot read {path}: {error.strerror or error}") from error
    at, total, number = 0, 0, 0
    while at < len(data):
        number += 1
        text, used = _inflated(path, number, data, at)
        if used is None:
            return  # truncated by a crash
        at, total = at + used, total + len(text)
        if total > MOST_TOTAL_BYTES:
            raise UnreadableRecording(f"{path}:{number}: unpacks to more than {MOST_TOTAL_BYTES // 2**20} MB")
        yield text, at


def _inflated(path: Path, number: int, data: memoryview, at: int) -> tuple[bytes, int | None]:
    """Decompress one member; return its text and compressed size, or None as size if the data ends inside it.

    The input is split into small chunks, because the decompressor copies all bytes after the member's end.
    """
    unpack = zlib.decompressobj(wbits=31)
    text, place = bytearray(), at
    while not unpack.eof and place < len(data):
        chunk = data[place : place + CHUNK]
        place += len(chunk)
        try:
            text += unpack.decompress(chunk, MOST_LINE_BYTES + 1 - len(text))
        except zlib.error as error:
            raise UnreadableRecording(f"{path}:{number}: damaged or not a recording ({error})") from error
        if len(text) > MOST_LINE_BYTES:
            raise UnreadableRecording(f"{path}:{number}: a line of more than {MOST_LINE_BYTES // 2**20} MB")
    return bytes(text), place - at - len(unpack.unused_data) if unpack.eof else None


def _object(path: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecording(f"{path}:{number}: not a line of JSON") from error
    if not isinstance(value, dict):
        raise UnreadableRecording(f"{path}:{number}: not a JSON object")
    return value


def _exchange(path: Path, number: int, text: bytes) -> RecordedExchange:
    line = _object(path, number, text)
    try:
        response = _typed(line, "response", dict)
        return RecordedExchange(
            n=_typed(line, "n", int),
            purpose=_typed(line, "purpose", str),
            step=_typed(line, "step", str),
            model=_typed(line, "model", str),
            offered=tuple(_each(line, "offered", str)),
            calls=tuple(_call(call) for call in _each(line, "calls", dict)),
            content=tuple(_block(block) for block in _each(response, "content", dict)),
            stop_reason=_stop_reason(response),
            usage=Usage(**{name: _count(_typed(response, "usage", dict), name) for name in Usage.__slots__}),
            after=_typed(line, "after", int),
            opening=_typed(line, "opening", str),
            unparsed=tuple(_each(response, "unparsed", str)),
        )
    except ValueError as error:
        raise UnreadableRecording(f"{path}:{number}: {error}") from error


def _call(line: Json) -> RecordedCall:
    for name, kind in (("passed", bool), ("exit_code", int)):
        if line.get(name) is not None:
            _typed(line, name, kind)
    return RecordedCall(
        tool=_typed(line, "tool", str),
        input=_typed(line, "input", dict),
        ok=_typed(line, "ok", bool),
        passed=line.get("passed"),
        exit_code=line.get("exit_code"),
    )


def _block(block: Json) -> Json:
    """Return a content block if it has the fields that streaming its kind needs."""
    kind = _typed(block, "type", str)
    for name in {"text": ("text",), "thinking": ("thinking",), "tool_use": ("id", "name")}.get(kind, ()):
        _typed(block, name, str)
    if kind == "tool_use":
        _typed(block, "input", dict)
    return block


def _stop_reason(response: Json) -> StopReason:
    reason = _typed(response, "stop_reason", str)
    if reason not in get_args(StopReason):
        raise ValueError(f"stop_reason {reason[:40]!r} is unknown")
    return cast(StopReason, reason)


def _count(usage: Json, name: str) -> int:
    count: int = _typed(usage, name, int)
    if count < 0:
        raise ValueError(f"{name} is negative")
    return count


def _typed(line: Json, name: str, kind: type) -> Any:
    value = line.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} is missing or not of type {kind.__name__}")
    return value


def _each(line: Json, name: str, kind: type) -> list[Any]:
    values: list[Any] = _typed(line, name, list)
    if not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{name} contains a value that is not of type {kind.__name__}")
    return values
