"""Read the JUnit report of a test command if this run wrote it. A report can only make the verdict stricter.

Exit code and output decide if the tests passed. A report with failed tests, or without any test, contradicts the
success of a command that ends in `|| true`.
"""

from __future__ import annotations

import os
from pathlib import Path

from lopen.base.stat_cache import Signature, signature
from lopen.oracle.junit import MAX_BYTES, Counts, UnreadableReport, read_counts, report_path
from lopen.workspace.paths import Root
from lopen.workspace.protection import ToolRefused


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
