"""Open circuits: a person's block, or a wait that lopen sits out."""

from __future__ import annotations

from datetime import timedelta

from lopen.guardrails.guard import GuardVerdict, OpenCircuit
from lopen.guardrails.resource_limits import check_circuits
from tests.guardrails.examples import NOW, facts


def cooling(rule: str, seconds: float) -> OpenCircuit:
    return OpenCircuit(rule, rule, "too fast", NOW + timedelta(seconds=seconds))


def test_no_open_circuit_passes() -> None:
    assert check_circuits(facts()).verdict is GuardVerdict.PASS


def test_a_cooldown_is_waited_out_and_the_model_is_told() -> None:
    result = check_circuits(facts(circuits=(cooling("rapid_fire", 42),)))
    assert result.verdict is GuardVerdict.WARN
    assert result.wait_s == 42
    assert result.action == "waits 42 s, then continues"
    assert "rapid_fire" in result.correction


def test_the_longest_cooldown_counts() -> None:
    result = check_circuits(facts(circuits=(cooling("rapid_fire", 5), cooling("tool_failure", 30))))
    assert result.wait_s == 30
    assert "tool_failure" in result.reason


def test_a_cooldown_that_is_over_passes() -> None:
    assert (
        check_circuits(facts(circuits=(cooling("rapid_fire", 0), cooling("tool_failure", -5)))).verdict
        is GuardVerdict.PASS
    )


def test_a_circuit_that_wants_a_person_blocks_whatever_else_is_cooling() -> None:
    waits = OpenCircuit("auth-1:duplicate_call", "duplicate_call", "the same call\n5 times", needs_ack=True)
    result = check_circuits(facts(circuits=(cooling("rapid_fire", 60), waits)))
    assert (result.verdict, result.pause_kind) == (GuardVerdict.BLOCK, "circuit")
    assert result.command == "lopen circuit ack auth-1:duplicate_call"
    assert result.reason == "circuit duplicate_call is open: the same call 5 times"
