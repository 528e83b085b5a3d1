"""The timeline of a session, its expected end, and what proves each criterion."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lopen.application.dossier import History, TimelineRow, mutants_noticed, pace, proofs, timeline
from lopen.application.reports import criterion_states
from lopen.core import events as e
from lopen.store.audit import VerifyResult
from lopen.verification.mutation_check import MutantOutcome, MutationCheck
from lopen.verification.test_run import TestRun
from lopen.workflow.session import Plan, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def recorded(*told: tuple[float, e.Event]) -> tuple[e.Recorded, ...]:
    return tuple(
        e.Recorded(START + timedelta(seconds=at), "calc-1", event, n) for n, (at, event) in enumerate(told, 1)
    )


def turn(cost: float, purpose: str = "turn", seconds: float = 5.0) -> e.TurnEnded:
    return e.TurnEnded(1, "m", "tool_use", 1, 1, 0, 0, cost, seconds, purpose=purpose)


def begun(task: str) -> e.IterationStarted:
    return e.IterationStarted(1, Step.ITERATE_THROUGH_TASKS.value, "m", "core", task, task)


TOLD = recorded(
    (0, e.SessionStarted("calc", Step.DETERMINE_DEPENDENCIES.value)),
    (10, begun("t1")),
    (50, turn(0.10)),
    (70, e.VerificationRan("verify_tests", "make test", True, 0, 20.0)),
    (80, turn(0.02, "oracle")),
    (80, e.VerdictGiven("task", "t1", False, "high", "no", 1)),
    (90, e.SessionPaused("question", "which?", "lopen answer")),
    (90 + 36_000, e.SessionStarted("calc", Step.ITERATE_THROUGH_TASKS.value, True)),
    (36_110, e.IterationEnded(1, "recorded")),
    (36_110, begun("t2")),
)


def test_a_timeline_has_a_row_a_task_and_draws_a_long_wait_short() -> None:
    line = timeline(TOLD, {"t1": "Add", "t2": "Round"}, START + timedelta(seconds=36_130), "working")
    assert [(row.name, round(row.cost_usd, 2)) for row in line.rows] == [
        ("Planning", 0.0),
        ("Add", 0.12),
        ("Round", 0.0),
    ]
    assert line.worked_s == 130
    first = line.rows[1]
    kinds = {(span.kind, span.failed): round(span.seconds) for span in first.spans}
    assert kinds == {
        ("model", False): 80,  # the whole of the work, on which the others are drawn
        ("verification", False): 20,
        ("judge", False): 5,
        ("judge", True): 0,
        ("waited", False): 36_000,
    }
    (wait,) = (span for span in first.spans if span.kind == "waited")
    assert wait.end - wait.start == pytest.approx(0.12 * 130)
    assert line.length == pytest.approx(130 + 0.12 * 130)
    assert sum(line.spending) == pytest.approx(0.12)


@pytest.mark.parametrize(
    "told",
    [
        (e.QuestionAsked("which?", ("a", "b"), "a", "b"),),
        (e.SpecApproved("me", "", "aa"),),
        (e.Waiting("a rate limit", 40), e.Notice("info", "on")),
        (e.ModelRetry("overloaded", 1, 40), e.Notice("info", "on")),
    ],
)
def test_a_wait_at_a_terminal_or_for_a_limit_is_no_work_of_the_model(told: tuple[e.Event, ...]) -> None:
    *asked, after = told
    found = recorded(
        (0, begun("t1")), (10, turn(0.1)), *((10, each) for each in asked), (50, after), (60, turn(0.1))
    )
    approved = START + timedelta(seconds=50)
    line = timeline(found, {"t1": "Add"}, START, "complete", approved)
    spans = sorted((span.start, span.kind, span.seconds) for span in line.rows[-1].spans)
    assert [each[1:] for each in spans] == [("model", 10), ("waited", 40), ("model", 10)]
    assert (line.worked_s, line.rows[-1].worked_s) == (20, 20)


def test_what_a_person_does_after_the_build_is_no_work() -> None:
    done = recorded(
        (0, begun("t1")),
        (20, e.SessionComplete("calc", 1, 1, 1, 0.1, 1, "lopen/calc")),
        (260, e.Reverted("c1", "b1", ("t1",), ())),
        (280, e.Reverted("c1", "b2", (), ("t1",), undo=True)),
    )
    after, names = START + timedelta(seconds=300), {"t1": "Add"}
    for line in (timeline(done, names, after, "complete"), timeline(done[:3], names, after, "waiting")):
        assert line.worked_s == 20
        assert sum(span.end - span.start for span in line.rows[-1].spans if span.kind == "model") == 20
        assert line.length < 25


def test_a_session_that_waits_is_drawn_as_waiting_until_now() -> None:
    line = timeline(TOLD[:7], {}, START + timedelta(hours=3), "waiting")
    assert line.worked_s == 90
    assert line.rows[-1].spans[-1].kind == "waited"
    assert timeline((), {}, START, "complete").rows == ()


def session(*tasks: Task) -> Session:
    names = {"AC-1": "adds", "AC-2": "rounds"}
    component = Component("c1", "core", criteria=("AC-1", "AC-2"), tasks=tasks, broken_down=True)
    return Session("calc-1", "calc", START, plan=Plan(tree=TaskTree((component,)), criteria=names))


DONE = Task("t1", "Add", state=State.COMPLETE, commit="c1" * 20, criteria=("AC-1",))
OPEN = Task("t2", "Round", criteria=("AC-2",))


def test_the_expected_end_follows_from_the_tasks_that_are_complete() -> None:
    line = timeline(TOLD[:6], {}, START, "complete")
    found = pace(session(DONE, OPEN), line, 0.12)
    assert isinstance(line.rows[1], TimelineRow)
    assert found.left_s == pytest.approx(70)
    assert found.expected_usd == pytest.approx(0.24)
    assert pace(session(OPEN), line, 0.12).left_s is None


def verdict(passed: bool, holds: str, tree: str, evidence: str = "") -> dict[str, Any]:
    return {
        "scope": "task",
        "subject": "t1",
        "passed": passed,
        "confidence": "high",
        "summary": "",
        "findings": [] if passed else [{"severity": "warning", "message": "not told", "criterion": "AC-2"}],
        "criteria": [{"id": "AC-1", "holds": holds, "evidence": evidence}],
        "evidence_hash": tree * 32,
        "tree": tree,
        "base_tree": "00",
    }


@pytest.mark.parametrize(
    ("evidence", "tests", "files", "missing"),
    [
        ("the code reads so", (), {}, ()),
        ("test_a.py: 1 + 2 is 3", (), {"tests/test_a.py": 2}, ()),
        ("tests/test_a.py::test_sum and test_late", ("tests/test_a.py::test_sum",), {}, ("test_late",)),
        ("test_sum_of_two compares", ("tests/test_a.py::test_sum_of_two",), {}, ()),
        ("tests/test_none.py checks calc.py", (), {}, ("tests/test_none.py",)),
    ],
)
def test_a_proof_names_the_tests_that_the_evidence_names_and_no_other(
    evidence: str, tests: tuple[str, ...], files: dict[str, int], missing: tuple[str, ...]
) -> None:
    ran = ("tests/test_a.py::test_sum", "tests/test_a.py::test_sum_of_two", "tests/test_b.py::test_other")
    history = History(
        verdicts=(verdict(True, "yes", "22", evidence),), runs={"22": TestRun(3, {"python": ran})}
    )
    first, _ = proofs(session(DONE, OPEN), history)
    assert (first.tests, first.test_files, first.missing_tests) == (tests, files, missing)


def test_a_criterion_is_proven_by_task_commit_tests_and_verdict() -> None:
    before = TestRun(1, {"python": ("test_old.py::test_old",)})
    after = TestRun(3, {"python": ("test_old.py::test_old", "test_a.py::test_sum", "test_b.py::test_other")})
    history = History(
        verdicts=(verdict(False, "no", "11"), verdict(True, "yes", "22", "test_sum compares 1 + 2 with 3")),
        verifications=(VerifyResult("verify_tests", "make test", True, 0, "", "22", task="t1"),),
        runs={"00": before, "22": after},
    )
    first, second = proofs(session(DONE, OPEN), history)
    assert (first.number, first.criterion.holds, first.rejections) == (1, "yes", 1)
    assert [task.commit for task in first.tasks] == [DONE.commit]
    assert first.tests == ("test_a.py::test_sum",)
    assert first.verdict == "verdict-22222222"
    assert (second.criterion.holds, second.tests, second.verdict) == ("open", (), "")
    assert (first.passed, first.criterion.named) == (1, "the judge names: test_sum compares 1 + 2 with 3")
    assert second.rejections == 0, "the verdict names it and does not answer for it"
    assert [task.name for task in second.tasks] == ["Round"]


def test_the_last_check_of_a_task_that_was_not_skipped_tells_its_mutants() -> None:
    def check(task: str, *noticed: bool) -> VerifyResult:
        outcomes = tuple(MutantOutcome("a.py", n, n, "1", "2", each) for n, each in enumerate(noticed))
        found = MutationCheck(len(noticed), outcomes).to_json()
        return VerifyResult("mutation_check", "make test", True, 0, "", "22", task=task, found=found)

    skipped = Task("t3", "Sort", state=State.FAILED, given_up="no time")
    checks = check("t1", False, False), check("t1", True, False), check("t2", True), check("t3", False)
    history = History(verifications=checks)
    assert mutants_noticed(session(DONE, OPEN, skipped), history) == (2, 3)


@pytest.mark.parametrize(
    ("given", "word", "named"),
    [
        ([(False, "yes")], "met, not accepted", "met, not accepted; the judge named: test_sum"),
        ([(False, "no")], "not met", "not met; the judge named: test_sum"),
        ([(True, "yes"), (False, None)], "met", "the judge names: test_sum"),
        ([(False, None)], "not judged", ""),
    ],
)
def test_the_newest_verdict_that_judged_a_criterion_tells_of_it(
    given: list[tuple[bool, str | None]], word: str, named: str
) -> None:
    stored = [verdict(passed, holds or "yes", "11", "test_sum") for passed, holds in given]
    for each, (_, holds) in zip(stored, given, strict=True):
        each["criteria"] = each["criteria"] if holds else []
    [seen] = criterion_states(session(DONE, OPEN), stored, ["AC-1"])
    assert (seen.state, seen.named) == (word, named)
