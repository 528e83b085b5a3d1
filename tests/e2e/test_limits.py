"""Budgets through the real command: used up, left unsettled, without a price.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

import shlex
import signal
from typing import Any

from lopen.models.messages import ESTIMATED_USAGE, Usage
from tests.e2e.conftest import MakeProject
from tests.endpoint import miscounted, silence, text, tools
from tests.project import Project, billed, build, code, plan, task
from tests.ran import Ran


def budget(project: Project, kind: str, **variables: str) -> dict[str, Any]:
    """The project's budget of that kind."""
    shown = project.lopen("budget", "show", "--json", **variables)
    assert shown.code == 0, shown.err
    return next(b for b in shown.named("budget") if b["budget_type"] == kind)


def specified(project: Project) -> Project:
    project.approve_module()
    return project


def told_to(ran: Ran) -> list[str]:
    """The command that the last line names."""
    assert ran.last_line.startswith("next: lopen "), ran.out[-2000:] + ran.err
    return shlex.split(ran.last_line.removeprefix("next: lopen ").replace("TEXT", "needed"))


def test_a_used_up_task_budget_is_told_once_and_pauses_until_a_person_extends_it(
    make_project: MakeProject,
) -> None:
    variables = {"LOPEN_BUDGET__SESSION_TOKENS": "0", "LOPEN_BUDGET__BY_TASK_TYPE__REVIEW": "100000"}
    review = tools(*[(b["name"], b["input"]) for b in plan().content][:3], ("record_tasks", _one("review")))
    script = [
        review,
        tools(*code()[:1], usage=Usage(40_000, 0)),
        tools(*code()[1:], usage=Usage(90_000, 0)),  # over two thresholds at once
        build("calc-t1"),
    ]
    project = specified(make_project(script, **variables))

    ran = project.lopen("run", "calc", "--json")

    assert ran.code == 3, ran.err
    alerts = [a["alert_type"] for a in ran.named("alert") if a["budget_id"].startswith("task:")]
    assert alerts == ["warning_threshold", "budget_exhausted"]
    command = told_to(ran)
    assert command[:2] == ["budget", "extend"]
    assert command[2].startswith("task:")
    assert budget(project, "task")["status"] == "exhausted"

    again = project.resume()
    assert (again.code, again.named("alert"), again.named("turn_ended")) == (3, [], [])
    command[command.index("--tokens") + 1] = "200000"
    extended = project.lopen(*command)
    assert (extended.code, extended.last_line) == (0, f"next: lopen resume {project.status()['session']}")
    assert "budget" not in project.lopen("status", "calc").last_line
    resumed = project.resume()
    assert resumed.code == 0, resumed.out[-2000:] + resumed.err
    assert resumed.named("alert") == []


def _one(kind: str) -> dict[str, Any]:
    return {"component": "core", "tasks": [task("Look at it", type=kind)]}


def test_what_a_killed_run_left_unsettled_counts_as_spent(make_project: MakeProject) -> None:
    script = [plan(), build("calc-t1"), build("calc-t1")]
    project = specified(make_project(script))
    planned = project.lopen("plan", "calc", "--json")
    assert planned.code == 0, planned.err

    killed = project.ended_at("before:lopen.loop.model_calls:ModelCalls._settle", "resume")

    assert killed.code < 0
    left = budget(project, "session")
    assert left["tokens_used"] == billed(*planned.named("turn_ended"))
    assert left["reserved"] > 16_000  # the answer's whole length, and its input
    on = project.resume()
    assert on.code == 0, on.out[-2000:] + on.err
    settled = budget(project, "session")
    told = f"a request that was cut off counts as ≤ {settled['estimated_tokens']:,} tokens: "
    assert [n["message"].startswith(told) for n in on.named("notice")].count(True) == 1
    assert told in project.lopen("log", "-v").out
    assert 0 < settled["estimated_tokens"] < 16_000  # its input, and no answer that nobody saw
    real = billed(*planned.named("turn_ended"), *on.named("turn_ended"))
    assert settled["tokens_used"] == real + settled["estimated_tokens"]
    assert settled["reserved"] == 0
    assert "≤ " in project.lopen("budget", "show").out


def test_what_had_streamed_when_a_run_was_cut_off_is_an_estimate_of_no_task(
    make_project: MakeProject,
) -> None:
    """Three times in a row: a task with 25,000 tokens still ends, and what was spent is not multiplied."""
    long = text("word " * 3_000, usage=Usage(input_tokens=7_000))
    script = [plan(), *(silence(long, events=4) for _ in range(3)), build("calc-t1")]
    project = specified(make_project(script, LOPEN_BUDGET__TASK_TOKENS="25000"))
    assert project.lopen("plan", "calc").code == 0
    for _ in range(3):
        with project.start("resume", "--json") as process:
            assert process.stdout is not None
            assert any('"model_text"' in line for line in process.stdout)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    on = project.resume()
    assert on.code == 0, on.out[-2000:] + on.err
    session = budget(project, "session")
    # The announced input each time, and the part of the answer that had come
    assert 21_000 <= session["estimated_tokens"] <= 3 * (7_000 + 5_100)
    assert budget(project, "task")["estimated_tokens"] == 0


def test_an_endpoint_that_does_not_count_is_limited_by_estimates(make_project: MakeProject) -> None:
    uncounted = {"input_tokens": None, "output_tokens": "20000"}
    long = miscounted(text("word " * 20_000), uncounted)  # about 25,000 tokens
    variables = {"LOPEN_BUDGET__SESSION_TOKENS": "100000", "LOPEN_WORKFLOW__FAILURE_THRESHOLD": "100"}
    project = specified(make_project(lambda _: long, **variables))

    ran = project.lopen("run", "calc", "--json")

    assert ran.code == 3, ran.out[-2000:] + ran.err
    assert len(project.requests) <= 5
    assert budget(project, "session")["status"] in {"paused", "exhausted"}
    assert [n["message"] for n in ran.named("notice")].count(ESTIMATED_USAGE) == 1
    assert "≤ " in project.lopen("budget", "show").out
