"""Tools of step 6: the task in progress and no other, its checklist, more work, and what the model is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lopen.core.events import TaskChanged
from lopen.settings.schema import Settings
from lopen.tools.calls import ToolResult
from lopen.workflow import changes
from lopen.workflow.pauses import AddedTasks, Confirmation
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import State
from tests.models.prompts.examples import long_specification, planned
from tests.sessions import changed
from tests.tools.examples import Bench, bench, git
from tests.workflow.examples import session


@pytest.fixture
def at(root: Path) -> Bench:
    """In step 6, with `calc-t1` in progress."""
    return bench(root, planned())


def said(result: ToolResult) -> tuple[str, str]:
    return result.fields["error"], result.fields.get("hint", "")


@pytest.mark.parametrize("status", ["in_progress", "complete", "failed"])
def test_only_the_task_in_progress_changes_its_status(at: Bench, status: str) -> None:
    assert said(at.call("update_task_status", task_id="calc-t2", status=status)) == (
        "'calc-t2' is not the task in progress",
        "the task in progress is calc-t1 (Add numbers)",
    )
    assert said(at.call("update_task_status", task_id="t9", status=status))[0] == "'t9' is not a task"
    assert [t.state for t in at.at.session.tree.tasks] == [State.IN_PROGRESS, State.PENDING]
    assert not at.recorded


def test_a_task_given_up_is_failed_with_its_note_and_ends_the_iteration(at: Bench) -> None:
    answer = at.call("update_task_status", task_id="calc-t1", status="failed", note="no such library")
    assert answer.fields == {"task_id": "calc-t1", "status": "failed"}
    task = at.at.session.tree.task("calc-t1")
    assert task is not None
    assert (task.state, task.failures, task.reasons) == (State.FAILED, 1, ("no such library",))
    assert at.at.session.step is Step.ITERATE_THROUGH_TASKS
    assert at.recorded
    events = [r.event for r in at.store.events(at.at.session.id)]
    assert TaskChanged("calc-t1", "Add numbers", "Core", "failed", "no such library") in events


def test_more_work_goes_behind_the_rest_and_too_much_of_it_asks_a_person(at: Bench) -> None:
    at.at.journal.save(changed(at.at.session, planned_tasks=2))
    given: dict[str, Any] = {"component": "core", "description": "d", "reason": "seen on the way"}
    assert at.call("add_task", name="Third", **given).fields == {"task_id": "calc-t100"}
    added = at.at.session.tree.task("calc-t100")
    assert added is not None
    assert (added.added, added.type) == (True, "implement")
    assert added.description == "d\n\nAdded because: seen on the way"
    assert "has a task named 'THIRD' already" in said(at.call("add_task", name="THIRD", **given))[0]
    assert said(at.call("add_task", name="X", **{**given, "component": "c"})) == (
        "there is no component 'c'",
        "components: Core",
    )
    at.call("add_task", name="Fourth", **given)
    waits = [at.pause]
    at.call("add_task", name="Fifth", **given)
    waits.append(at.pause)
    assert [w.reason if isinstance(w, Confirmation) else w for w in waits] == [None, AddedTasks(3)]


def test_the_judge_is_asked_about_the_task_in_progress_alone(at: Bench) -> None:
    assert "not the task in progress" in said(at.call("verify_task_completion", task_id="calc-t2"))[0]
    assert at.at.evidence.passed == {}


# What the model is shown


def test_a_section_is_read_by_its_path_and_the_outline_without_one(at: Bench) -> None:
    section = at.call("read_spec", section="rounding")
    assert section.fields == {"section": "Behaviour > Rounding"}
    assert section.raw is not None
    assert section.raw.startswith("### Rounding\nNothing is rounded.\n")
    outline = at.call("read_spec")
    assert outline.fields == {"section": None}
    assert str(outline.raw).splitlines()[:3] == ["# Calc", "## Overview", "## Acceptance Criteria"]
    missing = at.call("read_spec", section="Roundin")
    assert not missing.ok
    assert "Rounding" in missing.fields["hint"]


def test_a_section_too_long_for_a_result_is_cut_and_says_where_it_goes_on(root: Path) -> None:
    spec = long_specification(1, 250_000)
    at = bench(root, planned(), spec=spec)
    cut = at.call("read_spec", section="Part 0")
    assert cut.raw is not None
    assert len(cut.raw) <= 100_000
    assert cut.fields["truncated"] is True
    assert "read_file specs/calc/SPECIFICATION.md offset=" in cut.fields["note"]


def test_research_is_logged_listed_and_read(at: Bench) -> None:
    assert at.call("read_research").fields == {"topics": []}
    given = {"topic": "Rounding", "summary": "Half to even.", "findings": "IEEE 754", "sources": ["a book"]}
    assert at.call("log_research", **given).fields == {"path": "specs/calc/RESEARCH-rounding.md"}
    assert at.call("read_research").fields == {"topics": ["rounding"]}
    assert "Half to even." in str(at.call("read_research", topic="Rounding").raw)
    assert "no research on 'Rust'" in said(at.call("read_research", topic="Rust"))[0]


# A question


def asking(root: Path, step: Step = Step.DETERMINE_DEPENDENCIES, **settings: Any) -> Bench:
    return bench(root, session(step=step), settings=Settings(workflow=settings))


QUESTION = {"question": "Which base?", "options": ["2", "10"], "default": "10"}


@pytest.mark.parametrize("unattended", [True, False])
def test_unattended_or_the_second_time_the_default_is_assumed_and_kept(root: Path, unattended: bool) -> None:
    at = asking(root, unattended=unattended)
    if not unattended:
        at.at.journal.save(changes.count_question(at.at.session))
    assert at.call("ask_user", **QUESTION).fields == {"answer": "10", "assumed": True}
    assert at.at.session.dialogue.assumptions == ("Which base? Assumed: 10",)
    assert at.pause is None


# The commit


def committing(root: Path) -> Bench:
    """In step 6 on the module's branch, with the real committer."""
    git(root, "switch", "-qc", "lopen/calc")
    return bench(root, planned(branch="lopen/calc"))


def verify(at: Bench) -> None:
    assert at.call("verify_tests").fields["passed"]
    assert at.call("verify_task_completion", task_id="calc-t1").fields["passed"]


def test_what_changes_while_a_task_is_being_completed_is_not_committed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = committing(root)
    at.call("write_file", path="calc.py", content="x = 1\n")
    verify(at)
    at.call("log_research", topic="Sums", summary="They add.", findings="Yes")
    inner = at.at.project.verifier.tree_with_own_files

    def meddle() -> str:
        (root / "calc.py").write_text("x = 2\n", "utf-8")
        return inner()

    monkeypatch.setattr(at.at.project.verifier, "tree_with_own_files", meddle)
    refused = at.call("update_task_status", task_id="calc-t1", status="complete")
    assert refused.outcome == "refused"
    assert "changed while the task was being completed: calc.py" in refused.fields["error"]
    assert git(root, "log", "--format=%s") == "Begin"
    task = at.at.session.tree.task("calc-t1")
    assert task is not None
    assert task.state is State.IN_PROGRESS
