"""Run the session's test command again in the clean room, or beside it, on trees and files of lopen's own choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event

from lopen.core.clock import Clock
from lopen.sandbox.command import Command, CommandResult
from lopen.store.audit import AuditTrail, VerificationRecord
from lopen.store.journal import Journal
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Commands, Runs
from lopen.tools.reports import JUnitReport, keep_record, why_not_passed
from lopen.verification.tests_run import TestsRun, failed_names, read_run

Edits = Mapping[str, Callable[[bytes], bytes]]  # by path
NO_EDITS: Edits = {}


@dataclass(frozen=True, slots=True)
class TestRun:
    """The passing run of the test command on the tree under judgement."""

    __test__ = False

    command: str
    tree: str
    seconds: float

    @property
    def usual_s(self) -> float:
        """The longest time that another run may take."""
        return max(3 * self.seconds, self.seconds + 5.0)


@dataclass(frozen=True, slots=True)
class Rerun:
    """One more run: `passed` as of a verify command, the tests that ran, and the single ones that failed, by name."""

    result: CommandResult
    passed: bool
    ran: TestsRun
    failed: frozenset[str]


@dataclass(frozen=True)
class Rerunner:
    """Runs one session's test command again, and stores what was found."""

    commands: Commands
    room: CleanRoom
    journal: Journal
    audit: AuditTrail
    clock: Clock
    network: bool

    def rerun(
        self,
        run: Runs,
        room: CleanRoom,
        tree: str,
        tests: TestRun,
        timeout_s: float,
        *,
        edits: Edits = NO_EDITS,
        go_on: bool = False,
        cancelled: Event | None = None,
    ) -> Rerun:
        """Run the tests once in `room`, on `tree` with `edits`; afterwards the room is as it was.

        `go_on`: pytest runs the other tests where a file cannot be loaded.
        """
        place = room.enter(tree)
        try:
            for path, edited in edits.items():
                room.edit(path, edited)
            report = JUnitReport(self.commands.repository.root, tests.command, place.files)
            record = room.record(place, go_on=go_on)
            ran = run(
                Command(
                    tests.command,
                    cwd=self.commands.repository.root,
                    timeout_s=timeout_s,
                    network=self.network,
                    env=record.variables,
                    room=record.room,
                    cancelled=cancelled,
                )
            )
            reason = why_not_passed(report, record, ran, tests.command)  # reads the record, too
        finally:
            room.leave(wanted=lambda _: False)
        names = read_run(ran.output, report.counts, record.tests())
        passed = ran.exit_code == 0 and not reason
        failed = failed_names(ran.output, record.failed_tests())
        return Rerun(ran, passed, names, failed)

    def keep(
        self,
        tool: str,
        tests: TestRun,
        started: float,
        lines: list[str],
        *,
        passed: bool,
        **found: Mapping[str, object],
    ) -> None:
        """Store what was found on the tree, with its `lines` for people, and tell of it."""
        task = self.journal.session.task
        record = VerificationRecord(
            0, None, task.id if task else None, tool, tests.command, passed,
            int(not passed), self.clock.monotonic() - started, tests.tree,
            self.clock.now().isoformat(timespec="seconds"), "", "\n".join(lines), **found,
        )  # fmt: skip
        keep_record(self.journal, self.audit, record)
