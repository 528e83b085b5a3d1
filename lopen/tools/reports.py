"""What a verify command printed, and the JUnit report of a test command if this run wrote it: it only makes stricter.

Exit code and output decide if the tests passed. A report with failed tests, or without any test, contradicts the
success of a command that ends in `|| true`. Tests that pass in the model's own tree and fail in the clean room, or the
reverse, are told once.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.core.events import VerificationRan
from lopen.core.files import Signature, signature
from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.sandbox.command import CommandResult
from lopen.store.audit import AuditTrail, VerificationRecord
from lopen.store.journal import Journal
from lopen.tools.run_records import NO_TESTS_HINT, RunRecord
from lopen.verification.junit import MAX_BYTES, Counts, UnreadableReport, read_counts, report_path
from lopen.verification.runners import fewer_reported, no_tests_collected

EVENT_TAIL = 4_000  # characters of it in the event
OUTPUT_TAIL = 12_000  # characters of a verify command's output that the model is shown
FEWER_HINT = "fewer tests are reported than were collected: nothing may end the run or change the runner"
FAILED_HINT = "the command exited with success, but {path} tells of {failed} failed tests: fix them"
READ_ONLY_HINT = (
    "the command wrote where lopen lets no command write: in what verify-setup installed or verify.carry names, in .git, or "
    "outside of the project; have it write in the project or in /tmp, or leave a cache off"
)
_READ_ONLY = re.compile("EROFS|read-only file system", re.IGNORECASE)


class JUnitReport:
    """The report of one run of `command`. Create it before the run and read it afterwards."""

    def __init__(self, root: Path, command: str, room: Path) -> None:
        """`room` is the folder in which the command runs, for the project at `root`."""
        self.path = _relative(root, report_path(command))
        self.counts: Counts | None = None
        self.problem = ""  # the reason why an existing report is not readable
        self._root = Root(room)
        self._before = self._look()[0]

    def read(self) -> None:
        """Set `counts` if the run wrote a readable report, `problem` if it wrote an unreadable one."""
        identity, data = self._look(read=True)
        if identity is None or identity == self._before:
            return
        try:
            self.counts = read_counts(data)
        except UnreadableReport as error:
            self.problem = str(error)

    @property
    def failed(self) -> int:
        """The number of failed and broken test cases in the report."""
        return self.counts.failures + self.counts.errors if self.counts else 0

    def line(self) -> str:
        """Return a summary line for the end of the command's output; "" without a report."""
        if self.problem:
            return f"[{self.path} was not used: {self.problem}]"
        if self.counts is None:
            return ""
        n = self.counts
        return (
            f"[{self.path}: {n.tests} tests, {n.passed} passed, {n.failures} failed, "
            f"{n.errors} with errors, {n.skipped} skipped]"
        )

    def _look(self, *, read: bool = False) -> tuple[Signature | None, bytes]:
        if self.path is None:
            return None, b""
        try:
            with self._root.open_file(self.path) as (descriptor, _):
                found = os.fstat(descriptor)
                data = os.read(descriptor, min(found.st_size, MAX_BYTES) + 1) if read else b""
        except (ToolRefused, OSError):
            return None, b""  # missing or not readable
        return signature(found), data


def _relative(root: Path, path: str | None) -> str | None:
    """Return the path relative to the project's root, None if the report is outside of it."""
    if path is None or not os.path.isabs(path):
        return path
    inside = os.path.relpath(path, root)
    return None if inside.startswith("..") else inside


def why_not_passed(
    report: JUnitReport | None, record: RunRecord | None, ran: CommandResult, command: str
) -> str:
    """Return the reason why a test command's exit code proves nothing, and why any command could not write; else ""."""
    if report and record and (reason := _why_no_proof(report, record, ran, command)):
        return reason
    return READ_ONLY_HINT if ran.exit_code and _READ_ONLY.search(ran.output) else ""


def _why_no_proof(report: JUnitReport, record: RunRecord, ran: CommandResult, command: str) -> str:
    report.read()
    record.read()
    if ran.exit_code == 0 and (reason := record.why_not_passed()):
        return reason
    if no_tests_collected(ran.exit_code, ran.output, command, report.counts):
        return NO_TESTS_HINT
    if ran.exit_code == 0 and fewer_reported(ran.output):
        return FEWER_HINT
    if report.failed and ran.exit_code == 0:
        return FAILED_HINT.format(path=report.path, failed=report.failed)
    return ""


def with_notes(ran: CommandResult, last: str) -> str:
    """Return the output, with the summary of the test report as the `last` line."""
    output = f"{ran.output.rstrip()}\n{last}" if last else ran.output
    if ran.timed_out:
        output += f"\n[stopped after {ran.seconds:.0f} s: the command took too long]"
    return output


def shown_end(output: str) -> str:
    """Return the end of the output, which the model is shown."""
    if len(output) <= OUTPUT_TAIL:
        return output
    cut = f"[the first {len(output) - OUTPUT_TAIL} characters are left out; run_command gives more]"
    return f"{cut}\n{output[-OUTPUT_TAIL:]}"


def keep_record(journal: Journal, audit: AuditTrail, record: VerificationRecord) -> None:
    """Store the record of a verification with its output, and tell of it."""
    with journal.transaction():
        kept = audit.verification(record)
        tail = kept.output[-EVENT_TAIL:]
        told = VerificationRan(
            kept.tool, kept.command, kept.passed, kept.exit_code, kept.seconds, kept.number, tail
        )
        journal.tell(told)


SHOWN = 20  # paths by name
NOISE = ("__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/")
DIFFERS = (
    "the tests {here} in your work tree (run_command) and {there} in the clean room, which holds only what would be "
    "committed, with an empty HOME and no caches; in your work tree alone lie: {names}"
)


@dataclass
class TwoPlaces:
    """The latest run of the tests by the model itself: the tree and whether they passed."""

    looked: tuple[str, bool] | None = None
    _told: bool = False

    def told(self, left_out: Sequence[str], *, passed: bool) -> str:
        """Return the difference in words, "" where the model knows it. `passed`: in the room."""
        if self._told:
            return ""
        self._told = True
        paths = [path for path in left_out if not path.endswith(NOISE)]
        names = ", ".join(json.dumps(path) for path in paths[:SHOWN]) or "nothing"
        more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
        here, there = ("fail", "pass") if passed else ("pass", "fail")
        return DIFFERS.format(here=here, there=there, names=names + more)
