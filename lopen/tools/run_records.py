"""lopen's own record of a test run, beside what the run prints (docs/reference/completion.md).

A file that Python runs at its start notes how pytest and unittest go, and one that Node loads how its own runner, Jest,
Vitest and Mocha go; they lie in the clean room's HOME and are made anew for each run. Maven and Gradle write JUnit XML
into the room, where no earlier one lies. Go is asked to name its tests in what it prints. Code under test can print
whatever a runner prints and then end the process; it is noted that a run in Python began and did not end.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.sandbox.bubblewrap import ROOM_HOME
from lopen.sandbox.command import Room
from lopen.tools import test_startup
from lopen.verification.junit import MAX_BYTES, UnreadableReport, read_counts

_FOLDER = ".tests"
_SITE = "site"
_GO_ON = "go_on"
_NOTES = "notes"
_SOURCES = tuple(Path(test_startup.__file__).with_name(name) for name in ("sitecustomize.py", "record.cjs"))
_MOST_BYTES = 16_000_000
_REPORTS = {  # folders of JUnit XML beside a build file
    "pom.xml": ("maven", ("target/surefire-reports", "target/failsafe-reports")),
    "build.gradle": ("gradle", ("build/test-results/test",)),
    "build.gradle.kts": ("gradle", ("build/test-results/test",)),
}
_MOST_REPORT_BYTES = 64_000_000

ENDED_HINT = (
    "the command exited with success, but the process of its tests ended before {runner} was done: no code may end "
    "the process of its tests"
)
FAILED_HINT = "the command exited with success, but {runner} itself counted {failed} failed tests: fix them"
FEWER_HINT = "{runner} ran {ran} of the {collected} tests that it collected: nothing may end the run or change the runner"
NO_TESTS_HINT = (
    "no tests were collected, or all of them were skipped, or the process of the tests ended before they ran: write at "
    "least one test that the command finds and runs"
)
NO_RECORD = "lopen has no record of its own of this test run: what the run printed, and its exit code, alone tell how it went"
_NAMES = re.compile(r"\d+ (?:test|failed|skipped) ")
# Of surefire and Gradle: the types of the parameters, then the row
_METHOD = re.compile(r"([^\W\d][\w$]*)(?:\([^()]*\)|\{[^{}]*\})?(?:\[[^\]]*\])?")
_RUNNERS = frozenset({"pytest", "unittest", "node", "jest", "vitest", "mocha"})


@dataclass
class RunnerRecord:
    """One process that started a test runner, as noted. `ran` is None where the runner did not come to its end."""

    runner: str
    collected: int | None = None
    ran: int | None = None
    failed: int = 0
    skipped: int = 0  # part of `ran`
    names: list[str] = field(default_factory=list)  # of the tests that were not skipped: path::test
    failed_names: list[str] = field(default_factory=list)
    skipped_names: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.ran is None:
            return f"{self.runner} did not come to its end"
        of = "" if self.collected is None else f" of {self.collected} collected"
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.runner} ran {self.ran}{of} tests, {self.failed} failed{skipped}"


class RunRecord:
    """The record of one run. Create it before the run, for the room that the command enters, and read it afterwards."""

    def __init__(self, room: Room, files: Iterable[str] = (), *, mounted: bool, go_on: bool = False) -> None:
        """`mounted`: the sandbox shows the room's HOME at a place of its own, and can show files read-only. `files` are
        the paths of the tree in the room. `go_on`: pytest runs the other tests where a file cannot be loaded.
        """
        self._notes = room.home / _FOLDER / _NOTES
        site = room.home / _FOLDER / _SITE
        site.mkdir(parents=True, exist_ok=True)
        for source in _SOURCES:
            (site / source.name).write_bytes(source.read_bytes())
        if go_on:
            (site / _GO_ON).touch()
        else:
            (site / _GO_ON).unlink(missing_ok=True)
        self.room = replace(room, fixed=(*room.fixed, (site, site))) if mounted else room
        seen = (ROOM_HOME if mounted else room.home) / _FOLDER / _SITE
        self.variables: Mapping[str, str] = {
            "PYTHONPATH": str(seen),
            "NODE_OPTIONS": f'--require "{seen / _SOURCES[1].name}"',
            "GOFLAGS": "-v",
        }
        self._reports = tuple(_report_folders(path for path in files if path.endswith(tuple(_REPORTS))))
        self._before = {
            entry.path: entry.stat().st_mtime_ns
            for _, folder in self._reports
            for entry in self._listed(folder)
        }
        self.runners: tuple[RunnerRecord, ...] = ()

    def read(self) -> None:
        """Set `runners` to what was noted, in the order in which the processes began."""
        found: dict[str, RunnerRecord] = {}
        for line in _lines(self._notes):
            match line.split(" ", 2) if _NAMES.match(line) else line.split():
                case [process, "test", name] if process in found:
                    found[process].names.append(name)
                case [process, "failed", name] if process in found:
                    found[process].failed_names.append(name)
                case [process, "skipped", name] if process in found:
                    found[process].skipped_names.append(name)
                case [process, "started", runner] if runner in _RUNNERS:
                    found[process] = RunnerRecord(runner)
                case [process, "collected", count] if process in found and count.isdecimal():
                    found[process].collected = int(count)
                case [process, "ran", *numbers] if (
                    process in found and len(numbers) == 3 and all(map(str.isdecimal, numbers))
                ):
                    each = found[process]
                    each.ran, each.failed, each.skipped = map(int, numbers)
        self.runners = (*found.values(), *self._reported())

    def _reported(self) -> Iterator[RunnerRecord]:
        """Yield what the JUnit XML that this run wrote tells, by folder."""
        project, left = Root(self.room.files), _MOST_REPORT_BYTES
        for runner, folder in self._reports:
            record = RunnerRecord(runner, ran=0)
            for entry in self._listed(folder):
                with contextlib.suppress(UnreadableReport, OSError, ToolRefused):
                    found = entry.stat(follow_symlinks=False)
                    left -= found.st_size
                    if left < 0 or found.st_mtime_ns == self._before.get(entry.path):
                        continue
                    with project.open_file(f"{folder}/{entry.name}") as (descriptor, _):
                        counts = read_counts(os.read(descriptor, MAX_BYTES + 1))
                    record.ran = (record.ran or 0) + counts.tests
                    record.failed += counts.failures + counts.errors
                    record.skipped += counts.skipped
                    record.names += (_java_name(*each) for each in counts.ran)
                    record.failed_names += (
                        _java_name(*each) for each in counts.failed if _METHOD.fullmatch(each[1])
                    )
            if record.ran:
                yield record

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        with contextlib.suppress(OSError), os.scandir(self.room.files / folder) as entries:
            names = [e for e in entries if e.name.startswith("TEST-") and e.name.endswith(".xml")]
            return sorted(names, key=lambda e: e.name)
        return []

    def why_not_passed(self) -> str:
        """Return the reason why a test command's exit with success proves nothing, "" if the record agrees with it."""
        for each in self.runners:
            if each.ran is None:
                return ENDED_HINT.format(runner=each.runner)
            if each.failed:
                return FAILED_HINT.format(runner=each.runner, failed=each.failed)
            if each.collected is not None and each.ran < each.collected:
                return FEWER_HINT.format(runner=each.runner, ran=each.ran, collected=each.collected)
        if self.runners and not any((each.ran or 0) > each.skipped for each in self.runners):
            return NO_TESTS_HINT
        return ""

    def tests(self) -> tuple[int | None, tuple[str, ...]]:
        """Return how many tests ran and were not skipped, None without a record, and their names."""
        counts = [each.ran - each.skipped for each in self.runners if each.ran is not None]
        names = tuple(sorted({name for each in self.runners for name in each.names}))
        return (sum(counts) if counts else None), names

    def failed_tests(self) -> tuple[str, ...]:
        """Return the names of the tests that failed."""
        return tuple(sorted({name for each in self.runners for name in each.failed_names}))

    def skipped_tests(self) -> tuple[str, ...]:
        """Return the names of the tests that were skipped."""
        return tuple(sorted({name for each in self.runners for name in each.skipped_names}))

    def line(self) -> str:
        """Return the record in one line for the judge."""
        if not self.runners:
            return NO_RECORD
        return f"lopen's own record of this test run: {'; '.join(map(str, self.runners))}"


def _report_folders(builds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (runner, folder) of where each build file's tests are reported."""
    for build in builds:
        folder, _, name = build.rpartition("/")
        runner, places = _REPORTS.get(name, ("", ()))
        for place in places:
            yield runner, f"{folder}/{place}" if folder else place


def _java_name(owner: str, name: str) -> str:
    """Return a JUnit case as `package/Class.java::Class::method`, without what tells rows of a table apart.

    A name that is not a method's (`@DisplayName`, `[1] 5`, Kotlin's own) is left out: the class alone is known then.
    """
    package, _, classes = owner.rpartition(".")
    path = "/".join([*package.split("."), classes.split("$")[0]]).lstrip("/")
    method = _METHOD.fullmatch(name)
    return "::".join([f"{path}.java", *classes.split("$"), *([method[1]] if method else [])])


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that commands wrote; none of a link, of another kind of file or of a larger one.

    The part of a record that fits would tell of runs that did not come to their end.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            read = os.read(descriptor, _MOST_BYTES + 1)
            return read.decode("utf-8", "replace").split("\n") if len(read) <= _MOST_BYTES else []
        finally:
            os.close(descriptor)
    return []
