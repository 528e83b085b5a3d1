"""The time that one exchange with the endpoint may take, held beneath HTTP: for every byte that comes or goes."""

from __future__ import annotations

import math
import socket
import ssl
import threading
from typing import Any, Final

import httpcore2

from lopen.base.clock import Clock
from lopen.llm.messages import TransientFailure

PIECE_BYTES: Final = 64 * 1024
TOO_SLOW: Final = "the endpoint's answer took longer than any real one; it was dropped"
_KEEP_ALIVE_S: Final = 60
# A connection that a router forgot is found dead after a few minutes, not after hours
_SOCKET_OPTIONS: Final = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (
            ("TCP_KEEPIDLE", _KEEP_ALIVE_S),
            ("TCP_KEEPINTVL", _KEEP_ALIVE_S),
            ("TCP_KEEPCNT", 5),
        )
        if hasattr(socket, name)
    ),
]


class Deadline(threading.local):
    """The moment at which the exchange of this thread has to be over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = math.inf

    def begin(self, seconds: float) -> None:
        """Start an exchange that may take `seconds`."""
        self._at = self._clock.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; raises `TransientFailure` where none are."""
        left = self._at - self._clock.monotonic()
        if left <= 0:
            raise TransientFailure(TOO_SLOW)
        return left

    def shorten(self, timeout: float | None) -> float:
        """Return `timeout` in seconds, or what is left where that is less."""
        left = self.left()
        return left if timeout is None else min(timeout, left)


class DeadlineNetwork(httpcore2.NetworkBackend):
    """Opens TCP connections that are held to a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._inner = httpcore2.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore2.NetworkStream:
        timeout = self._deadline.shorten(timeout)
        stream = self._inner.connect_tcp(host, port, timeout, socket_options=_SOCKET_OPTIONS)
        return _DeadlineStream(stream, self._deadline)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(self._deadline.shorten(seconds))


class _DeadlineStream(httpcore2.NetworkStream):
    """A connection. A byte now and then keeps it alive, but not beyond the deadline."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            read = self._inner.read(max_bytes, self._deadline.shorten(timeout))
        except Exception:
            self._deadline.left()  # raises the deadline's own failure where that was the reason
            raise
        self._deadline.left()  # bytes that came too late are not read on
        return read

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE_BYTES):
            self._inner.write(buffer[start : start + PIECE_BYTES], self._deadline.shorten(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        timeout = self._deadline.shorten(timeout)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, timeout), self._deadline)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
