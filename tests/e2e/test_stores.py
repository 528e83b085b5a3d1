"""Budgets in both stores through the real command: paused and extended, and a store that goes away or misbehaves."""

from __future__ import annotations

import shlex
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from lopen.models.messages import Usage
from lopen.store.database import Database
from tests.e2e.conftest import MakeProject
from tests.e2e.stores import kept_in, redis
from tests.endpoint import text, verdict
from tests.limits.redis_server import RedisServer
from tests.project import Project, billed, build, plan

__all__ = ["kept_in", "redis"]  # fixtures

LIMITS = {
    "module": "LOPEN_BUDGET__TOKEN_BUDGET_PER_MODULE",
    "session": "LOPEN_BUDGET__SESSION_TOKENS",
    "task": "LOPEN_BUDGET__BY_TASK_TYPE__IMPLEMENT",
}


def budgets(project: Project, **variables: str) -> dict[str, dict[str, Any]]:
    """Every budget by its kind."""
    shown = project.lopen("budget", "show", "--json", **variables)
    assert shown.code == 0, shown.err
    return {b["budget_type"]: {k: v for k, v in b.items() if k != "ts"} for b in shown.named("budget")}


def greedy(body: Any) -> Any:
    """Talk as long as is allowed."""
    return text("Soon.", usage=Usage(1_000, body["max_tokens"]))


@pytest.mark.parametrize(
    ("kind", "kept_in"),
    [("module", "sqlite"), ("session", "redis")],
    indirect=["kept_in"],
)
def test_a_budget_without_room_pauses_before_the_call_and_its_command_is_enough(
    kind: str, kept_in: dict[str, str], make_project: MakeProject
) -> None:
    limit, extensions = 24_000, list[Any]()

    def working(body: Any) -> Any:
        return build("calc-t1") if extensions else greedy(body)

    others = {LIMITS[other]: "0" for other in LIMITS if other != kind}
    script = [plan(), *[working] * 4]
    limits = {**others, LIMITS[kind]: str(limit), "LOPEN_BUDGET__CONFIRMATION_THRESHOLD": "1.0"}
    project = make_project(script, **limits, **kept_in)
    ran = project.build_module(code=3)
    assert ran.named("session_paused")[0]["kind"] == "budget"
    state = budgets(project)[kind]
    assert state["status"] in ("paused", "exhausted")
    assert state["tokens_used"] <= 1.05 * limit
    assert state["reserved"] == 0
    command = shlex.split(ran.last_line.removeprefix("next: lopen "))
    assert command[:2] == ["budget", "extend"], ran.last_line
    extended = project.lopen(*command, "--json")
    assert extended.code == 0, extended.err
    extensions.append(extended)
    assert extended.events[0]["reason"] == "no reason given"
    resumed = project.resume()
    assert resumed.code == 0, resumed.out[-2000:] + resumed.err
    alerts = [e["alert_type"] for e in (*ran.named("alert"), *resumed.named("alert"))]
    assert alerts.count("budget_exhausted") == 1
    assert budgets(project)[kind]["max_tokens"] == extended.events[0]["max_tokens"]
    told = str(project.requests[-1]["messages"])  # the same conversation goes on
    assert f"{kind} {state['tokens_used']:,}/{extended.events[0]['max_tokens']:,} (" in told


def test_a_redis_that_hangs_in_mid_run_is_tolerated_and_paid_by_the_next_command(
    redis: RedisServer, make_project: MakeProject
) -> None:
    def hanging(body: Any) -> Any:
        redis.hang()
        return build("calc-t1")

    project = make_project([plan(), hanging], LOPEN_BUDGET__STORE=redis.url)
    ran = project.build_module()
    assert ran.out.count("work goes on, what is used is counted when the store is back") == 1
    reported = ran.named("session_complete")[0]
    assert reported["tokens"] == billed(*ran.named("turn_ended"))
    assert reported["cost_usd"] == pytest.approx(sum(turn["cost_usd"] for turn in ran.named("turn_ended")))
    unreachable = project.lopen("budget", "show")
    assert unreachable.code == 1
    assert "the limits' store at 127.0.0.1" in unreachable.err
    redis.go_on()
    found = budgets(project)
    assert found["session"]["tokens_used"] == billed(*ran.named("turn_ended"))
    assert found["task"]["tokens_used"] == billed(
        *(turn for turn in ran.named("turn_ended")[1:] if turn["turn"])  # judging is not the task's
    )
    assert {b["reserved"] for b in found.values()} == {0}
    assert budgets(project) == found


def test_a_process_that_never_reached_the_store_reports_no_sum(
    redis: RedisServer, make_project: MakeProject
) -> None:
    project = make_project([plan(), build("calc-t1")], LOPEN_BUDGET__STORE=redis.url)
    project.run_module("--max-iterations", "1", code=3)
    redis.hang()
    resumed = project.resume()
    assert resumed.code == 0, resumed.out + resumed.err
    reported = resumed.named("session_complete")[0]
    assert (reported["tokens"], reported["cost_usd"]) == (None, None)
    redis.go_on()


def hurry() -> None:
    """Let lopen wait for a locked database for a moment only."""
    Database.__init__.__kwdefaults__["timeout_s"] = 0.05  # type: ignore[index]  # it has one


def test_a_database_that_is_locked_when_an_answer_comes_loses_neither_it_nor_its_charge(
    make_project: MakeProject, tmp_path: Path
) -> None:
    state_db = tmp_path / "project" / ".lopen" / "state.db"

    def locking(answer: Any) -> Any:
        def turn(body: Any) -> Any:
            locker = sqlite3.connect(state_db, isolation_level=None, check_same_thread=False)
            locker.execute("BEGIN IMMEDIATE")
            threading.Timer(0.6, locker.close).start()
            return answer

        return turn

    script = [plan(), locking(build("calc-t1"))]
    project = make_project(script, oracle=locking(verdict()))
    project.specify()
    arranged = [["tests.e2e.test_stores:hurry"]]

    ran = project.lopen("approve", "calc", "--yes", "--run", "--json", arrange=arranged)

    assert ran.code == 0, ran.out[-2000:] + ran.err
    assert (len(project.requests), len(project.oracle_requests)) == (2, 1)
    state = budgets(project)["session"]
    assert (state["tokens_used"], state["reserved"]) == (billed(*ran.named("turn_ended")), 0)
    assert len(ran.named("turn_ended")) == 3


def test_two_projects_of_one_name_are_apart_in_one_redis(
    redis: RedisServer, make_project: MakeProject
) -> None:
    found = {}
    for name, more in (("one", 0), ("two", 500)):
        told = text("Soon.", usage=Usage(1_000 + more, 10))
        project = make_project([plan(), told, build("calc-t1")], name=name, LOPEN_BUDGET__STORE=redis.url)
        project.specify()
        ran = project.drive()
        assert ran.code == 0, ran.err
        found[name] = (sum(map(billed, ran.named("turn_ended"))), project)
    for used, project in found.values():
        assert {k: b["tokens_used"] for k, b in budgets(project).items() if k != "task"} == {
            "module": used,
            "session": used,
        }
    assert found["one"][0] != found["two"][0]


def test_what_needs_no_limits_is_shown_while_redis_is_gone(
    redis: RedisServer, make_project: MakeProject
) -> None:
    project = make_project([plan()], LOPEN_BUDGET__STORE=redis.url)
    project.specify()
    assert project.lopen("run", "calc").code == 3
    redis.stop()

    [module] = project.lopen("status", "--json").named("status")[0]["modules"]
    assert module["state"] == "paused"
    assert (module["tokens"], module["cost_usd"], module["unpriced_tokens"]) == (None, None, None)
    shown = project.lopen("status")
    assert shown.code == 0, shown.err
    assert "limits unknown: the limits' store at" in shown.out + shown.err
    assert "lopen approve calc" in shown.out + shown.err
    [state] = project.lopen("status", "--json").named("status")
    assert "limits' store" in state["limits_unknown"]
    for command in (["budget", "show"], ["alerts"], ["circuit", "status"]):
        refused = project.lopen(*command)
        assert refused.code == 1
        assert "start it, or use the local store" in refused.err
