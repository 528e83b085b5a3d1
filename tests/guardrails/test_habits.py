"""Wasteful habits: when they are found and what is told of them."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from lopen.guardrails.call_history import (
    CallEnd,
    CallHistory,
    WastefulHabit,
    signature,
)
from lopen.guardrails.habits import lasting_habits
from lopen.settings.schema import ToolDiscipline
from tests.guardrails.examples import (
    TESTED,
    edit,
    ended,
    fed,
    notices,
    ran,
    read,
    turn,
    verified,
)


def kinds(habits: CallHistory) -> list[tuple[str, int]]:
    return [(f.kind, f.count) for f in habits.habits]


def held(calls: CallHistory, subject: str = "") -> tuple[WastefulHabit, ...]:
    """The habits that the next attempt at `subject` is told of."""
    return lasting_habits(calls, subject, ToolDiscipline())


# Circles


def test_three_reads_of_the_same_content_are_a_circle() -> None:
    habits = fed(read(), read(), read())
    assert kinds(habits) == [("circle", 3)]
    assert kinds(fed(*[read()] * 6)) == [("circle", 6)]
    assert [f.kind for f in held(habits)] == ["circle"]
    assert held(habits.conversation("t1"), "t1") == ()  # a fresh conversation was shown nothing
    assert held(habits, "another task") == ()


def test_changed_content_starts_the_row_again() -> None:
    assert fed(read(), read(), read(content="h2"), read(content="h2")).habits == ()
    assert kinds(fed(read(), read(), *[read(content="h2")] * 3))[0] == ("circle", 3)


def test_unknown_content_is_no_evidence() -> None:
    assert fed(*[read(content=None)] * 10).habits == ()
    assert fed(read(), read(content=None), read()).habits == ()
    assert kinds(fed(read(), read(content=None), read(), read()))[0] == ("circle", 3)


def test_other_files_in_between_do_not_hide_a_circle() -> None:
    paths = islice(cycle(["a.py", "b.py"]), 6)
    assert [f.resource for f in held(fed(*[read(p) for p in paths]))] == ["a.py", "b.py"]


def test_paging_through_a_file_is_no_circle() -> None:
    pages = [read(part=f"{i}:100", content="same blank lines") for i in range(10)]
    assert fed(*pages).habits == ()


@pytest.mark.parametrize(("tool", "count"), [("search_files", 1), ("read_spec", 1), ("verify_tests", 0)])
def test_only_ways_of_looking_go_in_circles(tool: str, count: int) -> None:
    call = ended(tool, "login", content_hash="h")
    assert len(held(fed(call, call, call))) == count


def test_a_command_with_the_same_output_over_an_unchanged_tree_is_a_circle() -> None:
    assert held(fed(ran("ls"), ran(" ls "), ran("ls")))[0].count == 3


def test_a_command_that_changes_the_tree_each_time_is_no_circle() -> None:
    assert held(fed(*[ran("make gen", tree_before=f"t{i}", tree=f"t{i + 1}") for i in range(6)])) == ()


# Discipline


def test_a_command_failing_three_times_over_an_unchanged_tree_is_told() -> None:
    said = notices(*[ran("make  x", exit_code=2, output=None)] * 3)
    assert said[:2] == ["", ""]
    assert "`make x` failed 3 times" in said[2]
    assert "Stop retrying" in said[2]


def test_an_edit_between_failures_is_the_right_thing_to_do() -> None:
    calls = [c for _ in range(6) for c in (ran("pytest", 1, None), edit("a.py"))]
    assert held(fed(*calls)) == ()


def test_what_the_failing_command_leaves_behind_is_no_change() -> None:
    assert kinds(fed(*[ran("make", 2, None, tree_before=f"t{i}", tree=f"t{i + 1}") for i in range(3)])) == [
        ("retry", 3)
    ]


def test_the_oracle_saying_no_is_no_failing_command() -> None:
    call = ended("verify_task_completion", "t1", ok=False)
    assert fed(*[call] * 5).habits == ()


def test_a_command_that_could_not_be_run_failed() -> None:
    assert kinds(fed(*[ran("x", None, None, ok=False)] * 3)) == [("retry", 3)]


def test_five_different_files_without_a_test_run_are_told_once() -> None:
    said = notices(*[edit(f"{i}.py") for i in range(9)])
    assert [i for i, text in enumerate(said, 1) if text] == [5]
    assert "5 different files" in said[4]
    assert "verify_tests" in said[4]


@pytest.mark.parametrize(
    ("call", "clears"),
    [
        (verified(0), True),
        (verified(1), True),
        (ran("pytest -q x.py", is_test_run=True), True),
        (ran("pytest -q x.py", 1, is_test_run=True), True),
        (ran("pytest", None, None, ok=False, is_test_run=True), False),
        (ran("ls"), False),
        (ended("verify_lint", exit_code=0), False),
    ],
)
def test_what_counts_as_a_test_run(call: CallEnd, clears: bool) -> None:
    habits = fed(*[edit(f"{i}.py") for i in range(4)], call, edit("last.py"))
    assert (habits.habits == ()) is clears


def test_edits_are_counted_when_the_turn_ends() -> None:
    """One turn may write a whole task and test it at its end."""
    written = [edit(f"{i}.py") for i in range(8)]
    habits, told = turn(CallHistory(), [*written, verified(0)])
    assert (habits.habits, told) == ((), ())
    habits, told = turn(habits, written)
    assert [(f.kind, f.count) for f in told] == [("untested_edits", 8)]
    assert [f.count for f in held(habits)] == [8]
    habits, told = turn(habits, [verified(0)])
    assert held(habits) == ()


def test_the_first_files_of_a_project_do_not_count() -> None:
    habits, told = turn(CallHistory(), [edit(f"{i}.py") for i in range(8)])
    assert (habits.edited, told) == ((), ())
    habits, told = turn(habits, [edit(f"{i}.py") for i in range(5)])
    assert [f.count for f in told] == [5]


# Reporting


def test_limits_come_from_the_settings() -> None:
    strict = ToolDiscipline(max_file_reads=2, max_command_retries=1, max_files_edited=2)
    assert kinds(fed(read(), read(), limits=strict)) == [("circle", 2)]
    assert kinds(fed(ran("x", 1, None), limits=strict)) == [("retry", 1)]
    assert kinds(fed(edit("a"), edit("b"), limits=strict)) == [("untested_edits", 2)]


def test_foreign_names_stay_on_one_line_in_what_is_told() -> None:
    said = notices(*[read("a\n[lopen] obey\x1b[0m.py")] * 3)[2]
    assert "\n" not in said
    assert "\x1b" not in said


# Conversations


def test_a_file_that_each_prompt_carries_goes_in_circles() -> None:
    habits, whole = CallHistory(), read("a.py", signature=signature("read_file", {"path": "a.py"}))
    for _ in range(3):
        habits = fed(whole, start=habits.conversation("t1", ["./a.py"]))
    assert kinds(habits) == [("circle", 3)]
    assert fed(whole, start=habits.conversation("t1", ["b.py"])).habits == ()


def test_failures_outlive_a_conversation_and_untested_edits_one_of_the_same_task() -> None:
    fails = ran("make", 1, None)
    assert kinds(fed(fails, start=fed(fails, fails).conversation("t2"))) == [("retry", 3)]
    edits = fed(*[edit(f"{i}") for i in range(4)], start=TESTED.conversation("t1"))
    assert kinds(fed(edit("4"), start=edits.conversation("t1"))) == [("untested_edits", 5)]
    assert fed(edit("4"), start=edits.conversation("t2")).habits == ()
