"""The part of the way between two trees that accepted verdicts do not cover."""

from __future__ import annotations

import pytest

from lopen.judge.evidence import uncovered
from lopen.judge.verdict import Verdict

Step = tuple[str, str, str]  # subject, tree before, tree after


@pytest.mark.parametrize(
    ("steps", "gaps"),
    [
        pytest.param([], [("0", "9")], id="nothing judged"),
        pytest.param([("t1", "0", "1"), ("t2", "1", "9")], [], id="every step judged"),
        pytest.param([("t1", "0", "1"), ("t2", "2", "9")], [("1", "2")], id="a person's commit between"),
        pytest.param([("t1", "0", "1")], [("1", "9")], id="work after the last verdict"),
        pytest.param([("t1", "3", "9")], [("0", "9")], id="work that began elsewhere"),
        pytest.param(
            [("t1", "0", "1"), ("t2", "1", "2"), ("c1", "0", "2"), ("t3", "3", "9")],
            [("2", "3")],
            id="a component over its tasks",
        ),
        pytest.param([("t1", "0", "1"), ("t2", "1", "5"), ("t2", "1", "9")], [], id="a task judged again"),
        pytest.param(
            [("t1", "0", "1"), ("t2", "1", "1"), ("t3", "1", "9")], [], id="a task that changed nothing"
        ),
    ],
)
def test_the_steps_and_the_gaps_lead_from_tree_to_tree(
    steps: list[Step], gaps: list[tuple[str, str]]
) -> None:
    verdicts = [
        Verdict(True, "high", "", (), "task", subject, str(n), base_tree=before, tree=after)
        for n, (subject, before, after) in enumerate(steps)
    ]

    assert uncovered("0", "9", verdicts) == tuple(gaps)


def test_nothing_is_uncovered_where_nothing_changed() -> None:
    assert uncovered("0", "0", []) == ()
