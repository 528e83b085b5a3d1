from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lopen.guardrails.call_history import CallEnd
from lopen.limits.circuits import (
    PROBE_LOST_S,
    CallDecision,
    CircuitCall,
    CircuitState,
    RuleBook,
    after_call,
    before_call,
    cut_off,
    half_open,
    rule_book,
    verified,
)

BOOK = RuleBook()
START = 1_000_000.0


class Run:
    """A circuit driven by hand: time and turn move when they are told."""

    def __init__(self, book: RuleBook = BOOK) -> None:
        self.book = book
        self.state = CircuitState("session:s")
        self.now = START
        self.turn = 1
        self.calls = 0

    def call(
        self, tool: str = "read_file", *, same: bool = False, kind: str = "tool", task: str = "t"
    ) -> CallDecision:
        self.calls += 1
        signature = tool if same else f"{tool}:{self.calls}"
        call = CircuitCall(tool, signature, str(self.turn), kind, task)
        self.state, decision = before_call(self.state, call, self.now, self.book)
        return decision

    def end(self, tool: str = "read_file", ok: bool = True, **more: Any) -> CallDecision | None:
        outcome = replace(CallEnd(tool, self.state.calls.log[-1].signature, ok), **more)
        self.state, decision = after_call(self.state, outcome, self.now, self.book)
        return decision

    def slowly(self, tool: str = "read_file", ok: bool = True, *, same: bool = False) -> CallDecision:
        """A call in a turn of its own, ten seconds after the last."""
        self.turn += 1
        self.now += 10
        decision = self.call(tool, same=same)
        if decision.allowed:
            self.end(tool, ok)
        return decision


@pytest.mark.parametrize(
    ("rule", "allowed", "call", "seconds", "turns", "cooldown"),
    [
        ("duplicate_call", 4, {"same": True}, 10, 1, None),
        ("max_iterations", 49, {}, 10, 1, None),
        ("rapid_fire", 19, {}, 0.4, 1, 60),
        ("sequential_tool", 10, {}, 1, 0, 5),
        ("hook_recursion", 5, {"kind": "hook"}, 1, 0, 5),
        ("agent_spawn", 5, {"kind": "agent"}, 1, 1, 5),
    ],
)
def test_so_many_calls_are_made_and_the_next_one_trips(
    rule: str, allowed: int, call: dict[str, Any], seconds: float, turns: int, cooldown: float | None
) -> None:
    run = Run()
    decisions = []
    for _ in range(allowed + 1):
        run.now += seconds
        run.turn += turns
        decisions.append(run.call(**call))
    assert [d.allowed for d in decisions] == [True] * allowed + [False]
    tripped = decisions[-1]
    assert (tripped.rule, tripped.needs_ack) == (rule, cooldown is None)
    assert tripped.until == (None if cooldown is None else run.now + cooldown)


def test_a_passing_verify_and_another_task_count_from_nothing() -> None:
    run = Run()
    for _ in range(3):
        assert all(run.slowly().allowed for _ in range(49))
        run.state = verified(run.state)
    assert all(run.slowly().allowed for _ in range(49))
    run.turn += 1
    assert run.call(task="another").allowed
    assert run.state.calls.iteration_count == 1


def test_a_tool_that_fails_four_times_in_five_turns_trips_with_a_growing_cooldown() -> None:
    run = Run()
    for _ in range(3):
        run.slowly("pytest", ok=False)
    assert run.state.state == "closed"
    run.turn += 1
    run.call("pytest")
    tripped = run.end("pytest", ok=False)
    assert tripped is not None
    assert (tripped.rule, tripped.until) == ("tool_failure", run.now + 5)
    for cooldown in (10, 30, 60):
        held = run.call("read_file")
        assert (held.kind, held.until) == ("wait", run.state.cooldown_until)
        run.now = run.state.cooldown_until
        assert run.call("pytest").allowed  # the probe
        again = run.end("pytest", ok=False)
        assert again is not None
        assert again.until == run.now + cooldown
    run.now = run.state.cooldown_until
    run.call("pytest")
    last = run.end("pytest", ok=False)
    assert last is not None
    assert last.needs_ack  # the fifth trip in a row
    run.now += 10_000
    assert run.call().kind == "ack"


def test_the_same_command_failing_again_over_an_unchanged_tree_is_a_failure() -> None:
    run = Run()
    for tree in ("t1", "t1", "t1", "t1", "t1"):
        run.call("run_command", same=True)
        run.end("run_command", exit_code=1, tree=tree)
        run.now += 10
        run.call()
        run.turn += 1
    assert run.state.rule == "tool_failure"  # the first is none, the next four are


def test_a_command_failing_after_a_change_is_no_failure() -> None:
    run = Run()
    for i in range(8):
        run.turn += 1
        run.now += 10
        run.call("run_command", same=True)
        run.end("run_command", exit_code=1, tree=f"tree {i}")
        run.call()
    assert run.state.state == "closed"


def test_eleven_external_calls_in_thirty_seconds_trip() -> None:
    run = Run()
    for i in range(10):
        run.now += 2.5
        run.turn += 1
        assert run.call(f"Bash{i}", kind="external").allowed
    run.turn += 1
    tripped = run.call("Bash", kind="external")
    assert (tripped.rule, tripped.until) == ("external_api", START + 2.5 + 60)  # when the window has room
    assert run.state.external_total == 10
    assert run.call("read_file").allowed
    run.now = START + 62
    assert run.call("Bash", kind="external").kind == "wait"
    run.now = START + 62.5
    assert run.call("Bash", kind="external").allowed
    run.end("Bash")
    assert run.call("Bash", kind="external").rule == "external_api"


def test_rows_and_turns_are_counted_by_agent() -> None:
    run = Run()
    for agent in "abcdef":
        for _ in range(4):
            run.now += 3
            call = CircuitCall("Bash", "git status", "1", agent=agent)
            run.state, decision = before_call(run.state, call, run.now, BOOK)
            assert decision.allowed
    call = CircuitCall("Bash", "git status", "1", agent="a")
    assert before_call(run.state, call, run.now, BOOK)[1].rule == "duplicate_call"


def test_a_poll_whose_output_grows_is_no_duplicate() -> None:
    run = Run()
    for progressed in (*[True] * 9, *[False] * 4):
        run.turn += 1
        run.now += 10
        assert run.call("BashOutput", same=True).allowed
        run.end("BashOutput", progressed=progressed)
    run.turn += 1
    assert run.call("BashOutput", same=True).rule == "duplicate_call"


def test_verify_commands_stay_allowed_while_max_iterations_is_open() -> None:
    run = Run()
    while run.state.state == "closed":
        run.slowly()
    assert run.state.rule == "max_iterations"
    assert run.call("read_file").kind == "ack"
    verify = CircuitCall("Bash", "make test", "x", task="t", verifies=True)
    assert before_call(run.state, verify, run.now, BOOK)[1].allowed


def test_lopens_own_external_calls_wait_for_their_turn_instead() -> None:
    run = Run()
    first = run.now
    for _ in range(10):
        assert run.call("oracle", kind="oracle").allowed
        run.now += 1
    later = run.call("oracle", kind="oracle")
    assert (later.kind, later.until) == ("later", first + 60)
    assert run.state.state == "closed"
    run.now = first + 60
    assert run.call("oracle", kind="oracle").allowed


def test_a_session_may_make_fifty_external_calls_and_a_person_allows_fifty_more() -> None:
    run = Run()
    for _ in range(50):
        run.now += 60
        assert run.call("oracle", kind="oracle").allowed
    run.now += 60
    tripped = run.call("oracle", kind="oracle")
    assert (tripped.rule, tripped.needs_ack) == ("external_api", True)
    run.state = half_open(run.state)
    assert run.call("oracle", kind="oracle").allowed


def test_after_a_probe_that_never_comes_back_the_next_call_is_one() -> None:
    run = Run()
    for _ in range(5):
        run.slowly(same=True)
    run.state = half_open(run.state)
    assert run.call("edit_file").allowed
    assert not run.call("edit_file").allowed
    run.now += PROBE_LOST_S + 1
    assert run.call("edit_file").allowed
    run.end("edit_file")
    assert (run.state.state, run.state.trips) == ("closed", 1)


def test_a_call_that_is_cut_off_and_made_again_counts_once() -> None:
    run = Run()
    call = CircuitCall("verify_tests", "verify_tests:1", "1", task="t", nonce="7/toolu_1", verifies=True)
    for _ in range(10):
        run.state, decision = before_call(run.state, call, run.now, BOOK)
        assert decision.allowed
    assert (len(run.state.calls.log), run.state.calls.iteration_count) == (1, 1)
    oracle = CircuitCall("oracle", "external:oracle", "1", "oracle", inner=True, nonce="7/toolu_1/0")
    run.state, _ = before_call(run.state, oracle, run.now, BOOK)
    run.state = cut_off(run.state, "7/toolu_1", of_task=True)
    assert (run.state.calls.log, run.state.calls.iteration_count, run.state.external_total) == ((), 0, 0)


def test_writing_different_files_in_one_turn_is_not_calling_one_tool_over_and_over() -> None:
    run = Run()
    for i in range(30):
        run.now += 1
        call = CircuitCall("write_file", f"write_file:{i}", "1", subject=f"write_file:{i}.py")
        run.state, decision = before_call(run.state, call, run.now, BOOK)
        assert decision.allowed
    for i in range(11):
        run.now += 1
        call = CircuitCall("write_file", f"again:{i}", "1", subject="write_file:a.py")
        run.state, decision = before_call(run.state, call, run.now, BOOK)
    assert decision.rule == "sequential_tool"


def test_a_clock_set_back_does_not_hold_calls_for_ever() -> None:
    run = Run()
    for _ in range(4):
        run.slowly("pytest", ok=False)
    run.now -= 86_400
    assert run.call().allowed


def test_settings_change_threshold_window_and_cooldown() -> None:
    book = rule_book(
        {
            "duplicate_call": {"threshold": 2},
            "tool_failure": {"cooldown_base": 10, "window": 2},
        }
    )
    run = Run(book)
    run.slowly(same=True)
    assert run.slowly(same=True).rule == "duplicate_call"
    assert list(book["tool_failure"].ladder) == [10, 20, 60, 120, 600]
    assert (book["tool_failure"].window, book["tool_failure"].threshold) == (2, 3)


def test_what_is_off_or_exempt_never_trips() -> None:
    off = {name: {"enabled": False} for name in ("duplicate_call", "sequential_tool", "max_iterations")}
    for book in (rule_book({"enabled": False}), rule_book(off, exempt=("rapid_fire", "external_api"))):
        run = Run(book)
        assert all(run.call(same=True).allowed for _ in range(100))
        assert all(run.call("oracle", kind="oracle").allowed for _ in range(100))


def test_a_call_of_lopens_own_is_in_no_turn_of_the_model() -> None:
    run = Run()
    for _ in range(10):
        assert run.call("read_file").allowed
    turn, run.turn = run.turn, 0  # the oracle's label
    assert run.call("oracle", kind="oracle").allowed
    run.turn = turn
    assert run.call("read_file").rule == "sequential_tool"
