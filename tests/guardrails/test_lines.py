"""The events that people see of guardrails."""

from __future__ import annotations

from datetime import timedelta

from lopen.base.events import CircuitChanged
from lopen.guardrails.guard import GuardResult, GuardVerdict
from lopen.guardrails.pipeline import circuit_events, events
from tests.guardrails.examples import NOW


def test_a_pass_is_not_an_event() -> None:
    assert events([GuardResult("scope_continuity", GuardVerdict.PASS)]) == ()


def test_a_circuit_that_opens_is_one_line_with_what_lopen_does() -> None:
    opened = CircuitChanged("session:s", "tool_failure", "open", "ls failed 4 times")
    closed = CircuitChanged("session:s", "tool_failure", "closed", "the probe passed")
    [cools] = circuit_events([opened, closed], needs_ack=False, until=NOW + timedelta(seconds=5), now=NOW)
    assert (cools.verdict, cools.reason) == ("warn", "tool_failure: ls failed 4 times")
    assert cools.action == "holds calls for 5 s, then allows one"
    [waits] = circuit_events([opened], needs_ack=True, until=None, now=NOW)
    assert (waits.verdict, waits.action) == ("block", "pauses until a person acknowledges the circuit")


def test_events_are_warnings_and_blocks_not_yet_announced() -> None:
    results = [
        GuardResult("budget", GuardVerdict.WARN, "r", action="continues", announce=False),
        GuardResult("churn", GuardVerdict.WARN, "r1", action="continues"),
        GuardResult("quality_gate", GuardVerdict.BLOCK, "r2", action="pauses"),
    ]
    assert [(e.guard, e.verdict, e.reason, e.action) for e in events(results)] == [
        ("churn", "warn", "r1", "continues"),
        ("quality_gate", "block", "r2", "pauses"),
    ]
