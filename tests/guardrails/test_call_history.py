"""The history of calls, its counters and the signatures of calls."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.call_history import (
    CALLS_KEPT,
    EDITED_KEPT,
    HABITS_KEPT,
    CallEnd,
    CallHistory,
    LoggedCall,
    signature,
)
from lopen.guardrails.habits import lasting_habits
from lopen.limits.circuits import CircuitState
from lopen.limits.records import UnreadableRecord, dump, load
from lopen.settings.schema import ToolDiscipline
from tests.guardrails.examples import count, edit, fed, notices, ran, read, unchanged_in_row, verified


def kinds(habits: CallHistory) -> list[tuple[str, int]]:
    return [(f.kind, f.count) for f in habits.habits]


def stored(calls: CallHistory) -> CallHistory:
    """The history that the next process reads."""
    return load(CircuitState, dump(CircuitState("session:s", calls=calls))).calls


CALLS = st.one_of(
    st.builds(read, st.sampled_from("abc"), st.sampled_from([None, "h1", "h2"])),
    st.builds(ran, st.sampled_from(["x", "y"]), st.sampled_from([None, 0, 1]), st.sampled_from([None, "o"])),
    st.builds(edit, st.sampled_from("abcdefgh")),
    st.builds(verified, st.sampled_from([0, 1])),
)


@given(st.lists(CALLS, max_size=40), st.lists(CALLS, max_size=20))
def test_a_restart_between_any_two_calls_changes_nothing(before: list[CallEnd], then: list[CallEnd]) -> None:
    habits = fed(*before)
    assert stored(habits) == habits
    assert notices(*then, start=stored(habits)) == notices(*then, start=habits)


@given(st.lists(CALLS, max_size=60))
def test_nothing_is_told_twice_for_one_crossing(calls: list[CallEnd]) -> None:
    habits = CallHistory()
    told: set[tuple[str, str, int]] = set()
    for call in calls:
        habits, found = count(habits, call)
        for finding in found:
            told_as = (finding.kind, finding.resource, finding.count)
            assert finding.count % {"untested_edits": 5}.get(finding.kind, 3) == 0
            if told_as in told:  # only after its row was broken, and then from one again
                told = {t for t in told if t[:2] != told_as[:2]}
            told.add(told_as)
    assert len(set(habits.habits)) == len(habits.habits)


@given(st.lists(CALLS, max_size=CALLS_KEPT))
def test_counts_agree_with_a_scan_over_the_whole_history(calls: list[CallEnd]) -> None:
    """The circle rule told naively: the last known contents of a file, in a row the same."""
    habits = fed(*calls)
    for path in "abc":
        seen = [c.content_hash for c in calls if c.tool == "read_file" and c.resource == path]
        known = [h for h in seen if h is not None]
        row = next((i for i, h in enumerate(reversed(known)) if h != known[-1]), len(known))
        assert unchanged_in_row(habits, read(path).signature) == row


def test_size_is_bounded_whatever_is_fed() -> None:
    habits = CallHistory()
    for i in range(300):
        long = f"{'deep/' * 100}{i}.py"
        habits = fed(read(long), ran(f"make {long}", 1), edit(long), start=habits)
    assert len(habits.log) == CALLS_KEPT
    assert len(habits.edited) == EDITED_KEPT
    assert len(habits.habits) <= HABITS_KEPT
    assert len(dump(habits)) < 60_000


@pytest.mark.parametrize("value", ["x", 3, {"a": 1}, [1]])
def test_a_malformed_history_is_refused(value: object) -> None:
    body = json.dumps({"circuit_id": "session:s", "calls": {"log": value}})
    with pytest.raises(UnreadableRecord, match="not a stored"):
        load(CircuitState, body)


def test_a_change_that_no_call_reported_ends_a_row_of_failures() -> None:
    habits = fed(ran("make", 1, tree="t1"), ran("make", 1, tree_before="t1", tree="t1"))
    same, other = ran("make", 1, tree_before="t1", tree="t1"), ran("make", 1, tree_before="t2", tree="t2")

    def retries(calls: CallHistory) -> list[int]:
        return [h.count for h in lasting_habits(calls, "", ToolDiscipline()) if h.kind == "retry"]

    assert retries(fed(same, start=habits)) == [3]
    assert retries(fed(other, start=habits)) == []
    assert retries(fed(same, edit("a.py"), start=habits)) == []


def test_many_calls_of_one_kind_push_out_none_of_another() -> None:
    calls = CallHistory().announced(LoggedCall("agent:a", "agent:a", "agent"))
    calls = fed(*[read(f"{i}.py") for i in range(CALLS_KEPT + 1)], start=calls)
    assert calls.call("agent:a") is not None
    assert [unchanged_in_row(calls, read(f"{i}.py").signature) for i in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"path": "src/a.py"}, {"path": "./src/a.py"}),
        ({"path": "src/a.py"}, {"path": "src/../src//a.py"}),
        ({"command": "pytest -q tests/a.py"}, {"command": "  pytest  -q\ttests/./a.py\n"}),
        (
            {"command": "make", "description": "Build it", "timeout": 5_000, "run_in_background": True},
            {"command": "make", "description": "Try again", "timeout_s": 9},
        ),
        ({"prompt": "look", "description": "one"}, {"prompt": "look", "description": "two"}),
        ({"a": 1, "b": [1, " x  y "]}, {"b": [1.0, "x y"], "a": 1}),
    ],
)
def test_calls_that_differ_in_blanks_and_spelling_of_paths_are_the_same(one: object, other: object) -> None:
    assert signature("t", one) == signature("t", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"path": "src/a.py"}, {"path": "src/b.py"}),
        ({"command": "pytest -q"}, {"command": "pytest"}),
        ({"url": "https://a//b"}, {"url": "https://a/b"}),
        ({"n": 1}, {"n": 2}),
        ({"title": "bug", "description": "one"}, {"title": "bug", "description": "two"}),
        ({"url": "a", "timeout": 1}, {"url": "a", "timeout": 2}),
        ({"n": 1}, {"n": "1"}),
    ],
)
def test_calls_that_differ_otherwise_are_not(one: object, other: object) -> None:
    assert signature("t", one) != signature("t", other)


def test_the_tool_counts_and_no_argument_can_be_read_back() -> None:
    assert signature("a", {}) != signature("b", {})
    assert "secret" not in signature("a", {"key": "secret"})


def test_hostile_arguments_have_a_signature_too() -> None:
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    assert signature("t", deep)
    assert signature("t", {"x": "\ud800", "y": "z" * 1_000_000, "w": "/" * 10_000})
