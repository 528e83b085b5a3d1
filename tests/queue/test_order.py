"""Modules that come after others: when they start, on what, and in which order they are merged."""

from __future__ import annotations

from tests.endpoint import status
from tests.queue.conftest import MakeProject

DIAMOND = {"left": "base", "right": "base", "top": "left, right"}


def test_a_diamond_is_built_and_merged_in_order(make_project: MakeProject) -> None:
    project = make_project("base", "left", "right", "top", after=DIAMOND)
    assert project.lopen("approve", "base", "left", "right", "top", "--yes").code == 0
    alone = project.lopen("run", "left")
    assert (alone.code, "left comes after base, which is not complete" in alone.err) == (1, True), alone.err
    ran = project.lopen("run", "top", "left", "base", "right", "--jobs", "2")
    assert ran.code == 0, ran.out + ran.err
    assert [project.holds(f"{name}.py", "top") for name in ("base", "left", "right", "top")] == [True] * 4
    assert not project.holds("right.py", "left")
    assert "Merge branch 'lopen/right' into lopen/top" in project.subjects("lopen/top")
    merged = project.lopen("merge", "--all", "--json")
    assert merged.code == 0, merged.out + merged.err
    order = [e["branch"].removeprefix("lopen/") for e in merged.named("merged")]
    assert (order[0], set(order[1:3]), order[3]) == ("base", {"left", "right"}, "top")
    assert (project.root / "top.py").exists()


def test_a_module_whose_earlier_one_fails_is_not_started(make_project: MakeProject) -> None:
    project = make_project("base", "left", after=DIAMOND, base=status(400, "no"))
    assert project.lopen("approve", "base", "left", "--yes").code == 0
    ran = project.lopen("run", "--all", "--json")
    assert ran.code == 1, ran.out + ran.err
    ended = {e["module"]: e for e in ran.named("build_ended")}
    assert (ended["base"]["result"], ended["left"]["result"]) == ("failed", "not started")
    assert ended["left"]["reason"] == "it comes after base, which is not complete"
