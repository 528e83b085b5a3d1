"""Nothing that is fuzzed may hang: who does is ended, and the test fails."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

LONGEST_S = 120  # far beyond what any of these take, on any machine


@pytest.fixture(autouse=True)
def ended_if_it_hangs() -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still not done after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LONGEST_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
