"""A full or broken disk, a folder without rights, a damaged recording, a clock set back: nothing is lost."""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.building import Found, Site, lost
from tests.crash.conftest import Place
from tests.crash.sweep import spread
from tests.preloaded import watched
from tests.preloaded.runs import Fate, Outcome

POINTS = 3
DAY_S = 86_400.0
SQLITE = ("database or disk is full", "disk I/O error")
GIT = ("Out of diskspace", "couldn't write", "could not write", "unable to write")  # no errno, but the file
WORDS = {
    errno.ENOSPC: ("No space left on device", *SQLITE, *GIT),
    errno.EIO: ("Input/output error", *SQLITE, *GIT),
}
WRITES = frozenset({"write", "writev", "pwrite64", "fsync", "fdatasync", "ftruncate"})


@dataclass
class Disk:
    """A disk on which the `at`-th write or sync of a file fails, and every later one unless that is `once`."""

    site: Site
    code: int
    at: int
    once: bool
    kind: str = ""  # the first call that failed
    requests: int = 0  # made until then

    def __call__(self, call: watched.Call, own: bool) -> Fate:
        target = call.target()
        is_file = target.startswith("/") and not target.startswith(("/dev/null", "/proc"))
        if call.name not in WRITES or not is_file:
            return "go on"
        self.at -= 1
        if self.at > 0 or (self.at < 0 and self.once):
            return "go on"
        if not self.kind:
            self.kind, self.requests = call.name, self.site.asked.whole
        return self.code

    def wrong(self, outcome: Outcome) -> list[str]:
        """Return what is wrong with the end of the run. One failure may be got over, a broken disk not worked on."""
        said = outcome.ran.err
        wrong = [f"it said: {word}" for word in ("Traceback", "internal error") if word in said]
        if outcome.code == 0:
            return wrong
        if outcome.code not in (1, 3):
            wrong.append(f"it ended with {outcome.code}")
        if not any(words in said for words in WORDS[self.code]) or "/" not in said:
            wrong.append(f"the system's words or the path are missing: {said}")
        more = self.site.asked.whole - self.requests
        if not self.once and more:
            wrong.append(f"{more} more requests were paid for")
        return wrong


@pytest.mark.parametrize(
    ("code", "once"), [(errno.ENOSPC, False), (errno.EIO, False), (errno.EIO, True)], ids=str
)
def test_a_write_that_fails_ends_the_work_before_the_next_request(
    code: int, once: bool, place: Place
) -> None:
    site = place.site
    writes = sum(name in WRITES for name, _ in place.standard.calls)
    arranged = [["tests.crash.faults:no_waiting"], ["tests.crash.faults:stay_readable"]]
    met = set()
    for at in spread(writes)[:POINTS]:
        with site.project() as root:
            disk = Disk(site, code, at, once)
            outcome = site.lopen(root, "run", "calc", decide=disk, arrange=arranged)
            met.add(disk.kind)
            wrong, before = disk.wrong(outcome) if disk.kind else [], site.found(root)
            if outcome.code == 0:
                assert before.status == "complete"
            else:
                resumed = site.resume(root)
                wrong += lost(place.standard, before, site.found(root), resumed, site.asked)
        assert not wrong, f"at the {at}. write ({disk.kind}): {wrong}"
    assert met & {"write", "pwrite64"}


def test_a_state_folder_without_rights_is_named_and_nothing_is_paid_for(place: Place) -> None:
    ordinary = [["tests.crash.faults:keep_to_permissions"]]
    with place.site.project() as root:
        state = root / ".lopen"
        set_rights(state, folders=0o555, files=0o444)

        ran = place.site.lopen(root, "run", "calc", arrange=ordinary).ran

        set_rights(state, folders=0o755, files=0o644)
        assert ran.code == 3  # the work waits for a person, who makes the folder writable
        assert str(state) in ran.err
        assert "ermission denied" in ran.err or "readonly database" in ran.err
        assert "Traceback" not in ran.err
        assert "internal error" not in ran.err
        assert place.site.asked.whole == 0
        again = place.site.lopen(root, "run", "calc", arrange=ordinary)
        assert again.code == 0, again.ran.err


def set_rights(folder: Path, *, folders: int, files: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(folders if path.is_dir() else files)


def test_a_recording_that_cannot_be_kept_does_not_stop_the_work(place: Place) -> None:
    with place.site.project() as root:
        folder = root / ".lopen" / "recordings"
        folder.write_text("in the way")

        ran = place.site.lopen(root, "run", "calc").ran

        assert ran.code == 0, ran.err
        assert "this run is not recorded" in ran.err
        assert str(folder) in ran.err


def test_a_damaged_recording_is_set_aside_and_a_new_one_begun(place: Place) -> None:
    site = place.site
    with site.project() as root:
        _killed_at_the_second_commit(site, root)
        (recording,) = (root / ".lopen" / "recordings").iterdir()
        recording.write_bytes(b"no recording at all")

        resumed = site.resume(root)

        assert resumed.code == 0, resumed.ran.err
        assert "moved to .lopen/corrupted/" in resumed.ran.err
        (kept,) = (root / ".lopen" / "corrupted").iterdir()
        assert kept.read_bytes() == b"no recording at all"
        assert recording.stat().st_size > 100


def _killed_at_the_second_commit(site: Site, root: Path) -> Found:
    fatal = ["tests.crash.faults:die", "lopen.git.repository:Repository.commit", "after", 2]
    assert site.lopen(root, "run", "calc", arrange=[fatal]).code == -signal.SIGKILL
    return site.found(root)


@pytest.mark.parametrize(("killed_at", "set_back_at"), [(1, 60), (2, 1)], ids=["in a run", "before a resume"])
def test_a_clock_that_is_set_back_changes_nothing(killed_at: int, set_back_at: int, place: Place) -> None:
    site = place.site
    back = ["tests.crash.faults:turn_clock_back", set_back_at, 2 * DAY_S]
    fatal = ["tests.crash.faults:die", "lopen.git.repository:Repository.commit", "after", killed_at]
    first = [back, fatal] if killed_at == 1 else [fatal]
    with site.project() as root:
        assert site.lopen(root, "run", "calc", arrange=first).code == -signal.SIGKILL
        before = site.found(root)

        resumed = site.resume(root, arrange=[back])

        assert not lost(place.standard, before, site.found(root), resumed, site.asked)
