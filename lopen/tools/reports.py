"""The JUnit report of a test command: read only where this very run wrote it, and only to be stricter.

Exit code and output tell whether the tests passed; a report that names failed tests, or none at all, contradicts a
success that a shell's `|| true` made up (decisions, "TRX results").
"""

from __future__ import annotations

import os
from pathlib import Path

from lopen.base.stat_cache import Signature, signature
from lopen.oracle.junit import MAX_BYTES, Counts, UnreadableReport, read_counts, report_path
from lopen.workspace.paths import Root
from lopen.workspace.protection import ToolRefused


class JUnitReport:
    """The report that one run of `command` may write. Made before the run, asked after it."""

    def __init__(self, root: Path, command: str) -> None:
        self.path = _relative(root, report_path(command))
        self.counts: Counts | None = None
        self.problem = ""  # why a report that is there could not be read
        self._root = Root(root)
        self._before = self._look()[0]

    def read(self) -> None:
        """Fill in `counts` if the run wrote a readable report, `problem` if it wrote another."""
        identity, data = self._look(read=True)
        if identity is None or identity == self._before:
            return
        try:
            self.counts = read_counts(data)
        except UnreadableReport as error:
            self.problem = str(error)

    @property
    def failed(self) -> int:
        """Test cases that the report says failed or broke."""
        return self.counts.failures + self.counts.errors if self.counts else 0

    def line(self) -> str:
        """What the report says, for the end of the command's output; "" without one."""
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
            return None, b""  # none there, or none that may be read
        return signature(found), data


def _relative(root: Path, path: str | None) -> str | None:
    """The path from the project's root; None where the report goes elsewhere."""
    if path is None or not os.path.isabs(path):
        return path
    inside = os.path.relpath(path, root)
    return None if inside.startswith("..") else inside
