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
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from lopen.core.errors import LopenError
from lopen.core.files import replace_file
from lopen.models.messages import Json, StopReason, Usage

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


def _streamable(block: Json) -> Json:
    """Return a content block if it has the fields that streaming its kind needs."""
    kind = str(block.get("type"))
    texts = {"text": ("text",), "thinking": ("thinking",), "tool_use": ("id", "name")}.get(kind, ("type",))
    wrong = [name for name in texts if not isinstance(block.get(name), str)]
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        wrong.append("input")
    if wrong:
        raise ValueError(f"{', '.join(wrong)} of {kind[:40]!r} is missing or not valid")
    return block


def _counted(usage: Any) -> Any:
    """Return usage that counts every kind of token."""
    if isinstance(usage, dict):
        for name in (name for name in Usage.__slots__ if name != "estimated"):
            if not isinstance(count := usage.get(name), int) or count < 0:
                raise ValueError(f"{name} is missing or negative")
    return usage


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    """A model's response. `unparsed` lists the tool calls whose input was not valid JSON."""

    content: tuple[Annotated[Json, AfterValidator(_streamable)], ...]
    stop_reason: StopReason
    usage: Annotated[Usage, BeforeValidator(_counted)]
    unparsed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One request and its response. `after` is the previous exchange of the conversation, or 0 for its first one.

    `opening` is a digest of the first message, which distinguishes parallel conversations.
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
    """Read the recording in `path`, without a last member that a crash truncated. Time and memory are bounded.

    Raises:
        UnreadableRecording: the content is not valid; the message names the line.
    """
    lines = enumerate((text for text, _ in read_members(path)), start=1)
    number, first = next(lines, (0, b""))
    if not number:
        raise UnreadableRecording(f"{path} is empty: no exchange was recorded")
    header = _header(path, first)
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
    header = member(header_line(recording.module, recording.created))
    replace_file(path, header + b"".join(map(member, recording.exchanges)), mode=None)


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
