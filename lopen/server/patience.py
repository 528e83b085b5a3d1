"""Patience with slow clients: a connection that sends a request or reads an answer too slowly is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 10.0  # a request takes at most twice this time to come
STUCK_S = 30.0  # in which a client reads nothing of what waits for it


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with a limit on the time in which a client sends a request, and reads an answer."""

    _check: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _seen: object = None  # the request at the last check

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._check = self.loop.call_later(REQUEST_S, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._check, self._stuck):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _check_progress(self) -> None:
        waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if waiting and self.cycle is self._seen:
            self.transport.abort()
            return
        self._seen = self.cycle if waiting else None
        self._check = self.loop.call_later(REQUEST_S, self._check_progress)
