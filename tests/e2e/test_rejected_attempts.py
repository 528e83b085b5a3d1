"""A fresh prompt after a failed attempt tells what was refused."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tools, verdict
from tests.project import Project, code, plan, verified

TASK = "calc-t1"


def prompt(project: Project, number: int) -> str:
    return "\n".join(block["text"] for block in project.requests[number]["system"])


def gives_up(note: str) -> Any:
    return tools(("update_task_status", {"task_id": TASK, "status": "failed", "note": note}))


def test_what_the_oracle_refused_reaches_the_next_attempts(make_project: MakeProject) -> None:
    refused = [
        verdict(
            passed=False,
            summary="Sums are off.",
            findings=[
                {"severity": "error", "message": finding, "path": "calc.py", "line": 2, "criterion": "AC-1"}
            ],
        )
        for finding in ("negative sums are wrong", "zero is added twice")
    ]
    project = make_project(
        [
            plan(),
            tools(*code(), *verified(TASK)[:2]),
            gives_up("the judge wants negatives"),
            tools(*code(value="b + a"), *verified(TASK)[:2]),
            *[text("I am at a loss.")] * 3,
            tools(*code(value="sum((a, b))"), *verified(TASK)),
        ],
        oracle=[*refused, verdict()],
    )
    project.build_module()

    first, second, third = prompt(project, 1), prompt(project, 3), prompt(project, 7)
    assert "refused" not in first
    assert "negative sums are wrong (calc.py:2)" in second  # also after the model itself gave up
    assert "the judge wants negatives" in second
    assert "zero is added twice (calc.py:2)" in third
    assert "negative sums are wrong" not in third  # of an attempt before the last, which was judged anew
    assert "the judge wants negatives" in third
    assert "the turn ended without the step's result" in third
    for fresh in (second, third):
        assert "calc.py" in fresh.partition("## Work in progress")[2]
        assert "before an interruption" not in fresh
