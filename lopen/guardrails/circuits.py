"""Order 110: circuits that are open. One that wants a person blocks; a cooldown is waited out.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

from lopen.guardrails.answers import GuardResult, GuardVerdict, passing
from lopen.guardrails.facts import GuardFacts, OpenCircuit
from lopen.guardrails.wording import ack_command, one_line

NAME = "circuit_breaker"


def check(facts: GuardFacts) -> GuardResult:
    """A block for the first circuit that wants `ack`; else a warning with the longest wait still left."""
    for circuit in facts.circuits:
        if circuit.needs_ack:
            return _blocks(circuit)
    waits = [(_left(c, facts), c) for c in facts.circuits]
    cooling = [(left, c) for left, c in waits if left > 0]
    if not cooling:
        return passing(NAME)
    wait_s, circuit = max(cooling, key=lambda pair: pair[0])
    return GuardResult(
        NAME,
        GuardVerdict.WARN,
        _reason(circuit),
        _correction(circuit),
        action=f"waits {wait_s:.0f} s, then goes on",
        wait_s=wait_s,
    )


def _left(circuit: OpenCircuit, facts: GuardFacts) -> float:
    """Seconds of cooldown left; 0 once it is over: then one probe is let through."""
    if circuit.until is None:
        return 0.0
    return max(0.0, (circuit.until - facts.now).total_seconds())


def _blocks(circuit: OpenCircuit) -> GuardResult:
    return GuardResult(
        NAME,
        GuardVerdict.BLOCK,
        _reason(circuit),
        _correction(circuit),
        ack_command(circuit.id),
        "circuit",
        action="pauses until a person acknowledges the circuit",
    )


def _reason(circuit: OpenCircuit) -> str:
    return f"circuit {circuit.rule} is open: {one_line(circuit.reason)}"


def _correction(circuit: OpenCircuit) -> str:
    return (
        f"The circuit breaker {circuit.rule} tripped: {one_line(circuit.reason)}. The call that tripped it "
        "was not executed. Do not repeat what led there: say what you know, then take a different next step."
    )
