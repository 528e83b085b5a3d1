"""`run --dry-run` shows what the same run would send first, and leaves everything as it is."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import status, tools
from tests.limits.redis_server import RedisServer
from tests.project import Project, build, code, component, plan, specification

REFUSED = status(400, "no more")


def left_alone(project: Project) -> tuple[str, ...]:
    """Everything that a dry run could change: refs, files, sessions, counts."""
    state = project.lopen("session", "list", "--json").out.splitlines()
    told = [line.partition('"event"')[2] for line in state]
    papers = sorted(
        f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for folder in ("logs", "recordings", "modules")
        for path in (project.root / ".lopen" / folder).rglob("*")
        if path.is_file()
    )
    return (
        project.git("for-each-ref"),
        project.git("symbolic-ref", "HEAD"),
        project.git("status", "--porcelain"),
        project.lopen("budget", "show").out,
        *told,
        *papers,
    )


def assert_as_sent(project: Project) -> None:
    """What the dry run shows is, block for block, what the run then sends."""
    before, sent = left_alone(project), len(project.requests)
    shown = project.lopen("run", "calc", "--dry-run", "--json")
    assert shown.code == 0, shown.err
    assert left_alone(project) == before
    assert len(project.requests) == sent
    [line] = shown.named("dry_run")
    assert line["sent"] is True

    project.lopen("run", "calc")

    first = project.requests[sent]
    assert line["system"] == [block["text"] for block in first["system"]]
    assert line["tools"] == [tool["name"] for tool in first["tools"]]
    assert (line["model"], line["max_tokens"]) == (first["model"], first["max_tokens"])
    opening = first["messages"][0]["content"][0]["text"]
    assert line["opening"] == opening


def test_after_the_approval_it_is_the_planning(make_project: MakeProject) -> None:
    project = make_project([REFUSED])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert_as_sent(project)


def test_after_the_planning_it_is_the_first_task(make_project: MakeProject) -> None:
    project = make_project([plan(), REFUSED])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert project.lopen("plan", "calc").code == 0
    assert_as_sent(project)


def test_after_a_refused_request_it_is_the_same_once_more(make_project: MakeProject) -> None:
    project = make_project([plan(), REFUSED, REFUSED])
    project.specify()
    assert project.approved_run().code == 1
    assert_as_sent(project)


def test_without_a_specification_it_is_the_draft(make_project: MakeProject) -> None:
    project = make_project([REFUSED])
    brief = project.lopen("run", "calc", "-p", "Make a calculator", "--dry-run")
    assert "Make a calculator" not in brief.out
    assert brief.last_line == "its prompt: add -v; nothing was sent"
    shown = project.lopen("run", "calc", "-p", "Make a calculator", "--dry-run", "-v")
    assert shown.out.startswith(brief.out.removesuffix("its prompt: add -v; nothing was sent\n"))
    assert "Make a calculator" in shown.out
    assert "Draft the specification" in shown.out
    assert project.lopen("session", "list", "--json").named("session") == []


def test_at_the_gate_nothing_is_sent(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    shown = project.lopen("run", "calc", "--dry-run")
    assert shown.code == 0, shown.err
    assert (
        "no request would be sent: the specification passes `lopen check` and waits for approval" in shown.out
    )
    assert shown.last_line == "next: lopen approve calc --run"
    ran = project.lopen("run", "calc", "--dry-run", "--json", "--max-cost", "3")
    [line] = ran.named("dry_run")
    assert (line["sent"], line["command"]) == (False, "lopen approve calc --run")
    [estimate] = ran.named("estimate")
    assert (estimate["sessions"], estimate["limits"]["budget.max_cost_usd"]) == (0, 3)


def test_what_a_build_may_cost_comes_from_earlier_ones(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    first = project.lopen("approve", "calc", "--yes", "--json")
    [guess] = first.named("estimate")
    assert "the whole build may cost $" in project.lopen("approve", "calc", "--yes").out
    assert project.lopen("run", "calc").code == 0
    [used] = [
        b for b in project.lopen("budget", "show", "--json").named("budget") if b["budget_type"] == "session"
    ]
    project.specify("tax", specification("tax", criteria=["a", "b", "c"]))

    ran = project.lopen("run", "tax", "--dry-run")

    assert ran.code == 0, ran.err
    assert ": a range, from 1 finished session of this project" in ran.out
    [known] = project.lopen("run", "tax", "--dry-run", "--json").named("estimate")
    assert guess["sessions"] == 0
    assert guess["tokens"][0] < guess["tokens"][1]
    assert known["tokens"] == [round(used["tokens_used"] * 0.5 * 3), round(used["tokens_used"] * 2 * 3)]

    with closing(sqlite3.connect(project.root / ".lopen" / "state.db")) as database, database:
        database.execute("UPDATE sessions SET body='{}'")
    without = project.lopen("approve", "tax", "--yes")
    assert without.code == 0, without.err
    assert "a range, from the specification's size" in without.out
    assert known["cost_usd"] == pytest.approx(
        [used["cost_usd"] * 0.5 * 3, used["cost_usd"] * 2 * 3], rel=1e-3
    )


def test_what_the_run_refuses_the_dry_run_refuses(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    project.write("stray.py", "1\n")
    real, dry = project.lopen("run", "calc"), project.lopen("run", "calc", "--dry-run")
    assert (dry.code, dry.err) == (real.code, real.err)
    assert "stray.py" in dry.err


def test_where_lopen_verifies_first_it_says_so(make_project: MakeProject) -> None:
    done: list[tuple[str, dict[str, Any]]] = [
        ("record_dependencies", {"dependencies": []}),
        ("record_components", {"components": [component("core", "AC-1", state="done")]}),
    ]
    project = make_project([tools(*done), REFUSED], oracle=[REFUSED])
    for path, content in ((call["path"], call["content"]) for _, call in code()):
        project.write(path, content)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "By hand")
    project.specify()
    assert project.approved_run().code == 1
    before = left_alone(project)
    shown = project.lopen("run", "calc", "--dry-run")
    assert shown.code == 0, shown.err
    assert "no request would be sent: lopen first verifies" in shown.out
    assert left_alone(project) == before


def test_what_a_shared_store_counted_is_shown_and_nothing_is_counted(
    make_project: MakeProject, tmp_path: Path
) -> None:
    server = RedisServer(tmp_path)
    try:
        project = make_project([plan(), REFUSED], LOPEN_BUDGET__STORE=server.url)
        project.specify()
        assert project.lopen("approve", "calc", "--yes").code == 0
        assert project.lopen("plan", "calc").code == 0
        assert_as_sent(project)
    finally:
        server.stop()
