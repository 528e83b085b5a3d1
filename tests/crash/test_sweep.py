"""Killed after every effect that has a name, and at system calls: nothing is lost, nothing done twice.

`make crash` sweeps all the system calls of a build; here is a sample, spread evenly over it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.crash.building import lost
from tests.crash.conftest import Place
from tests.crash.sweep import Point, points, tried

SYSTEM_CALLS = 12
BATCH = 6


@dataclass(frozen=True)
class Effect:
    """Something lopen does that outlives it: where, and after which of its calls in the build it is killed."""

    name: str
    where: str
    nth: int = 1


# In the order of a build: what lies before an effect lies behind the one that comes before it.
EFFECTS = (
    Effect("the branch is made", "lopen.files.module_branch:ModuleBranch.begin"),
    Effect("the session's state is saved", "lopen.store.sessions:SessionStore.save", 9),
    Effect("tokens are promised", "lopen.limits.meter:Meter.reserve", 2),
    Effect("the model answers", "lopen.models.anthropic_model:AnthropicModel.send", 2),
    Effect("tokens are settled", "lopen.limits.meter:Meter.settle", 2),
    Effect("a turn is settled", "lopen.loop.model_calls:ModelCalls._settle", 2),
    Effect("a call is stored as begun", "lopen.loop.conversation:StoredCalls.started", 6),
    Effect("a file is written", "lopen.files.workspace:Workspace.write", 3),
    Effect("a command is run", "lopen.tools.workbench:Workbench.run_command"),
    Effect("a call's result is stored", "lopen.loop.conversation:StoredCalls.ended", 6),
    Effect("a verdict is kept", "lopen.store.sessions:SessionStore.remember_verdict"),
    Effect("a reference is moved", "lopen.git.refs:References.move", 2),
    Effect("the commit is made", "lopen.git.repository:Repository.commit", 2),
    Effect("the branch is published", "lopen.files.workplace:Workplace.publish", 2),
    Effect("the completion is recorded", "lopen.tools.task_completion:_record"),
    Effect("the plan is drawn", "lopen.application.wiring:write_plan", 3),
)


@pytest.mark.parametrize("effect", EFFECTS, ids=[e.name for e in EFFECTS])
def test_killed_after(effect: Effect, place: Place) -> None:
    site, standard = place.site, place.standard
    with site.project() as root:
        fatal = ["tests.crash.faults:die", effect.where, "after", effect.nth]
        killed = site.lopen(root, "run", "calc", arrange=[fatal])
        assert killed.code == -9, f"it was not killed: {killed.code} {killed.ran.err}"
        before = site.found(root)
        resumed = site.resume(root)
        assert not lost(standard, before, site.found(root), resumed, site.asked)


@pytest.mark.parametrize("batch", range(0, SYSTEM_CALLS, BATCH))
def test_killed_at_system_calls(batch: int, place: Place) -> None:
    for point in points(place.standard.calls)[batch : batch + BATCH]:
        result = tried(place.site, place.standard, point)
        assert not result.wrong, f"{point} ({result.kind}): {result.wrong}"


def test_the_sweep_spreads_its_points_over_the_whole_build() -> None:
    calls = [("write", True), ("execve", False)] * 500

    chosen = [p.at for p in points(calls, ["all"])[:64]]

    gaps = [b - a for a, b in zip([0, *sorted(chosen)], [*sorted(chosen), len(calls)], strict=True)]
    assert max(gaps) <= 2 * len(calls) / 64
    assert {p.at for p in points(calls, ["all"])} == set(range(1, len(calls) + 1))
    assert Point("lopen", 500) in points(calls)
