"""A recording of model exchanges: its values, its file, and reading one that cannot be trusted.

The file is a run of gzip members, each whole in itself: a header line, then one line of JSON an exchange.
A crash while one is written loses that one. An exchange keeps what is new in it (the calls made since the
one before, the response), never the conversation so far.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast, get_args

from lopen.base.atomic_files import replace_file
from lopen.base.errors import LopenError
from lopen.llm.messages import Json, StopReason, Usage

VERSION: Final = 1
MOST_FILE_BYTES: Final = 64 * 2**20
MOST_LINE_BYTES: Final = 32 * 2**20
CHUNK: Final = 16 * 1024
MOST_EXCHANGES: Final = 100_000
MOST_TOTAL_BYTES: Final = 512 * 2**20


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call with its result. `passed` and `exit_code` are None where the tool gives none."""

    tool: str
    input: Json
    ok: bool
    passed: bool | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One request and its response. `after` is the exchange before it in its conversation, 0 where it begins one.

    `opening` is a digest of the request's first words, by which conversations that run side by side are
    told apart. `unparsed` names the tool calls whose input was no valid JSON.
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
    """A file is no recording, or a damaged one."""


def header_line(module: str, created: str) -> dict[str, Any]:
    """The first line of a recording."""
    return {"lopen_recording": VERSION, "module": module, "created": created}


def exchange_line(exchange: RecordedExchange) -> dict[str, Any]:
    """An exchange as its line of JSON."""
    fields = asdict(exchange)
    response = {name: fields.pop(name) for name in ("content", "stop_reason", "usage", "unparsed")}
    return {**fields, "response": response}


def member(line: Mapping[str, Any]) -> bytes:
    """One line as a gzip member of its own, the same bytes for the same line."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
    return gzip.compress(text.encode(), 6, mtime=0)


def load(path: Path) -> Recording:
    """The recording in `path`. A last member that a crash cut off is left out.

    Raises `Unreadable`, naming the line, for anything else that is not as written here; bounded in time and memory.
    """
    lines = enumerate((text for text, _ in read_members(path)), start=1)
    number, first = next(lines, (1, b""))
    header = _object(path, number, first)
    if header.get("lopen_recording") != VERSION or not isinstance(header.get("module"), str):
        raise UnreadableRecording(
            f"{path}:1: not a recording that this version reads", hint=f"Expected version {VERSION}."
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
    """One recording of several parts of a session, numbered through. The first one's header counts."""
    parts = list(recordings)
    exchanges: list[RecordedExchange] = []
    for part in parts:
        base = len(exchanges)
        numbers = {exchange.n: base + i for i, exchange in enumerate(part.exchanges, start=1)}
        exchanges += [replace(e, n=numbers[e.n], after=numbers.get(e.after, 0)) for e in part.exchanges]
    return replace(parts[0], exchanges=tuple(exchanges))


def read_members(path: Path) -> Iterator[tuple[bytes, int]]:
    """Each whole member's text, and where the file goes on after it. Raises `Unreadable` for damaged ones."""
    try:
        size = path.stat().st_size
        if size > MOST_FILE_BYTES:
            raise UnreadableRecording(f"{path} is larger than {MOST_FILE_BYTES // 2**20} MB and is not read")
        data = memoryview(path.read_bytes())
    except OSError as error:
        raise UnreadableRecording(f"{path} cannot be read: {error.strerror or error}") from error
    at, total, number = 0, 0, 0
    while at < len(data):
        number += 1
        text, used = _inflated(path, number, data, at)
        if used is None:
            return  # cut off by a crash
        at, total = at + used, total + len(text)
        if total > MOST_TOTAL_BYTES:
            raise UnreadableRecording(f"{path}:{number}: unpacks to more than {MOST_TOTAL_BYTES // 2**20} MB")
        yield text, at


def _inflated(path: Path, number: int, data: memoryview, at: int) -> tuple[bytes, int | None]:
    """One member, and the bytes it took; None for those where the data ends inside it.

    Fed in small chunks: what a decompressor is given beyond its member's end it copies, each time.
    """
    unpack = zlib.decompressobj(wbits=31)
    text, place = bytearray(), at
    while not unpack.eof and place < len(data):
        chunk = data[place : place + CHUNK]
        place += len(chunk)
        try:
            text += unpack.decompress(chunk, MOST_LINE_BYTES + 1 - len(text))
        except zlib.error as error:
            raise UnreadableRecording(f"{path}:{number}: damaged or no recording ({error})") from error
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
    """A content block that can be streamed: the fields its kind lives by are there."""
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
        raise ValueError(f"{name} is missing or no {kind.__name__}")
    return value


def _each(line: Json, name: str, kind: type) -> list[Any]:
    values: list[Any] = _typed(line, name, list)
    if not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{name} holds something that is no {kind.__name__}")
    return values
