"""Several modules by one command: side by side, one budget for all, and a table at the end."""

from __future__ import annotations

import signal
import threading

from tests.endpoint import status
from tests.fake_api import Answer
from tests.project import TIMEOUT_S, build, plan
from tests.queue.conftest import MakeProject
from tests.screen import Screen, lopen


def test_modules_are_built_side_by_side_and_one_that_fails_stops_no_other(make_project: MakeProject) -> None:
    project = make_project("alpha", "beta", "gamma", "delta", gamma=status(400, "no"))
    for module in ("alpha", "beta", "gamma"):
        assert project.lopen("approve", module, "--yes").code == 0
    would = project.lopen("run", "--all", "--dry-run")
    assert would.code == 0, would.err
    assert "it waits for your approval: lopen approve delta" in would.out
    assert would.last_line == "4 of 4 would be built; nothing was sent"
    assert project.requests == []
    ran = project.lopen("run", "--all", "--unattended", "--jobs", "3")
    assert ran.code == 3, ran.out + ran.err
    assert ran.last_line == "next: lopen approve delta"
    warnings = [line.partition("warning: ")[2] for line in ran.out.splitlines() if "warning: " in line]
    assert warnings, ran.out
    assert len(warnings) == len(set(warnings)), "what several modules warn of is told once"
    table = ran.out[ran.out.index("module  result") :].splitlines()
    assert [line.split()[:2] for line in table if not line.startswith((" ", "module", "next"))] == [
        ["alpha", "complete"],
        ["beta", "complete"],
        ["delta", "waits"],
        ["gamma", "failed"],
    ]
    assert "for you" not in project.lopen("status").out, "a failed module waits for nobody"
    assert project.holds("alpha.py", "alpha")
    assert project.holds("beta.py", "beta")
    assert not project.holds("beta.py", "alpha")
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""


def test_an_interrupt_pauses_all_and_resume_all_goes_on(make_project: MakeProject) -> None:
    asked, held = threading.Event(), threading.Event()

    def held_back(_: object) -> Answer:
        while len(project.lopen("session", "list", "--json").named("session")) < 2:
            pass
        asked.set()
        held.wait(TIMEOUT_S)
        return plan()

    project = make_project("alpha", "beta", alpha=[held_back, plan(), build("alpha-t1", "alpha")])
    approved = project.lopen("approve", "alpha", "beta", "--yes")
    assert approved.code == 0, approved.err
    running = project.start("run", "alpha", "beta")
    assert asked.wait(TIMEOUT_S)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=TIMEOUT_S)
    held.set()
    assert running.returncode == 130, out + err
    assert out.splitlines()[-1] == "next: lopen resume --all"
    assert [project.status(m)["status"] for m in ("alpha", "beta")] == ["paused", "paused"]
    shown = project.lopen("status").out.splitlines()
    assert [line.split(":")[0].strip() for line in shown[-3:]] == ["2 wait for you", "alpha", "beta"]
    resumed = project.lopen("resume", "--all", "--json")
    assert resumed.code == 0, resumed.out + resumed.err
    assert [(e["module"], e["result"]) for e in resumed.named("build_ended")] == [
        ("alpha", "complete"),
        ("beta", "complete"),
    ]
    budgets = project.lopen("budget", "show", "--json").named("budget")
    [group] = [b for b in budgets if b["budget_type"] == "group"]
    assert group["requests_used"] == sum(b["requests_used"] for b in budgets if b["budget_type"] == "session")


def test_check_finds_unknown_names_and_circles(make_project: MakeProject) -> None:
    project = make_project(
        "alpha", "beta", "gamma", after={"alpha": "beta", "beta": "alpha", "gamma": "nobody"}
    )
    checked = project.lopen("check")
    assert checked.code == 1
    assert (
        "specs/alpha/SPECIFICATION.md:4: after: the modules wait for each other: alpha → beta → alpha"
        in checked.out
    )
    assert "specs/gamma/SPECIFICATION.md:4: after: there is no module named nobody" in checked.out


def test_the_live_view_has_a_line_a_module_and_enter_opens_one(make_project: MakeProject) -> None:
    opened, held = threading.Event(), threading.Event()

    def held_back(_: object) -> Answer:
        opened.set()
        held.wait(TIMEOUT_S)
        return plan()

    project = make_project(
        "alpha", "beta", after={"beta": "alpha"}, alpha=[held_back, build("alpha-t1", "alpha")]
    )
    assert project.lopen("approve", "alpha", "beta", "--yes").code == 0
    with Screen(project.root, lopen("run", "--all"), project.environment(), width=100) as screen:
        rows = screen.until(lambda rows: any("determining" in row for row in rows))
        assert [row[:22].rstrip() for row in rows if row.startswith(("> alpha", "  beta"))] == [
            "> alpha  determining t",
            "  beta   comes after a",
        ]
        assert opened.wait(TIMEOUT_S)
        screen.type("Enter")
        screen.until(lambda rows: any(row.startswith("alpha: ") for row in rows))
        screen.type("Enter")
        screen.until(lambda rows: any(row.startswith("> alpha") for row in rows))
        held.set()
        assert screen.until_end() == 0
        table = screen.shown()
    assert [row.split()[:3] for row in table if row.endswith(("merge alpha", "merge beta"))] == [
        ["alpha", "complete", "1/1"],
        ["beta", "complete", "1/1"],
    ]
