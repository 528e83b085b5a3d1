"""No fuzzed function may hang: a test that computes for too long is ended and fails."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

LONGEST_S = 60  # of computing, which a busy machine does not lengthen


@pytest.fixture(autouse=True)
def ended_if_it_hangs() -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still not done after {LONGEST_S} s of computing")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
