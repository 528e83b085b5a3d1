"""What people are shown of a guardrail's answer: one line, and the event it is published as."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from lopen.events import CircuitChanged, Event, GuardrailRaised
from lopen.guardrails import circuits
from lopen.guardrails.verdicts import Result, Verdict
from lopen.guardrails.wording import one_line


def line(result: Result) -> str:
    """The guard, its verdict, why, what lopen does, and the command that answers where one does."""
    parts = [f"{result.guard}: {result.verdict.value}"]
    if result.reason:
        parts.append(one_line(result.reason, 400))
    if result.action:
        parts.append(f"lopen {one_line(result.action)}")
    if result.command:
        parts.append(f"answer with: {one_line(result.command, 400)}")
    return " · ".join(parts)


def tripped(
    told: Iterable[Event], *, needs_ack: bool, until: datetime | None, now: datetime
) -> tuple[GuardrailRaised, ...]:
    """A line for each circuit that `told` says opened just now; `until` is the end of its cooldown."""
    wait_s = max(0.0, (until - now).total_seconds()) if until else 0.0
    action = (
        "pauses until a person acknowledges the circuit"
        if needs_ack
        else f"holds calls back for {wait_s:.0f} s, then lets one through"
    )
    return tuple(
        GuardrailRaised(
            circuits.NAME, "block" if needs_ack else "warn", f"{opened.rule}: {opened.reason}", action
        )
        for opened in told
        if isinstance(opened, CircuitChanged) and opened.state == "open"
    )


def events(results: Iterable[Result]) -> tuple[GuardrailRaised, ...]:
    """The events of a pass: warnings and blocks that people have not been told of before."""
    return tuple(
        GuardrailRaised(r.guard, "block" if r.verdict is Verdict.BLOCK else "warn", r.reason, r.action)
        for r in results
        if r.verdict is not Verdict.PASS and r.announce
    )
