"""Ends a process at a named point. Only tests put this folder on PYTHONPATH; lopen knows nothing of it.

`CRASH_AT=KILL:before:lopen.loop.approval_gate:approval_commit` sends SIGKILL to the process where that function would have begun,
`after` where it has returned; `INT` and `TERM` likewise. Methods are named `Class.method`.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def _ending(function: Callable[..., Any], when: str, number: signal.Signals) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), number)
        result = function(*args, **kwargs)
        if when == "after":
            os.kill(os.getpid(), number)
        return result

    return wrapped


class _Point(MetaPathFinder):
    """Lets the module be found as always, and wraps the function as soon as it is there."""

    def __init__(self, module: str, name: str, when: str, number: signal.Signals) -> None:
        self._module, self._when, self._number = module, when, number
        self._owner, _, self._name = name.rpartition(".")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def then_wrap(module: ModuleType) -> None:
            execute(module)
            owner = getattr(module, self._owner) if self._owner else module
            setattr(owner, self._name, _ending(getattr(owner, self._name), self._when, self._number))

        spec.loader.exec_module = then_wrap  # type: ignore[method-assign]  # on this one loader
        return spec


if wanted := os.environ.get("CRASH_AT"):
    _signal, _when, _module, _function = wanted.split(":")
    sys.meta_path.insert(0, _Point(_module, _function, _when, signal.Signals[f"SIG{_signal}"]))
