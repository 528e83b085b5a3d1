"""A specification that changes under a run: what is planned again, what stays, and what waits for a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.fake_api import Answer
from tests.project import UNITTEST, Project, build, code, component, plan, specification, task, verified
from tests.ran import Ran

SPEC = "specs/calc/SPECIFICATION.md"


class Edited:
    """Turns that change the specification while the command waits for its answer."""

    project: Project

    def before(self, answer: Answer, *edits: tuple[str, str]) -> Callable[[dict[str, Any]], Answer]:
        """A turn that replaces texts in the specification, each of which is there, and then answers."""

        def turn(_: dict[str, Any]) -> Answer:
            edit(self.project, *edits)
            return answer

        return turn


def edit(project: Project, *edits: tuple[str, str]) -> None:
    text = project.read(SPEC)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    project.write(SPEC, text)


def system(project: Project, request: int) -> str:
    """The system prompt of the n-th request."""
    return "\n".join(block["text"] for block in project.requests[request]["system"])


def steps(ran: Ran) -> list[tuple[int, str]]:
    return [(e["number"], e["reason"]) for e in ran.named("step_entered")]


def test_changed_criteria_lead_back_to_step_3_and_finished_tasks_stay_finished(
    make_project: MakeProject,
) -> None:
    edited = Edited()
    again = tools(
        ("record_components", {"components": [component("core", "AC-1"), component("minus", "AC-3")]}),
        ("select_component", {"name": "core", "reason": "its tasks are done"}),
    )
    script = [
        plan(component("core", "AC-1"), component("report", "AC-2")),
        edited.before(build("calc-t1"), ("- [ ] it reports", "- [ ] it subtracts")),
        again,
        tools(
            ("select_component", {"name": "minus", "reason": "it is left"}),
            ("record_tasks", {"component": "minus", "tasks": [task("Subtract")]}),
        ),
        tools(*code("sub"), *verified("calc-t2")),
    ]
    edited.project = project = make_project(script)
    ran = project.run_module("--json", text=specification(criteria=("it adds", "it reports")))
    [drift] = ran.named("drift")
    assert drift["changed"] == ["Acceptance Criteria"]
    assert drift["effect"] == "back to step 3 (identify_components)"
    assert (3, "assessment") in steps(ran)
    assert "changed: Acceptance Criteria" in system(project, 2)
    assert "step: 3 identify_components" in system(project, 2)
    assert project.subjects()[2:] == [
        "feat(calc): complete Write it in core",
        "feat(calc): complete Subtract in minus",
    ]
    status = project.status()
    assert {c["name"]: c["criteria"] for c in status["components"]} == {"core": ["AC-1"], "minus": ["AC-3"]}
    assert status["scope"] == {"completed": 4, "original": 4}


def test_changed_verify_commands_wait_for_a_person_and_never_run_before(
    make_project: MakeProject, tmp_path: Path
) -> None:
    marker = tmp_path / "new-command"
    edited = Edited()
    script = [
        plan(tasks=("Add", "Say it")),
        edited.before(
            build("calc-t1"),
            (f"`{UNITTEST}`", f"`touch {marker} && {UNITTEST}`"),
            ("- **verify-lint**: none", "- **verify-lint**: none\n- **verify-docs**: `test -f README.md`"),
        ),
        tools(*code("b"), ("verify_docs", {}), *verified("calc-t2")),
    ]
    edited.project = project = make_project(script)
    ran = project.run_module(code=3)
    assert ran.last_line == "next: lopen approve calc --run"
    assert "Skills & Hooks" in ran.out
    for again in ("run", "resume"):
        waits = project.lopen(again, *(("calc",) if again != "resume" else ()))
        assert (waits.code, waits.last_line) == (3, "next: lopen approve calc --run")
    assert not marker.exists()

    assert project.lopen("approve", "calc", "--yes").code == 0
    on = project.lopen("resume", "--json")

    assert on.code == 0, on.err
    assert marker.exists()
    assert project.subjects()[-1] == "feat(calc): complete Say it in core"
    ran_commands = {e["tool"] for e in on.named("verification_ran")}
    assert ran_commands == {"verify_tests", "verify_docs"}


def test_a_specification_that_check_refuses_pauses_until_it_is_mended(make_project: MakeProject) -> None:
    edited = Edited()
    script = [
        plan(tasks=("Add", "Say it")),
        edited.before(build("calc-t1"), ("## Overview\n", "## Something\n")),
        tools(*code("b"), *verified("calc-t2")),
    ]
    edited.project = project = make_project(script)
    ran = project.run_module(code=3)
    assert "`## Overview` is missing" in ran.out
    refused = project.lopen("approve", "calc", "--yes")
    assert refused.code == 1
    assert "the specification has problems" in refused.err
    spec = project.root / SPEC
    text = spec.read_text("utf-8")
    spec.unlink()
    gone = project.lopen("resume")
    assert gone.code == 3
    assert "SPECIFICATION.md does not exist" in gone.out

    spec.write_text(text.replace("## Something\n", "## Overview\n"), "utf-8")
    on = project.lopen("resume")

    assert on.code == 0, on.out + on.err
    assert len(project.subjects()) == 4
