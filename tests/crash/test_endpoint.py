"""The endpoint at its worst: nothing loops, nothing broken is run, nothing is charged for what did not happen."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.crash.building import MOST_BROKEN, PER_REQUEST, Site, Standard, git
from tests.crash.endpoint_faults import AWAY, EVIL, HEAD, PATIENCE, FaultyModel, broken, faults, meet
from tests.crash.endpoint_faults import events_of as events
from tests.crash.sweep import sites
from tests.endpoint import Turn, status
from tests.fake_api import Raw
from tests.preloaded import watched

# Of what is told apart by its class alone a sample; `python -m tests.crash.endpoint_faults` meets every fault.
SAMPLE = {f"HTTP {n}" for n in (400, 429, 500)} | {"a stream that falls silent", "a connection that hangs up"}
SAMPLED = {fault.name for fault in faults() if re.fullmatch(r"HTTP \d+", fault.name)} | {
    n for n, _ in broken()
}
ROWS = [fault for fault in faults() if fault.name not in SAMPLED - SAMPLE]
GROUPS = 3
AT_ONCE = 20  # as many retries as a turn may have


@dataclass(frozen=True)
class Meeting:
    """Where builds meet a faulty model."""

    site: Site
    model: FaultyModel
    standard: Standard


@pytest.fixture(scope="module")
def meeting() -> Iterator[Meeting]:
    if why := watched.available():
        pytest.skip(why)
    model = FaultyModel()
    with sites(1, model) as (site,):
        yield Meeting(site, model, site.standard())


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_fault_that_never_ends_is_met_within_its_bounds(group: int, meeting: Meeting) -> None:
    meeting.site.variables = PATIENCE
    met = [meet(meeting.site, meeting.model, fault) for fault in ROWS[group::GROUPS]]

    table = "\n".join([HEAD, *(m.line() for m in met)])
    assert not [m for m in met if m.wrong()], f"\n{table}"


class Dripping(Sequence[bytes]):
    """Pieces that come one by one, with a pause before each."""

    def __init__(self, pieces: list[bytes], pause_s: float) -> None:
        self._pieces = pieces
        self._pause_s = pause_s

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, place: int) -> bytes:  # type: ignore[override]  # never sliced
        time.sleep(self._pause_s)
        return self._pieces[place]


def passing() -> list[Turn]:
    """Everything that is over after a while."""
    return [*(status(number, "not now") for number in AWAY), *(given for _, given in broken())]


@pytest.mark.parametrize("first", range(0, len(passing()), AT_ONCE))
def test_a_fault_that_passes_costs_its_requests_and_what_it_announced(first: int, meeting: Meeting) -> None:
    site, clean = meeting.site, meeting.standard
    meeting.model.once = faults_now = passing()[first : first + AT_ONCE]
    count = len(faults_now)
    site.variables = PATIENCE | {"LOPEN_MODEL__MAX_RETRIES": str(AT_ONCE)}
    with site.project() as root:
        ran = site.lopen(root, "run", "calc", arrange=[["tests.crash.faults:no_waiting"]])

        found = site.found(root)
        assert ran.code == 0, ran.ran.err
        assert (site.asked.model, site.asked.oracle) == (clean.asked.model + count, clean.asked.oracle)
        assert (found.tools, found.iterations) == (clean.found.tools, clean.found.iterations)
        whole = PER_REQUEST * clean.asked.whole
        assert whole <= found.tokens <= whole + MOST_BROKEN * count
        assert (found.tree, found.committed) == (clean.found.tree, clean.found.committed)


def test_a_slow_answer_is_waited_for(meeting: Meeting) -> None:
    from tests import fake_api

    slow = [fake_api.encode(event) for event in events(EVIL)]
    meeting.model.once = [Raw(Dripping(slow, 0.03))]
    meeting.site.variables = PATIENCE
    with meeting.site.project() as root:
        ran = meeting.site.lopen(root, "run", "calc")

        assert ran.code == 0, ran.ran.err
        assert (
            git(root, meeting.site.environment, "show", "lopen/calc:evil.py") == "never"
        )  # it came whole: it counts
        assert meeting.site.found(root).tokens == PER_REQUEST * (meeting.standard.asked.whole + 1)
