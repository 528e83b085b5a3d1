"""What holds of every connection to the endpoint, from its first byte: a deadline, a size, and no other host.

Beneath the SDK, so that it holds for headers and for every status: an error's body is read whole by the SDK before
lopen hears of it. `httpx2` calls itself what is wrapped here.
"""

from __future__ import annotations

import math
import re
import threading
import zlib
from collections.abc import Iterator
from typing import Any, Final

import httpx2

from lopen.clock import Clock
from lopen.llm.messages import Rejected, TransientFailure

MOST_BYTES: Final = 64 * 2**20  # of one answer, decoded; the longest real one is a third of it
MOST_ERROR_BYTES: Final = 2**20  # of one that is not 200: the rest is not read
MOST_EVENT_BYTES: Final = 4 * 2**20  # the SDK joins the lines of an event one by one, each time anew
MOST_EVENT_LINES: Final = 1_000
LONGEST_LOCATION: Final = 300
_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_PIECE: Final = 64 * 1024
_ZLIB_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
TOO_LONG: Final = "the endpoint's answer is longer than any real one; it was dropped"
TOO_SLOW: Final = "the endpoint's answer took longer than any real one; it was dropped"


class Deadline(threading.local):
    """Until when the exchange of this thread may last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = math.inf

    def begin(self, seconds: float) -> None:
        """From now on, so long."""
        self._at = self._clock.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left; `TransientFailure` where none are."""
        left = self._at - self._clock.monotonic()
        if left <= 0:
            raise TransientFailure(TOO_SLOW)
        return left


def guard(client: httpx2.Client, deadline: Deadline) -> None:
    """Put these bounds on all that `client` sends, also through a proxy of the environment."""
    client.follow_redirects = False
    every = {id(t): t for t in (client._transport, *client._mounts.values()) if t is not None}
    guarded = {key: _Transport(transport, deadline) for key, transport in every.items()}
    client._transport = guarded[id(client._transport)]
    client._mounts = {
        pattern: None if transport is None else guarded[id(transport)]
        for pattern, transport in client._mounts.items()
    }


class _Transport(httpx2.BaseTransport):
    """Another transport, its connections and answers bounded. No redirect is followed, and none passed on."""

    def __init__(self, inner: httpx2.BaseTransport, deadline: Deadline) -> None:
        self._inner = inner
        pool: Any = inner._pool  # type: ignore[attr-defined]  # the one place where bytes come and go
        pool._network_backend = _Network(pool._network_backend, deadline)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        answer = self._inner.handle_request(request)
        if answer.is_redirect or 300 <= answer.status_code < 400:
            answer.close()
            raise _elsewhere(answer)
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity", *_ZLIB_BITS):
            answer.close()
            raise TransientFailure(f"the endpoint's answer is compressed ({encoding[:40]!r}), unasked for")
        for name in ("content-encoding", "content-length"):
            if encoding in _ZLIB_BITS and name in answer.headers:
                del answer.headers[name]
        assert isinstance(answer.stream, httpx2.SyncByteStream)
        pieces = (
            _decoded(answer.stream, _ZLIB_BITS[encoding]) if encoding in _ZLIB_BITS else iter(answer.stream)
        )
        if not answer.is_success:
            pieces = _cut(pieces)
        elif "amazon.eventstream" not in answer.headers.get("content-type", ""):
            pieces = _apart(pieces)
        answer.stream = _Bounded(pieces, answer.stream)
        return answer

    def close(self) -> None:
        self._inner.close()


class _Bounded(httpx2.SyncByteStream):
    """An answer's pieces, decoded, up to a size."""

    def __init__(self, pieces: Iterator[bytes], inner: httpx2.SyncByteStream) -> None:
        self._pieces = pieces
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        left = MOST_BYTES
        for piece in self._pieces:
            left -= len(piece)
            if left < 0:
                raise TransientFailure(TOO_LONG)
            yield piece

    def close(self) -> None:
        self._inner.close()


def _decoded(stream: httpx2.SyncByteStream, bits: int) -> Iterator[bytes]:
    """In small pieces, however much a few bytes stand for."""
    decoder = zlib.decompressobj(bits)
    try:
        for raw in stream:
            rest = raw
            while rest and not decoder.eof:
                yield decoder.decompress(rest, _PIECE)
                rest = decoder.unconsumed_tail
    except zlib.error as error:
        raise TransientFailure(f"the endpoint's answer could not be read: {error}") from error


def _cut(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """An error's text: its status counts, however long it is."""
    left = MOST_ERROR_BYTES
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _apart(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces of an event stream, as long as every event in it has a bearable size."""
    size = lines = 0
    tail = b""  # a blank line may begin in one piece and end in the next
    for piece in pieces:
        first, *others = _BLANK_LINE.split(tail + piece)
        found = [(size + len(first), lines + _lines(first)), *((len(o), _lines(o)) for o in others)]
        if any(s > MOST_EVENT_BYTES or n > MOST_EVENT_LINES for s, n in found):
            raise TransientFailure(TOO_LONG)
        tail = (tail + piece)[-3:]
        size, lines = max(0, found[-1][0] - len(tail)), max(0, found[-1][1] - _lines(tail))
        yield piece


def _lines(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r")


def _elsewhere(answer: httpx2.Response) -> Rejected:
    """A redirect's target would get the whole prompt: a person decides."""
    location = " ".join(answer.headers.get("location", "").split())[:LONGEST_LOCATION]
    return Rejected(
        f"the model endpoint redirects to {location or 'nowhere'} (HTTP {answer.status_code}); nothing was sent there",
        answer.status_code,
        hint="If that is your endpoint, name it: lopen config set --user model.base_url URL, or ANTHROPIC_BASE_URL.",
    )


class _Network:
    """Opens connections as another does; all that comes and goes on them is held to the deadline."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(self, *given: Any, timeout: float | None = None, **named: Any) -> _Stream:
        timeout = _least(timeout, self._deadline.left())
        return _Stream(self._inner.connect_tcp(*given, timeout=timeout, **named), self._deadline)

    def connect_unix_socket(self, *given: Any, timeout: float | None = None, **named: Any) -> _Stream:
        timeout = _least(timeout, self._deadline.left())
        return _Stream(self._inner.connect_unix_socket(*given, timeout=timeout, **named), self._deadline)

    def sleep(self, seconds: float) -> None:
        # httpcore's own pause before it tries to connect again
        self._inner.sleep(min(seconds, self._deadline.left()))


class _Stream:
    """A connection. A byte now and then keeps it alive, but not beyond the deadline."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            read: bytes = self._inner.read(max_bytes, timeout=_least(timeout, self._deadline.left()))
        except Exception:  # any: swallowed is none, it is only named for what it was
            self._deadline.left()  # says so, where it was the deadline
            raise
        self._deadline.left()  # what came too late is not read on
        return read

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._inner.write(buffer[start : start + _PIECE], timeout=_least(timeout, self._deadline.left()))

    def start_tls(self, *given: Any, timeout: float | None = None, **named: Any) -> _Stream:
        timeout = _least(timeout, self._deadline.left())
        return _Stream(self._inner.start_tls(*given, timeout=timeout, **named), self._deadline)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _least(timeout: float | None, left: float) -> float:
    return left if timeout is None else min(timeout, left)
