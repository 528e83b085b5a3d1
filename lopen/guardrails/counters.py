"""How many events lie in the last so many seconds, plain and by key. The caller hands the time in.

A window is half open: an event exactly `seconds` old is outside, so ten events a second apart are ten in ten
seconds. Time that runs backwards is held at the latest time seen. Memory is bounded: a window keeps its
newest `cap` events, and counts no further than that.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

CAP = 1_000
MAX_KEYS = 200


class SlidingWindow:
    """Events of the last `seconds`. Times are seconds of one clock."""

    def __init__(self, seconds: float, *, cap: int = CAP) -> None:
        if seconds <= 0 or cap < 1:
            raise ValueError(f"a window wants seconds > 0 and a cap of at least 1, got {seconds}, {cap}")
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=cap)
        self._latest = float("-inf")

    def record(self, now: float) -> int:
        """Count an event at `now`; how many there are in the window with it."""
        held = self._held(now)
        self._evict(held)
        self._times.append(held)
        return len(self._times)

    def count(self, now: float) -> int:
        """How many events the window holds at `now`."""
        self._evict(self._held(now))
        return len(self._times)

    def _held(self, now: float) -> float:
        self._latest = max(self._latest, now)
        return self._latest

    def _evict(self, now: float) -> None:
        while self._times and now - self._times[0] >= self._seconds:
            self._times.popleft()


class KeyedWindows(Generic[K]):
    """A window for each key; the key longest without an event is forgotten beyond `max_keys`."""

    def __init__(self, seconds: float, *, cap: int = CAP, max_keys: int = MAX_KEYS) -> None:
        if max_keys < 1:
            raise ValueError(f"at least one key must fit, got {max_keys}")
        self._seconds = seconds
        self._cap = cap
        self._max_keys = max_keys
        self._windows: OrderedDict[K, SlidingWindow] = OrderedDict()

    def record(self, key: K, now: float) -> int:
        """Count an event of `key`; how many of it there are in its window with this one."""
        window = self._windows.setdefault(key, SlidingWindow(self._seconds, cap=self._cap))
        self._windows.move_to_end(key)
        if len(self._windows) > self._max_keys:
            self._windows.popitem(last=False)
        return window.record(now)

    def count(self, key: K, now: float) -> int:
        """How many events of `key` its window holds at `now`; 0 for a key never seen."""
        window = self._windows.get(key)
        return window.count(now) if window else 0

    def __len__(self) -> int:
        return len(self._windows)
