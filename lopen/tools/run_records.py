"""lopen's own record of a test run in Python, beside what the run prints (docs/reference/completion.md).

A file that Python runs at its start notes how pytest and unittest go; it lies in the clean room's HOME and is made anew
for each run. Code under test can print whatever a runner prints and then end the process; it is noted that the run began
and did not end.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lopen.sandbox.bubblewrap import ROOM_HOME
from lopen.sandbox.command import Room
from lopen.tools import python_startup

_FOLDER = ".python"
_SITE = "site"
_NOTES = "notes"
_SOURCE = Path(python_startup.__file__).with_name("sitecustomize.py")
_MOST_BYTES = 4_000_000

ENDED_HINT = (
    "the command exited with success, but the process of its tests ended before {runner} was done: no code may end "
    "the process of its tests"
)
FAILED_HINT = "the command exited with success, but {runner} itself counted {failed} failed tests: fix them"
FEWER_HINT = "{runner} ran {ran} of the {collected} tests that it collected: nothing may end the run or change the runner"
NO_RECORD = "lopen has no record of its own of this test run: what the run printed, and its exit code, alone tell how it went"


@dataclass
class RunnerRecord:
    """One process that started a test runner, as noted. `ran` is None where the runner did not come to its end."""

    runner: str
    collected: int | None = None
    ran: int | None = None
    failed: int = 0
    names: list[str] = field(default_factory=list)  # of the tests that ran: path::test

    def __str__(self) -> str:
        if self.ran is None:
            return f"{self.runner} did not come to its end"
        of = "" if self.collected is None else f" of {self.collected} collected"
        return f"{self.runner} ran {self.ran}{of} tests, {self.failed} failed"


class RunRecord:
    """The record of one run. Create it before the run, for the room that the command enters, and read it afterwards."""

    def __init__(self, room: Room, *, mounted: bool) -> None:
        """`mounted`: the sandbox shows the room's HOME at a place of its own, and can show files read-only."""
        self._notes = room.home / _FOLDER / _NOTES
        site = room.home / _FOLDER / _SITE
        site.mkdir(parents=True, exist_ok=True)
        (site / _SOURCE.name).write_bytes(_SOURCE.read_bytes())
        self.room = replace(room, fixed=(*room.fixed, (site, site))) if mounted else room
        seen = (ROOM_HOME if mounted else room.home) / _FOLDER / _SITE
        self.variables: Mapping[str, str] = {"PYTHONPATH": str(seen)}
        self.runners: tuple[RunnerRecord, ...] = ()

    def read(self) -> None:
        """Set `runners` to what was noted, in the order in which the processes began."""
        found: dict[str, RunnerRecord] = {}
        for line in _lines(self._notes):
            match line.split(" ", 2) if " test " in line else line.split():
                case [process, "test", name] if process in found:
                    found[process].names.append(name)
                case [process, "started", ("pytest" | "unittest") as runner]:
                    found[process] = RunnerRecord(runner)
                case [process, "collected", count] if process in found and count.isdecimal():
                    found[process].collected = int(count)
                case [process, "ran", ran, failed] if (
                    process in found and ran.isdecimal() and failed.isdecimal()
                ):
                    found[process].ran, found[process].failed = int(ran), int(failed)
        self.runners = tuple(found.values())

    def why_not_passed(self) -> str:
        """Return the reason why a test command's exit with success proves nothing, "" if the record agrees with it."""
        for each in self.runners:
            if each.ran is None:
                return ENDED_HINT.format(runner=each.runner)
            if each.failed:
                return FAILED_HINT.format(runner=each.runner, failed=each.failed)
            if each.collected is not None and each.ran < each.collected:
                return FEWER_HINT.format(runner=each.runner, ran=each.ran, collected=each.collected)
        return ""

    def tests(self) -> tuple[int | None, tuple[str, ...]]:
        """Return how many tests ran, None without a record, and their names."""
        counts = [each.ran for each in self.runners if each.ran is not None]
        names = tuple(sorted({name for each in self.runners for name in each.names}))
        return (sum(counts) if counts else None), names

    def line(self) -> str:
        """Return the record in one line for the judge."""
        if not self.runners:
            return NO_RECORD
        return f"lopen's own record of this test run: {'; '.join(map(str, self.runners))}"


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that commands wrote; none of a link or another kind of file."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return os.read(descriptor, _MOST_BYTES).decode("ascii", "replace").splitlines()
        finally:
            os.close(descriptor)
    return []
