"""The clock as a port: what time it is, and waiting. `SystemClock` is real, `FakeClock` ships beside it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Time in, never read behind a pure function's back."""

    def now(self) -> datetime:
        """The current instant, timezone-aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; a signal that raises ends the wait at once."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))  # a moment that is over already is not waited for


class FakeClock:
    """Stands still until told; `sleep` moves it and keeps what was asked for in `slept`."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move time on by `seconds`."""
        self._elapsed += max(0.0, seconds)
