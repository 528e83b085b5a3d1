"""The time that one hook may take, held by an alarm."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` itself loads enumerations, which takes longer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


class HookTimedOut(BaseException):
    """The hook took too long. No `except Exception` in between may swallow it."""


def allow(seconds: float) -> None:
    """Begin the time anew, where it is measured at all."""
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def nothing() -> None:
    """There is nothing to take back."""


def arm(seconds: float) -> Any:
    """Raise HookTimedOut after so long; gives what takes that back. Only a main thread can be interrupted."""

    def late(number: int, frame: FrameType | None) -> None:
        raise HookTimedOut

    try:
        before = signal.signal(signal.SIGALRM, late)
    except ValueError:
        return nothing
    signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    return disarm
