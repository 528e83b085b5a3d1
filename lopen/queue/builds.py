"""Builds as values: a module that is to be built, how it ended, and the list of all that one command builds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from lopen.core.errors import ExitCode

Result = Literal["complete", "waits", "failed", "not started"]


@dataclass(frozen=True, slots=True)
class Build:
    """A module to build, and the modules that must be complete before it starts."""

    module: str
    after: tuple[str, ...] = ()


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
        if self.code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.HUNG_UP):
            return "waits"
        return "waits" if self.code is ExitCode.PERSON_NEEDED else "failed"


class BuildSource(Protocol):
    """The port to the place that builds come from: a list in memory, or a queue that several workers share."""

    def take(self) -> Build | None:
        """Return a build that may start now; None if there is none at present."""
        ...

    def ended(self, ending: Ending) -> None:
        """Note how a build that was taken ended."""
        ...

    @property
    def open(self) -> bool:
        """False once no further build can come."""
        ...


@dataclass
class Listed:
    """The builds of one command, each taken when the modules before it are complete."""

    builds: Sequence[Build]
    complete: frozenset[str] = frozenset()  # before the command began
    endings: dict[str, Ending] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def take(self) -> Build | None:
        """Return the first build in the list that waits for none."""
        build = next((build for build in self._left() if not self.waits_for(build)), None)
        if build is not None:
            self.taken.add(build.module)
        return build

    def ended(self, ending: Ending) -> None:
        """Keep the ending."""
        self.endings[ending.module] = ending

    @property
    def open(self) -> bool:
        """True while a build is left that has not been taken and can still start."""
        return bool(self._left())

    def waits_for(self, build: Build) -> tuple[str, ...]:
        """Return the modules before this one that are not complete yet."""
        return tuple(name for name in build.after if not self._is_complete(name))

    def _is_complete(self, module: str) -> bool:
        ending = self.endings.get(module)
        return module in self.complete if ending is None else ending.code is ExitCode.OK

    def _left(self) -> list[Build]:
        """Return the builds that can still start; end those whose earlier modules ended incomplete, or are not built at all."""
        known, left = {build.module for build in self.builds}, []
        for build in self.builds:
            if build.module in self.taken | self.endings.keys():
                continue
            lost = [n for n in self.waits_for(build) if n in self.endings or n not in known]
            if lost:
                reason = f"it comes after {', '.join(lost)}, which {'is' if len(lost) == 1 else 'are'} not complete"
                again = f"lopen run {build.module}"
                self.endings[build.module] = Ending(
                    build.module, ExitCode.FAILED, reason=reason, command=again, started=False
                )
            else:
                left.append(build)
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
