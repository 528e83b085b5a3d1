"""Builds as values: a module that is to be built, how it ended, and the list of all that one command builds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from lopen.core.errors import ExitCode

Result = Literal["complete", "waits", "failed", "not started"]


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a build: the exit code of its process, its seconds, and the reason where no process told one.

    `command` is what a person enters next, where the session does not know it.
    """

    module: str
    code: ExitCode
    seconds: float = 0.0
    reason: str = ""
    command: str = ""
    started: bool = True  # False where an earlier module is not complete

    @property
    def result(self) -> Result:
        """The result in one word."""
        if not self.started:
            return "not started"
        if self.code is ExitCode.OK:
            return "complete"
        waits = (ExitCode.PERSON_NEEDED, ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.HUNG_UP)
        return "waits" if self.code in waits else "failed"


class BuildSource(Protocol):
    """The port to the place that builds come from: a list in memory, or a queue that several workers share."""

    def take(self) -> str | None:
        """Return a module whose build may start now; None if there is none at present."""
        ...

    def ended(self, ending: Ending) -> None:
        """Note how a build that was taken ended."""
        ...

    @property
    def open(self) -> bool:
        """False once no further build can come."""
        ...

    def stop(self) -> None:
        """Offer no build any more: a signal ends those that run."""
        ...


@dataclass
class Listed:
    """The builds of one command, module → the modules before it: each is taken when those are complete."""

    builds: Mapping[str, Sequence[str]]
    complete: frozenset[str] = frozenset()  # before the command began
    endings: dict[str, Ending] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def take(self) -> str | None:
        """Return the first module in the list that waits for none."""
        module = next((module for module in self._left() if not self.waits_for(module)), None)
        self.taken |= {module} if module else set()
        return module

    def ended(self, ending: Ending) -> None:
        """Keep the ending."""
        self.endings[ending.module] = ending

    def stop(self) -> None:
        """Do nothing: the command that owns the list ends."""

    @property
    def open(self) -> bool:
        """True while a build is left that has not been taken and can still start."""
        return bool(self._left())

    def waits_for(self, module: str) -> tuple[str, ...]:
        """Return the modules before this one that are not complete yet."""
        ended = {name: ending.code is ExitCode.OK for name, ending in self.endings.items()}
        return tuple(name for name in self.builds[module] if not ended.get(name, name in self.complete))

    def _left(self) -> list[str]:
        """Return the modules that can still start; end those whose earlier ones ended incomplete, or are not built at all."""
        left = []
        for module in [m for m in self.builds if m not in self.taken | self.endings.keys()]:
            lost = [n for n in self.waits_for(module) if n in self.endings or n not in self.builds]
            if lost:
                reason = f"it comes after {', '.join(lost)}, which {'is' if len(lost) == 1 else 'are'} not complete"
                again = f"lopen run {module}"
                self.endings[module] = Ending(module, ExitCode.FAILED, 0.0, reason, again, started=False)
            else:
                left.append(module)
        return left


def default_jobs() -> int:
    """Return how many modules are built at the same time unless a person says it: half the cores, at least two."""
    return max(2, (os.cpu_count() or 1) // 2)


def exit_code(endings: Mapping[str, Ending]) -> ExitCode:
    """Return the exit code of all: 0 if every build is complete, 3 if any waits for a person, else 1."""
    results = {ending.result for ending in endings.values()}
    if results <= {"complete"}:
        return ExitCode.OK
    return ExitCode.PERSON_NEEDED if "waits" in results else ExitCode.FAILED
