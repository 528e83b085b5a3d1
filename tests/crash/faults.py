"""What tests do to lopen inside its own process: kill it at a named effect, turn its clock back, take its rights.

Named by `arrange` (`tests.preloaded.runs`) and called in the run's process before lopen begins; nothing in lopen
itself knows of it.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import struct
import sys
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

_DROP_FROM_BOUNDING_SET = 24
_CAPABILITY_VERSION = 0x20080522
_OVER_PERMISSIONS = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def die(effect: str, when: str, nth: int = 1, signal_name: str = "SIGKILL") -> None:
    """Send the process a signal `before` or `after` the nth call of `module:Class.function`."""
    owner, name = _place(effect)
    original = getattr(owner, name)
    number = signal.Signals[signal_name]
    calls = 0

    @wraps(original)
    def fatal(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        this_one = calls == nth
        if this_one and when == "before":
            os.kill(os.getpid(), number)
        result = original(*given, **named)
        if this_one and when == "after":
            os.kill(os.getpid(), number)
        return result

    setattr(owner, name, fatal)
    for module in list(sys.modules.values()):  # and wherever the function was imported by name
        if module.__name__.startswith("lopen.") and vars(module).get(name) is original:
            setattr(module, name, fatal)


def _place(effect: str) -> tuple[Any, str]:
    module, _, path = effect.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def replace(effect: str, value: Any) -> None:
    """Put `value` in the place of `module:NAME`."""
    setattr(*_place(effect), value)


def no_waiting() -> None:
    """Waits of lopen's own clock are over at once, and its time has passed all the same."""
    from lopen.core.clock import SystemClock

    now, monotonic = SystemClock.now, SystemClock.monotonic
    slept = 0.0

    def sleep(self: SystemClock, seconds: float) -> None:
        nonlocal slept
        slept += max(0.0, seconds)

    def later(self: SystemClock) -> datetime:
        return now(self) + timedelta(seconds=slept)

    def longer(self: SystemClock) -> float:
        return monotonic(self) + slept

    for name, function in {"sleep": sleep, "now": later, "monotonic": longer}.items():
        setattr(SystemClock, name, function)


def stay_readable() -> None:
    """Let the watcher see which files lopen writes to; it hides them from everybody but root."""
    replace("lopen.application.driving:deny_inspection", lambda: False)


def turn_clock_back(after: int, seconds: float) -> None:
    """From the `after`-th reading on, the wall clock is `seconds` behind; the steady one goes on."""
    from lopen.core.clock import SystemClock

    original = SystemClock.now
    readings = 0

    def now(self: SystemClock) -> datetime:
        nonlocal readings
        readings += 1
        return original(self) - timedelta(seconds=seconds if readings >= after else 0)

    SystemClock.now = now  # type: ignore[method-assign]  # that is the point


def keep_to_permissions() -> None:
    """Give up root's capabilities, to which no file is read-only; a person who is not root has none anyway."""
    libc = ctypes.CDLL(None)
    for capability in _OVER_PERMISSIONS:
        libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
    libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24))
