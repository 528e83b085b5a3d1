"""lopen's own record of a test run, beside the run's output (docs/reference/completion.md).

A file that Python runs at its start notes the runs of pytest and unittest. A file that Node loads notes its own
runner, Jest, Vitest and Mocha; they lie in the clean room's HOME and are made anew for each run. Maven and Gradle
write JUnit XML into the room, where no earlier one lies. Go is asked to name its tests in its output. A record only
makes stricter: it contradicts the success of a command that ends in `|| true`. Code under test can imitate a runner's
output and then end the process; it is noted that a run in Python began and did not end.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.sandbox.bubblewrap import ROOM_HOME
from lopen.sandbox.command import CommandResult, Room
from lopen.verification.junit import MAX_BYTES, UnreadableReport, read_report
from lopen.verification.runners import count_tests, fewer_reported
from lopen.verification.test_run import TestRun, read_run

_FOLDER = ".tests"
_SITE = "site"
_OPTIONS = "options"
_NOTES = "notes"
_SOURCES = tuple(
    Path(__file__).with_name("test_startup") / name for name in ("sitecustomize.py", "record.cjs")
)
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
UNREPORTED_HINT = "fewer tests are reported than were collected: nothing may end the run or change the runner"
NO_TESTS_HINT = (
    "no tests were collected, or all of them were skipped, or the process of the tests ended before they ran: write at "
    "least one test that the command finds and runs"
)
READ_ONLY_HINT = (
    "the command wrote where lopen lets no command write: in what verify-setup installed or verify.carry names, in .git, or "
    "outside of the project; have it write in the project or in /tmp, or leave a cache off"
)
_READ_ONLY = re.compile("EROFS|read-only file system", re.IGNORECASE)
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

    def __init__(
        self,
        room: Room,
        files: Iterable[str] = (),
        *,
        mounted: bool,
        options: Iterable[str] = (),
    ) -> None:
        """`mounted`: the sandbox shows the room's HOME at a place of its own, and can show files read-only. `files` are
        the paths of the tree in the room. `options` are asked of runners that know them: `go_on` where a file cannot
        be loaded, `stop` at the first failure, `only NAME` for the files of these tests alone.
        """
        self._notes = room.home / _FOLDER / _NOTES
        site = room.home / _FOLDER / _SITE
        site.mkdir(parents=True, exist_ok=True)
        for source in _SOURCES:
            (site / source.name).write_bytes(source.read_bytes())
        options = tuple(options)
        (site / _OPTIONS).write_text("\n".join(options), "utf-8")
        self.room = replace(room, fixed=(*room.fixed, (site, site))) if mounted else room
        seen = (ROOM_HOME if mounted else room.home) / _FOLDER / _SITE
        self.variables: Mapping[str, str] = {
            "PYTHONPATH": str(seen),
            "NODE_OPTIONS": f'--require "{seen / _SOURCES[1].name}"',
            "GOFLAGS": "-v -failfast" if "stop" in options else "-v",
        }
        self._reports = tuple(_report_folders(path for path in files if path.endswith(tuple(_REPORTS))))
        self._before = {
            entry.path: entry.stat().st_mtime_ns
            for _, folder in self._reports
            for entry in self._listed(folder)
        }
        self.runners: tuple[RunnerRecord, ...] = ()

    def keeping(self, command: str) -> str:
        """Return the command so that a variable which it sets itself keeps the record's value in front of its own."""

        def keep(found: re.Match[str]) -> str:
            separator = ":" if found[1] == "PYTHONPATH" else " "
            return f"{found[0]}{shlex.quote(self.variables[found[1]] + separator)}"

        return re.sub(rf"(?<![\w$])({'|'.join(self.variables)})=", keep, command)

    def read(self) -> None:
        """Set `runners` to the notes, in the order in which the processes began."""
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
        """Yield the contents of the JUnit XML that this run wrote, by folder."""
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
                        report = read_report(os.read(descriptor, MAX_BYTES + 1))
                    record.ran = (record.ran or 0) + len(report.ran) + len(report.skipped)
                    record.failed += len(report.failed)
                    record.skipped += len(report.skipped)
                    record.names += (_java_name(*each) for each in report.ran)
                    record.skipped_names += (_java_name(*each) for each in report.skipped)
                    record.failed_names += (
                        _java_name(*each) for each in report.failed if _METHOD.fullmatch(each[1])
                    )
            if record.ran:
                yield record

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        with contextlib.suppress(OSError), os.scandir(self.room.files / folder) as entries:
            names = [e for e in entries if e.name.startswith("TEST-") and e.name.endswith(".xml")]
            return sorted(names, key=lambda e: e.name)
        return []

    def why_not_passed(self, ran: CommandResult) -> str:
        """Return the reason why the command's exit with success proves nothing, or why it ran no test; else ""."""
        if ran.exit_code == 0 and (reason := self._contradiction()):
            return reason
        if not self.runners and count_tests(ran.output) == 0:  # else the record knows better than the output
            return NO_TESTS_HINT
        return UNREPORTED_HINT if ran.exit_code == 0 and fewer_reported(ran.output) else ""

    def _contradiction(self) -> str:
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

    def test_run(self, output: str) -> TestRun:
        """Return the known facts of the run, from the record, the report and the output."""
        counts = [each.ran - each.skipped for each in self.runners if each.ran is not None]
        noted = TestRun(
            sum(counts) if counts else None,
            skipped=tuple(sorted({name for each in self.runners for name in each.skipped_names})),
            failed=frozenset(name for each in self.runners for name in each.failed_names),
        )
        return read_run(output, {name for each in self.runners for name in each.names}, noted)

    def lines(self, output: str) -> Iterator[str]:
        """Yield the record in one line for the judge; of a runner without one, what it printed of single tests."""
        run = self.test_run(output)
        printed = f"{run.count} tests are named in what it printed" if run.count and run.single else ""
        told = "; ".join(map(str, self.runners)) or printed
        yield f"[lopen's own record of this test run: {told}]" if told else f"[{NO_RECORD}]"


def could_not_write(ran: CommandResult) -> str:
    """Return the reason why a command failed by writing where it may not; else ""."""
    return READ_ONLY_HINT if ran.exit_code and _READ_ONLY.search(ran.output) else ""


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
