"""What people see of a guardrail."""

from __future__ import annotations

from datetime import timedelta

from lopen.base.events import CircuitChanged
from lopen.guardrails.answers import GuardResult, GuardVerdict
from lopen.guardrails.facts import BudgetFacts
from lopen.guardrails.pipeline import GUARDRAILS, events, line, run, tripped
from tests.guardrails.examples import NOW, facts


def test_a_block_names_guard_verdict_reason_action_and_command() -> None:
    blocked = run(GUARDRAILS, facts(budget=BudgetFacts(tokens_used=95, tokens_max=100))).block
    assert blocked is not None
    assert line(blocked) == (
        "budget: block · module auth has used 95 of 100 tokens (95%) and wants a confirmation to go on · "
        "lopen pauses until a person confirms · answer with: lopen confirm auth-20260301-1"
    )


def test_foreign_text_stays_on_one_inert_line() -> None:
    said = line(GuardResult("churn", GuardVerdict.WARN, "bad \x1b[31mred\x1b[0m\r\nnews\u202e"))
    assert said == "churn: warn · bad [31mred [0m news"


def test_a_pass_is_a_line_but_no_event() -> None:
    assert line(GuardResult("scope_continuity", GuardVerdict.PASS)) == "scope_continuity: pass"
    assert events([GuardResult("scope_continuity", GuardVerdict.PASS)]) == ()


def test_a_circuit_that_opens_is_one_line_with_what_lopen_does() -> None:
    opened = CircuitChanged("session:s", "tool_failure", "open", "ls failed 4 times")
    closed = CircuitChanged("session:s", "tool_failure", "closed", "the probe passed")
    [cools] = tripped([opened, closed], needs_ack=False, until=NOW + timedelta(seconds=5), now=NOW)
    assert (cools.verdict, cools.reason) == ("warn", "tool_failure: ls failed 4 times")
    assert cools.action == "holds calls back for 5 s, then lets one through"
    [waits] = tripped([opened], needs_ack=True, until=None, now=NOW)
    assert (waits.verdict, waits.action) == ("block", "pauses until a person acknowledges the circuit")


def test_events_are_warnings_and_blocks_not_yet_announced() -> None:
    results = [
        GuardResult("budget", GuardVerdict.WARN, "r", action="goes on", announce=False),
        GuardResult("churn", GuardVerdict.WARN, "r1", action="goes on"),
        GuardResult("quality_gate", GuardVerdict.BLOCK, "r2", action="pauses"),
    ]
    assert [(e.guard, e.verdict, e.reason, e.action) for e in events(results)] == [
        ("churn", "warn", "r1", "goes on"),
        ("quality_gate", "block", "r2", "pauses"),
    ]
