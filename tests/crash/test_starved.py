"""A full or broken disk, a folder without rights, a clock set back, another process, a long sleep: nothing is lost."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.crash.building import Found, Site, lost
from tests.crash.conftest import Place
from tests.crash.failing import FAILURES, Failure, starved
from tests.crash.sweep import spread
from tests.preloaded import watched
from tests.preloaded.runs import Fate, Outcome

POINTS = 4
DAY_S = 86_400.0


@pytest.mark.parametrize("failure", FAILURES)
def test_a_write_that_fails_ends_the_work_before_the_next_request(failure: Failure, place: Place) -> None:
    writes = sum(name in {"write", "pwrite64", "fsync", "fdatasync"} for name, _ in place.standard.calls)
    met = set()
    for at in spread(writes)[:POINTS]:
        kind, wrong = starved(place.site, place.standard, failure, at)
        met.add(kind)
        assert not wrong, f"{failure} at the {at}. write ({kind}): {wrong}"
    assert met & {"write", "pwrite64"}


def test_a_state_folder_without_rights_is_named_and_nothing_is_paid_for(place: Place) -> None:
    ordinary = [["tests.crash.faults:keep_to_permissions"]]
    with place.site.project() as root:
        state = root / ".lopen"
        files = [state, *state.rglob("*")]
        for path in files:
            path.chmod(0o555 if path.is_dir() else 0o444)

        ran = place.site.lopen(root, "run", "calc", arrange=ordinary).ran

        for path in [state, *state.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert ran.code == 3  # the work waits for a person, who makes the folder writable
        assert str(state) in ran.err
        assert "ermission denied" in ran.err or "readonly database" in ran.err
        assert "Traceback" not in ran.err
        assert "internal error" not in ran.err
        assert place.site.asked.whole == 0
        again = place.site.lopen(root, "run", "calc", arrange=ordinary)
        assert again.code == 0, again.ran.err


def test_a_recording_that_cannot_be_kept_or_read_does_not_stop_the_work(place: Place) -> None:
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


@pytest.mark.parametrize("after", [1, 60])
def test_a_clock_that_is_set_back_changes_nothing(after: int, place: Place) -> None:
    site = place.site
    with site.project() as root:
        back = ["tests.crash.faults:turn_clock_back", after, 2 * DAY_S]
        ran = site.lopen(root, "run", "calc", arrange=[back])
        assert ran.code == 0, ran.ran.err
        found = site.found(root)
        assert (found.tree, list(found.committed)) == (
            place.standard.found.tree,
            list(place.standard.found.committed),
        )


def test_a_resume_by_an_earlier_clock_goes_on_where_the_killed_run_was(place: Place) -> None:
    site = place.site
    with site.project() as root:
        before = _killed_at_the_second_commit(site, root)
        back = ["tests.crash.faults:turn_clock_back", 1, 2 * DAY_S]

        resumed = site.resume(root, arrange=[back])

        wrong = lost(place.standard, before, site.found(root), resumed, site.asked)
        assert not wrong


class Held:
    """Stops lopen inside a transaction, and lets others try while it sleeps."""

    def __init__(self, site: Site, root: Path, at: int) -> None:
        self._site = site
        self._root = root
        self._left = at
        self.others: dict[str, Outcome] = {}

    def __call__(self, call: watched.Call, own: bool) -> Fate:
        if own and call.name == "pwrite64" and call.target().endswith("state.db-wal"):
            self._left -= 1
            if self._left == 0:
                os.kill(call.pid, signal.SIGSTOP)
                self._let_others_try()
                os.kill(call.pid, signal.SIGCONT)
        return "go on"

    def _let_others_try(self) -> None:
        """Their patience is shorter than the sleep."""
        impatient = [
            [
                "tests.crash.faults:replace",
                "lopen.store.database:Database.__init__.__kwdefaults__",
                {"timeout_s": 0.1, "schema": None},
            ]
        ]
        for name, arguments in {
            "look": ("status", "calc", "--json"),
            "run": ("run", "calc"),
            "write": ("budget", "extend", "module:calc", "--tokens", "1000", "--reason", "more"),
        }.items():
            self.others[name] = self._site.lopen(self._root, *arguments, arrange=impatient)


def test_a_run_that_sleeps_inside_a_transaction_is_waited_for_and_goes_on(place: Place) -> None:
    site = place.site
    with site.project() as root:
        held = Held(site, root, at=400)

        ran = site.lopen(root, "run", "calc", decide=held, arrange=[["tests.crash.faults:stay_readable"]])

        assert ran.code == 0, ran.ran.err
        look, run, write = (held.others[name].ran for name in ("look", "run", "write"))
        assert look.code == 0
        assert json.loads(look.out.splitlines()[0])["status"] == "running"
        assert run.code == 1
        assert "is working on module calc" in run.err
        assert write.code == 1
        assert "another process is writing" in write.err
        found = site.found(root)
        assert (found.tree, list(found.committed), found.status) == (
            place.standard.found.tree,
            list(place.standard.found.committed),
            "complete",
        )
