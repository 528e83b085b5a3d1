"""Builds whose disk is full, or breaks: from one write on every write fails, or that one alone."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.crash.building import Site, Standard, lost
from tests.preloaded import watched
from tests.preloaded.runs import Fate, Outcome

Failure = Literal["enospc", "eio", "eio once"]
FAILURES: Sequence[Failure] = ("enospc", "eio", "eio once")
SQLITE = ("database or disk is full", "disk I/O error")
GIT = ("Out of diskspace", "couldn't write", "could not write", "unable to write")  # no errno, but the file
WORDS = {
    errno.ENOSPC: ("No space left on device", *SQLITE, *GIT),
    errno.EIO: ("Input/output error", *SQLITE, *GIT),
}
WRITES = frozenset({"write", "writev", "pwrite64", "fsync", "fdatasync", "ftruncate"})
ARRANGED: Sequence[Sequence[Any]] = (["tests.crash.faults:no_waiting"], ["tests.crash.faults:stay_readable"])


@dataclass
class Disk:
    """A disk that fails at its `at`-th write or sync of a file."""

    site: Site
    failure: Failure
    at: int
    kind: str = ""  # the first call that failed
    requests: int = 0  # made until then

    def __call__(self, call: watched.Call, own: bool) -> Fate:
        if call.name not in WRITES or not _is_file(call.target()):
            return "go on"
        self.at -= 1
        if self.at > 0 or (self.at < 0 and self.failure == "eio once"):
            return "go on"
        if not self.kind:
            self.kind = call.name
            self.requests = self.site.asked.whole
        return self.code

    @property
    def code(self) -> int:
        """The errno that it fails with."""
        return errno.ENOSPC if self.failure == "enospc" else errno.EIO


def _is_file(target: str) -> bool:
    return target.startswith("/") and not target.startswith(("/dev/null", "/proc"))


def starved(site: Site, standard: Standard, failure: Failure, at: int) -> tuple[str, list[str]]:
    """Build on a failing disk, then resume on a sound one: the call that failed first, and what does not hold."""
    with site.project() as root:
        disk = Disk(site, failure, at)
        outcome = site.lopen(root, "run", "calc", decide=disk, arrange=ARRANGED)
        wrong = _told(disk, outcome) if disk.kind else []
        before = site.found(root)
        if outcome.code == 0:
            return disk.kind, wrong + ([] if before.status == "complete" else [f"it is {before.status}"])
        resumed = site.resume(root)
        return disk.kind, wrong + lost(standard, before, site.found(root), resumed, site.asked)


def _told(disk: Disk, outcome: Outcome) -> list[str]:
    """What is wrong with how the run ended. One failure may be got over; a disk that stays broken may not be worked on."""
    said = outcome.ran.err
    wrong = [f"it said: {word}" for word in ("Traceback", "internal error") if word in said]
    if outcome.code == 0:
        return wrong
    if outcome.code not in (1, 3):
        wrong.append(f"it ended with {outcome.code}")
    if not any(words in said for words in WORDS[disk.code]):
        wrong.append(f"the system's words are missing: {said}")
    if "/" not in said:
        wrong.append(f"the path is missing: {said}")
    more = disk.site.asked.whole - disk.requests
    if disk.failure != "eio once" and more:
        wrong.append(f"{more} more requests were paid for")
    return wrong
