"""The clock port for time and waiting, with a system clock and a fake."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of time; pure functions get times as arguments instead."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease, for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; a signal whose handler raises an exception ends the wait at once."""
        ...


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))  # no wait where it is negative


class FakeClock:
    """A clock that moves only with `sleep` and `advance`; `slept` records the waits."""

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
        """Advance the time by `seconds`."""
        self._elapsed += max(0.0, seconds)
