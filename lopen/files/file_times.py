"""Times of files as marks of what changed: setting them, and how far the file system's clock can be relied on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

COARSEST_NS = 2_100_000_000  # more than a tick of the clock in which any file system keeps times
CLOCK_STEP_S = 0.5
_TRIES, _WAIT_S = 25, 0.001  # until the file system's clock goes on


@dataclass(frozen=True, slots=True)
class Seal:
    """When a command began: the time, and how far the clock is from the one that nobody sets (seconds)."""

    at_ns: int
    offset: float

    @property
    def since_ns(self) -> int:
        """The least change time that the command may have given."""
        return max(0, self.at_ns - COARSEST_NS)

    def clock_was_set(self) -> bool:
        """Return True if somebody set the clock since then, which makes change times useless."""
        return abs(clock_offset() - self.offset) > CLOCK_STEP_S


def clock_offset() -> float:
    """Return how far the clock is from the one that nobody sets (seconds)."""
    return time.time() - time.monotonic()


def clock_passes(probe: str, newest_ns: int) -> bool:
    """Wait until the file system gives change times after `newest_ns`; return False where that takes long.

    `probe` is a file of lopen's own in that file system.
    """
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    for _ in range(_TRIES):
        os.utime(probe)
        if os.lstat(probe).st_ctime_ns > newest_ns:
            return True
        time.sleep(_WAIT_S)
    return False


def set_time(path: str, time_ns: int, folder: int | None = None) -> None:
    """Set the times of change and access of a file, folder or link, if one is there.

    `path` may be relative to an open `folder`.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        os.utime(path, ns=(time_ns, time_ns), dir_fd=folder, follow_symlinks=False)


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """Yield a descriptor of a real folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
