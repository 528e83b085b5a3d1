"""Order 200: failures of one task in a row, and the ladder they climb (docs/reference/guardrails.md).

normal → warning → intervention → halted, at 2, 3 and 5 by default; `workflow.failure_threshold` moves the
3, the others keep their distance. From intervention on a person is asked at gates: 3, 5, then every second
failure more. A confirmation is good until the next gate, so that even a halted task can be gone on with,
but only ever for two more failures. A success resets all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal

from lopen.base.events import EscalationChanged
from lopen.guardrails.answers import GuardResult, GuardVerdict, passing
from lopen.guardrails.facts import GuardFacts
from lopen.guardrails.wording import confirm_command, one_line, skip_command, times
from lopen.workflow.session import Session

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


def check(facts: GuardFacts) -> GuardResult:
    """Warn on the way, block at each gate that no person has confirmed yet."""
    churn = facts.churn
    ladder = Ladder.around(churn.threshold)
    pressure = ladder.pressure(churn.failures)
    if not facts.task_id or pressure is Pressure.NORMAL:
        return passing(NAME)
    gate = ladder.gate(churn.failures)
    if gate > churn.confirmed_at:
        return _blocks(facts, pressure, gate)
    return GuardResult(
        NAME, GuardVerdict.WARN, _reason(facts), _correction(facts, pressure), action="goes on"
    )


def _blocks(facts: GuardFacts, pressure: Pressure, gate: int) -> GuardResult:
    halted = pressure is Pressure.HALTED
    return GuardResult(
        NAME,
        GuardVerdict.BLOCK,
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


DOES: Mapping[Action, str] = {
    "continue": "goes on",
    "correct": "tells the model to try another way",
    "confirm": "asks a person before another try",
    "halt": "halts until a person confirms another try",
}


@dataclass(frozen=True, slots=True)
class Failing:
    """A task or planning step with its failures in a row."""

    subject: str
    name: str
    failures: int
    note: str = ""
    given_up: bool = False

    @property
    def reason(self) -> str:
        """Why it stands where it does."""
        if self.given_up:
            return "a person gave it up"
        if not self.failures:
            return "no failures in a row any more"
        return f"failed {times(self.failures)} in a row" + (f" ({one_line(self.note)})" if self.note else "")


def escalated(
    session: Session, threshold: int, at: datetime
) -> tuple[Session, tuple[EscalationChanged, ...]]:
    """The session with every rung as it is now, and what climbed or came down since it was last recorded."""
    ladder = Ladder.around(threshold)
    pressure: dict[str, str] = {}
    told: list[EscalationChanged] = []
    for failing in _all(session):
        before = Escalation(ladder, Pressure(session.pressure.get(failing.subject, Pressure.NORMAL)))
        after, action = before.advance(failing.failures, reason=failing.reason, at=at)
        if after.state is not Pressure.NORMAL:
            pressure[failing.subject] = after.state.value
        told += [_told(failing, climb, action) for climb in after.transitions]
    return (replace(session, pressure=pressure) if told else session), tuple(told)


def _all(session: Session) -> Iterator[Failing]:
    """Every task that fails or stands on a rung, the present step, and what was on a rung but is no longer there."""
    found = {
        t.id: Failing(t.id, t.name, 0 if t.given_up else t.failures, t.note, bool(t.given_up))
        for t in session.tree.tasks
        if t.failures or t.id in session.pressure
    }
    step = session.step.value
    if session.step_failures or step in session.pressure:
        found[step] = Failing(step, step, session.step_failures, session.last_failure)
    gone = {s: Failing(s, s, 0) for s in session.pressure if s not in found}
    yield from (*found.values(), *gone.values())


def _told(failing: Failing, climb: Climb, action: Action) -> EscalationChanged:
    return EscalationChanged(
        failing.subject,
        failing.name,
        climb.source.value,
        climb.target.value,
        climb.failures,
        climb.reason,
        DOES[action],
    )
