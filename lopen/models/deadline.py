"""A time limit for one exchange with the endpoint, enforced below HTTP for every read and write."""

from __future__ import annotations

import math
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any, Final

import httpcore2

from lopen.core.clock import Clock
from lopen.models.messages import TransientFailure

PIECE_BYTES: Final = 64 * 1024
TOO_SLOW: Final = "the endpoint's answer exceeded the time limit and was dropped"
LONGEST_WAIT_S: Final = 0.5
_KEEP_ALIVE_S: Final = 60
# Detects a dead connection after a few minutes instead of hours
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
    """The time at which the exchange of this thread must end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = math.inf

    def begin(self, seconds: float) -> None:
        """Start an exchange that may take `seconds`."""
        self._at = self._clock.monotonic() + seconds

    def remaining(self) -> float:
        """Return the remaining seconds; raises `TransientFailure` if there are none."""
        remaining = self._at - self._clock.monotonic()
        if remaining <= 0:
            raise TransientFailure(TOO_SLOW)
        return remaining

    def shorten(self, timeout: float | None) -> float:
        """Return the smaller of `timeout` and the remaining seconds."""
        remaining = self.remaining()
        return remaining if timeout is None else min(timeout, remaining)


class DeadlineNetwork(httpcore2.NetworkBackend):
    """Opens TCP connections with a deadline."""

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
    """A connection that ends at the deadline, even if bytes still arrive now and then."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            read = self._read(max_bytes, self._deadline.shorten(timeout))
        except Exception:
            self._deadline.remaining()  # raises the deadline's own failure if that was the reason
            raise
        self._deadline.remaining()  # rejects bytes that arrived too late
        return read

    def _read(self, max_bytes: int, seconds: float) -> bytes:
        """Wait in short pieces: a signal that comes right before a wait is handled only after it."""
        while seconds > LONGEST_WAIT_S:
            with suppress(httpcore2.ReadTimeout):
                return self._inner.read(max_bytes, LONGEST_WAIT_S)
            seconds -= LONGEST_WAIT_S
        return self._inner.read(max_bytes, seconds)

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
