"""What a run costs, whom it is charged to, and what stops it (docs/reference/budgets-and-circuits.md)."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from lopen.models.messages import Usage
from tests.e2e.conftest import MakeProject
from tests.endpoint import status, text, tools, verdict
from tests.project import Project, billed, build, code, plan, verified
from tests.ran import Ran


def budgets(project: Project) -> dict[str, dict[str, Any]]:
    """Every budget by its kind."""
    shown = project.lopen("budget", "show", "--json")
    assert shown.code == 0, shown.err
    return {b["budget_type"]: b for b in shown.named("budget")}


def test_every_turn_is_charged_once_and_the_oracle_to_no_task(make_project: MakeProject) -> None:
    script = [plan(), text("Soon."), build("calc-t1"), tools(*code(value="b + a"), *verified("calc-t1"))]
    project = make_project(script, oracle=[verdict(passed=False), verdict()])
    ran = project.build_module()
    turns = ran.named("turn_ended")
    assert [t["purpose"] for t in turns] == ["turn", "turn", "turn", "oracle", "turn", "oracle"]
    found = budgets(project)
    assert found["task"]["budget_id"] == "task:calc-t1"
    built = [t for t in turns[1:] if t["purpose"] == "turn"]
    assert found["task"]["tokens_used"] == sum(billed(t) for t in built)
    for kind in ("session", "module"):
        assert found[kind]["tokens_used"] == sum(billed(t) for t in turns)
        assert found[kind]["requests_used"] == len(turns)
        assert found[kind]["reserved"] == 0
    left = found["session"]["max_tokens"] - found["session"]["tokens_used"]
    assert found["session"]["remaining"] == left
    assert (found["module"]["max_tokens"], found["module"]["remaining"]) == (0, None)  # unlimited
    cost = sum(t["cost_usd"] for t in turns)
    assert found["session"]["cost_usd"] == pytest.approx(cost, abs=1e-5)
    complete = ran.named("session_complete")[0]
    assert complete["cost_usd"] == pytest.approx(cost)
    assert complete["tokens"] == found["session"]["tokens_used"]


def test_the_most_it_may_cost_is_never_passed_and_more_is_asked_for(make_project: MakeProject) -> None:
    project = make_project([plan(), text("Soon.", usage=Usage(2_000, 2_500)), build("calc-t1")])
    project.approve_module()

    ran = project.lopen("run", "calc", "--max-cost", "0.04", "--json")

    assert ran.code == 3, ran.err
    assert 1_024 <= project.requests[0]["max_tokens"] < 16_000  # what the money pays for
    spent = sum(t["cost_usd"] for t in ran.named("turn_ended"))
    assert 0 < spent <= 0.04
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "budget"
    assert "of the $0.04" in paused["message"]
    assert f"${spent:.3f}"[:-1] in paused["message"]
    assert "it may, and another request may cost $" in paused["message"]
    command = shlex.split(ran.last_line.removeprefix("next: "))
    again = project.lopen("resume", "--max-cost", "0.0001")
    assert (again.code, "--max-cost 0.0001 is spent already: calc-" in again.err) == (2, True), again.err
    least = again.err.rpartition("--max-cost ")[2]
    assert spent < float(least) <= 3 * spent
    assert project.lopen("status").out.count("of $0.04") == 1, "the refused limit is not taken"
    resumed = project.lopen(*command[1:])
    assert resumed.code == 0, resumed.err


def test_the_most_iterations_stop_a_session_and_resume_grants_as_many_again(
    make_project: MakeProject,
) -> None:
    script = [
        plan(tasks=("One", "Two", "Three")),
        build("calc-t1"),
        tools(*code(value="b + a"), *verified("calc-t2")),
        tools(*code(value="b + a + 0"), *verified("calc-t3")),
    ]
    project = make_project(script)
    project.approve_module()

    ran = project.lopen("run", "calc", "--max-iterations", "1", "--json")

    assert _iterations(ran) == [1]
    assert ran.code == 3
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "iterations"
    assert ran.last_line == f"next: lopen resume {paused['session']}"
    again = project.resume("--max-iterations", "2")
    assert (again.code, _iterations(again)) == (3, [2, 3])
    rest = project.resume()
    assert (rest.code, _iterations(rest)) == (0, [4])


def _iterations(ran: Ran) -> list[int]:
    return [e["iteration"] for e in ran.named("iteration_started")]


def test_a_model_without_a_known_price_is_counted_in_tokens(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")], LOPEN_ORACLE__MODEL="their-judge")
    project.approve_module()

    ran = project.lopen("run", "calc", "--model", "their-own", "--json")

    assert ran.code == 0, ran.err
    assert [t["cost_usd"] for t in ran.named("turn_ended")] == [None] * 3
    complete = ran.named("session_complete")[0]
    assert complete["cost_usd"] is None
    assert complete["tokens"] == sum(billed(t) for t in ran.named("turn_ended"))
    assert budgets(project)["session"]["unpriced_tokens"] == complete["tokens"]
    assert complete["unpriced_tokens"] == complete["tokens"]
    [module] = project.lopen("status", "--json").named("status")[0]["modules"]
    assert module["unpriced_tokens"] == module["tokens"] > 0
    for looking in (["status"], ["budget", "show"]):
        assert f"{module['tokens']:,} tokens without a known price" in project.lopen(*looking).out


def test_with_a_limit_on_cost_no_model_without_a_price_is_asked(make_project: MakeProject) -> None:
    project = make_project(
        [status(529, "overloaded")],
        LOPEN_MODEL__MAX_RETRIES="0",
        LOPEN_MODELS__FALLBACK='["their-own"]',
    )
    project.approve_module()

    away = project.lopen("run", "calc", "--max-cost", "1", "--json")
    refused = project.lopen("resume", "--model", "their-own", "--max-cost", "1", "--json")

    assert away.code != 0
    assert "not used as fallbacks, since their price is not known: their-own" in away.out
    assert refused.code == 1
    assert "no price is known for their-own" in refused.out
    judged = project.lopen("resume", "--max-cost", "1", LOPEN_ORACLE__MODEL="their-judge")
    assert judged.code == 1
    assert "no price is known for their-judge (oracle.model)" in judged.err
    assert "lopen config set --user oracle.model sonnet; or limit tokens instead: " in judged.err
    assert len(project.requests) == 1  # of the first run
