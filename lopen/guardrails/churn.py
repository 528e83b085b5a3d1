"""Order 200: failures of one task in a row, and the ladder they climb (seed 000, contract §6).

normal → warning → intervention → halted, at 2, 3 and 5 by default; `workflow.failure_threshold` moves the
3, the others keep their distance. From intervention on a person is asked at gates: 3, 5, then every second
failure more. A confirmation is good until the next gate, so that even a halted task can be gone on with,
but only ever for two more failures. A success resets all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal

from lopen.guardrails.facts import GuardFacts
from lopen.guardrails.verdicts import Result, Verdict, passing
from lopen.guardrails.wording import confirm_command, one_line, skip_command, times

NAME = "churn"
TRANSITIONS_KEPT = 20
REASONS_TOLD = 3

Action = Literal["continue", "correct", "confirm", "halt"]


class Pressure(StrEnum):
    """How far a task's failures have climbed."""

    NORMAL = "normal"
    WARNING = "warning"
    INTERVENTION = "intervention"
    HALTED = "halted"


ACTIONS: Mapping[Pressure, Action] = {
    Pressure.NORMAL: "continue",
    Pressure.WARNING: "correct",
    Pressure.INTERVENTION: "confirm",
    Pressure.HALTED: "halt",
}


@dataclass(frozen=True, slots=True)
class Ladder:
    """At how many failures in a row each rung is reached. With `intervention` 1 there is no warning rung."""

    warning: int = 2
    intervention: int = 3
    halt: int = 5

    @classmethod
    def around(cls, threshold: int) -> Ladder:
        """The ladder whose intervention is at `threshold` (`workflow.failure_threshold`, at least 1)."""
        if threshold < 1:
            raise ValueError(f"a failure threshold is at least 1, got {threshold}")
        return cls(max(1, threshold - 1), threshold, threshold + 2)

    def pressure(self, failures: int) -> Pressure:
        """The rung for so many failures in a row."""
        if failures >= self.halt:
            return Pressure.HALTED
        if failures >= self.intervention:
            return Pressure.INTERVENTION
        return Pressure.WARNING if failures >= self.warning else Pressure.NORMAL

    def gate(self, failures: int) -> int:
        """The last count at or below `failures` that wants a person's confirmation; 0 before the first."""
        if failures < self.intervention:
            return 0
        stride = self.halt - self.intervention
        return failures - (failures - self.intervention) % stride


@dataclass(frozen=True, slots=True)
class Climb:
    """A change of rung, for the record."""

    source: Pressure
    target: Pressure
    failures: int
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Escalation:
    """One task's rung and how it got there; the latest `TRANSITIONS_KEPT` changes are kept."""

    ladder: Ladder = field(default_factory=Ladder)
    state: Pressure = Pressure.NORMAL
    transitions: tuple[Climb, ...] = ()

    def advance(self, failures: int, *, reason: str, at: datetime) -> tuple[Escalation, Action]:
        """The escalation at so many failures in a row (0 after a success), and what is to be done."""
        target = self.ladder.pressure(failures)
        action = ACTIONS[target]
        if target is self.state:
            return self, action
        climb = Climb(self.state, target, failures, one_line(reason), at)
        kept = (*self.transitions, climb)[-TRANSITIONS_KEPT:]
        return replace(self, state=target, transitions=kept), action


def after_success(confirmed: Mapping[str, int], task_id: str) -> dict[str, int]:
    """`confirmed` without the task: a confirmation is good for one row of failures only."""
    return {subject: level for subject, level in confirmed.items() if subject != task_id}


def check(facts: GuardFacts) -> Result:
    """Warn on the way, block at each gate that no person has confirmed yet."""
    churn = facts.churn
    ladder = Ladder.around(churn.threshold)
    pressure = ladder.pressure(churn.failures)
    if not facts.task_id or pressure is Pressure.NORMAL:
        return passing(NAME)
    gate = ladder.gate(churn.failures)
    if gate > churn.confirmed_at:
        return _blocks(facts, pressure, gate)
    return Result(NAME, Verdict.WARN, _reason(facts), _correction(facts, pressure), action="goes on")


def _blocks(facts: GuardFacts, pressure: Pressure, gate: int) -> Result:
    halted = pressure is Pressure.HALTED
    return Result(
        NAME,
        Verdict.BLOCK,
        _reason(facts),
        _correction(facts, pressure),
        confirm_command(facts.session),
        "confirmation",
        facts.task_id,
        gate,
        f"{'halts' if halted else 'pauses'} until a person confirms another try{_or_skip(facts)}",
    )


def _is_step(facts: GuardFacts) -> bool:
    """Whether a planning step fails: it stands in the task's place, and nobody can give it up."""
    return facts.task_id == facts.step.value


def _or_skip(facts: GuardFacts) -> str:
    return "" if _is_step(facts) else f", or gives the task up with {skip_command(facts.task_id)}"


def _reason(facts: GuardFacts) -> str:
    return f"{_what(facts)} failed {times(facts.churn.failures)} in a row{_why(facts)}"


def _correction(facts: GuardFacts, pressure: Pressure) -> str:
    told = f"The {_what(facts)} has failed {times(facts.churn.failures)} in a row{_why(facts)}."
    match pressure:
        case Pressure.WARNING | Pressure.NORMAL:
            return f"{told} Consider a different approach before you try again."
        case Pressure.INTERVENTION:
            return f"{told} You must change your strategy: say what the failures have in common, then try another way."
        case Pressure.HALTED:
            told = f"{told} A person let it go on. Do not repeat any of the earlier ways"
            if _is_step(facts):
                return f"{told}."
            return (
                f"{told}; if the task cannot be done as it is planned, "
                "set it to failed with a note that says why."
            )


def _what(facts: GuardFacts) -> str:
    if _is_step(facts):
        return f"step {facts.task_id}"
    name = one_line(facts.task_name, 80)
    return f"task {facts.task_id} ({name})" if name else f"task {facts.task_id}"


def _why(facts: GuardFacts) -> str:
    reasons = "; ".join(one_line(r, 120) for r in facts.churn.reasons[-REASONS_TOLD:] if r.strip())
    return f" (latest: {reasons})" if reasons else ""
