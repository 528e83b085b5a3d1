"""Drafting a specification, and the model's questions: who answers them, and when nobody does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, text, tools
from tests.fake_api import Answer
from tests.needs import require_sandbox
from tests.project import build, plan, specification

SPEC = "specs/calc/SPECIFICATION.md"


def test_run_with_a_prompt_drafts_a_specification_and_stops_at_the_gate(make_project: MakeProject) -> None:
    seen: list[Any] = []

    def mended(body: dict[str, Any]) -> Answer:
        seen.append(last_result(body, "write_spec").data)
        return tools(("write_spec", {"content": specification()}))

    unfit = specification().replace("## Overview", "## Over")
    script = [tools(("write_spec", {"content": unfit})), mended, text("Written."), plan(), build("calc-t1")]
    project = make_project(script)
    nothing = project.lopen("run", "calc")
    assert nothing.code == 1
    assert "SPECIFICATION.md does not exist" in nothing.err

    ran = project.lopen("run", "calc", "-p", "A module that adds numbers.")

    assert (ran.code, ran.last_line) == (3, "next: lopen approve calc --run")
    assert "A module that adds numbers." in str(project.requests[0]["system"])
    assert "draft_specification" in str(project.requests[0]["system"])
    assert any("`## Overview` is missing" in problem for problem in seen[0]["problems"])
    assert project.read(SPEC) == specification()
    on = project.lopen("approve", "calc", "--yes", "--run")
    assert on.code == 0, on.out + on.err


@pytest.mark.parametrize("stands", ["Ran 2 tests", "ModuleNotFoundError: No module named 'ledger'"])
def test_the_first_step_is_told_how_the_existing_tests_stand(make_project: MakeProject, stands: str) -> None:
    require_sandbox("bwrap")
    draft = tools(("write_spec", {"content": specification()}))
    project = make_project([draft], LOPEN_SANDBOX__MODE="bwrap")
    imported = "import ledger" if "Module" in stands else "import unittest"
    test = "class TestIt(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\n"
    project.write("test_ledger.py", f"{imported}\nimport unittest\n\n\n{test}")
    project.commit("Tests")

    project.lopen("run", "calc", "-p", "A ledger.")

    shown = str(project.requests[0]["system"])
    assert (
        "The existing tests, run once by lopen without verify-setup: `python3 -m unittest discover`, "
        in shown
    )
    assert stands in shown.replace("\\", "")
    assert "existing_tests" not in project.lopen("status", "calc").out  # the work made no failure yet


def test_where_the_sandbox_has_the_network_nothing_runs_before_an_approval(make_project: MakeProject) -> None:
    require_sandbox("landlock")
    project = make_project(
        [tools(("write_spec", {"content": specification()}))], LOPEN_SANDBOX__MODE="landlock"
    )
    project.write("test_ledger.py", "import unittest\n")
    project.commit("Tests")

    project.lopen("run", "calc", "-p", "A ledger.")

    assert "The existing tests" not in str(project.requests[0]["system"])


def test_a_question_while_drafting_waits_and_the_request_is_kept(make_project: MakeProject) -> None:
    question = {"question": "Whole numbers only?", "options": ["yes", "no"], "default": "yes"}
    project = make_project(
        [
            tools(("ask_user", question)),
            tools(("ask_user", {**question, "question": "Negative ones?"})),
            tools(("write_spec", {"content": specification()})),
            text("It is written."),
        ]
    )

    ran = project.lopen("run", "calc", "-p", "A module that adds numbers.")

    session = project.status()["session"]
    assert (ran.code, ran.last_line) == (3, f"next: lopen answer {session} yes")
    assert "Whole numbers only?" in ran.out
    assert "Whole numbers only?" in project.lopen("resume").out  # asking again costs nothing
    assert len(project.requests) == 1
    for nothing in ("", "  "):
        empty = project.lopen("answer", session, nothing)
        assert empty.code == 2
        assert f"lopen answer {session} yes" in empty.err
    key = "ghp_" + "a1B2" * 9
    assert project.lopen("answer", session, f"maybe {key}").code == 0
    assert project.lopen("answer", session, "no").code == 0  # nothing took the first one up
    assert project.lopen("status").last_line == f"next: lopen resume {session}"
    assert "question: Whole numbers only? [yes / no]; answered: no" in project.lopen("log").out
    log = project.lopen("log", "--json").named("question_asked")
    assert [asked["answer"].partition(" ")[0] for asked in log] == ["", "maybe", "no"]
    assert key not in str(log)
    second = project.lopen("resume")
    assert second.code == 3
    assert "Negative ones?" in second.out
    told = str(project.requests[1])
    assert "Whole numbers only? The person answered: no" in told
    assert "maybe" not in told
    assert "A module that adds numbers." in told
    assert project.lopen("answer", session, "yes").code == 0
    third = project.lopen("resume")
    assert project.lopen("answer", session, "no").code == 1
    assert (third.code, third.last_line) == (3, "next: lopen approve calc --run")


def test_planning_may_ask_once_and_then_assumes_and_a_repeated_question_keeps_its_answer(
    make_project: MakeProject,
) -> None:
    asked: list[Any] = []

    def planned(body: dict[str, Any]) -> Answer:
        asked.append(last_result(body, "ask_user").data)
        return plan()

    def style(default: str) -> Callable[[dict[str, Any]], Answer]:
        def ask(body: dict[str, Any]) -> Answer:
            asked.append(last_result(body, "ask_user").data)
            return tools(("ask_user", {"question": "Which style?", "default": default}))

        return ask

    project = make_project(
        [
            tools(("ask_user", {"question": "Which name?", "default": "calc"})),
            tools(("ask_user", {"question": "Which\n name? ", "default": "calc"})),
            style("plain"),
            style("fancy"),
            planned,
            build("calc-t1"),
        ]
    )
    project.specify()

    ran = project.approved_run()
    session = project.status()["session"]
    assert (ran.code, ran.last_line) == (3, f"next: lopen answer {session} calc")
    assert project.lopen("answer", session, "sums").code == 0
    on = project.lopen("resume")

    assert on.code == 0, on.out + on.err
    assert "Which name? The person answered: sums" in str(project.requests[1])
    assert [(answer["answer"], answer["assumed"]) for answer in asked] == [
        ("sums", False),  # the same question again
        ("plain", True),
        ("plain", True),
    ]
    assert on.out.count("Which style? Assumed: plain") == 1
    assert "Which style? Assumed: plain" in project.read(".lopen/modules/calc/plan.md")
    assert project.status()["assumptions"] == ["Which style? Assumed: plain"]
