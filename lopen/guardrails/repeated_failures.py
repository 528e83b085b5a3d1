"""Order 200: failures of one task in a row, and how lopen escalates (docs/reference/guardrails.md).

normal → warning → intervention → halted, at 2, 3 and 5 by default; `workflow.failure_threshold` moves the
3, the others keep their distance. From intervention on lopen asks a person at 3, 5, then every second failure.
A confirmation is valid until the next of these counts, so a halted task can continue for two more failures.
A success resets the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lopen.core.events import EscalationChanged
from lopen.guardrails.guard import (
    GuardFacts,
    GuardResult,
    GuardVerdict,
    confirm_command,
    one_line,
    passing,
    skip_command,
    times,
)
from lopen.workflow import changes
from lopen.workflow.session import Session
from lopen.workflow.steps import number

NAME = "churn"
ENDED_EARLY = "the turn ended without the step's result"  # the beginning of the reason of such an attempt


class Pressure(StrEnum):
    """The level of escalation."""

    NORMAL = "normal"
    WARNING = "warning"
    INTERVENTION = "intervention"
    HALTED = "halted"


ACTIONS: Mapping[Pressure, str] = {
    Pressure.NORMAL: "continues",
    Pressure.WARNING: "tells the model to try another approach",
    Pressure.INTERVENTION: "asks a person before another try",
    Pressure.HALTED: "halts until a person confirms another try",
}
HALT_AFTER = 2  # failures beyond the threshold


def pressure_at(failures: int, threshold: int) -> Pressure:
    """Return the level for a number of failures in a row. With a threshold of 1 there is no warning level."""
    if threshold < 1:
        raise ValueError(f"a failure threshold is at least 1, got {threshold}")
    if failures >= threshold + HALT_AFTER:
        return Pressure.HALTED
    if failures >= threshold:
        return Pressure.INTERVENTION
    return Pressure.WARNING if failures >= max(1, threshold - 1) else Pressure.NORMAL


def confirmation_at(failures: int, threshold: int) -> int:
    """Return the last count up to `failures` that requires a confirmation; 0 before the first."""
    return 0 if failures < threshold else failures - (failures - threshold) % HALT_AFTER


def check(facts: GuardFacts) -> GuardResult:
    """Warn below, and block at each count that a person has to confirm."""
    churn = facts.churn
    pressure = pressure_at(churn.failures, churn.threshold)
    if not facts.task_id or pressure is Pressure.NORMAL:
        return passing(NAME)
    gate = confirmation_at(churn.failures, churn.threshold)
    if gate > churn.confirmed_at:
        return _blocks(facts, pressure, gate)
    return GuardResult(
        NAME, GuardVerdict.WARN, _reason(facts), _correction(facts, pressure), action="continues"
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
    """Tell whether the failing subject is a planning step; a step cannot be skipped."""
    return facts.task_id == facts.step.value


def _or_skip(facts: GuardFacts) -> str:
    return "" if _is_step(facts) else f", or skips the task with {skip_command(facts.task_id)}"


def _reason(facts: GuardFacts) -> str:
    failed, reasons = times(facts.churn.failures), facts.churn.reasons
    if reasons and all(reason.startswith(ENDED_EARLY) for reason in reasons):
        return f"the model ended its turn {failed} without doing {_what(facts)}"
    return f"{_what(facts)} failed {failed} in a row{_why(facts)}"


def _correction(facts: GuardFacts, pressure: Pressure) -> str:
    count = f"The {_what(facts)} has failed {times(facts.churn.failures)} in a row."  # the prompt tells the reasons
    match pressure:
        case Pressure.WARNING | Pressure.NORMAL:
            return f"{count} Consider a different approach before you try again."
        case Pressure.INTERVENTION:
            return f"{count} You must change your strategy: say what the failures have in common, then try another way."
        case Pressure.HALTED:
            told = f"{count} A person allowed another try. Do not repeat an earlier approach"
            if _is_step(facts):
                return f"{told}."
            return (
                f"{told}; if the task cannot be done as it is planned, "
                "set it to failed with a note that says why."
            )


def _what(facts: GuardFacts) -> str:
    if _is_step(facts):
        return f"step {number(facts.step)}, {facts.task_id.replace('_', ' ')}"
    name = one_line(facts.task_name, 80)
    return f"task {facts.task_id} ({name})" if name else f"task {facts.task_id}"


def _why(facts: GuardFacts) -> str:
    reasons = "; ".join(dict.fromkeys(one_line(r, 120) for r in facts.churn.reasons if r.strip()))
    return f" ({reasons})" if reasons else ""


@dataclass(frozen=True, slots=True)
class FailingSubject:
    """A task or planning step, and its failures in a row."""

    subject: str
    name: str
    failures: int
    given_up: bool = False

    @property
    def reason(self) -> str:
        """Return the reason for its level."""
        if self.given_up:
            return "a person skipped it"
        if not self.failures:
            return "no more failures in a row"
        return f"failed {times(self.failures)} in a row"  # the end of each attempt told its reason


def escalated(session: Session, threshold: int) -> tuple[Session, tuple[EscalationChanged, ...]]:
    """Return the session with the present levels, and an event for each level that changed."""
    pressure: dict[str, str] = {}
    told: list[EscalationChanged] = []
    for failing in _all(session):
        before = Pressure(session.limits.pressure.get(failing.subject, Pressure.NORMAL))
        after = pressure_at(failing.failures, threshold)
        if after is not Pressure.NORMAL:
            pressure[failing.subject] = after.value
        if after is not before:
            levels, why = (before.value, after.value), (failing.reason, ACTIONS[after])
            told.append(EscalationChanged(failing.subject, failing.name, *levels, failing.failures, *why))
    return (changes.escalate(session, pressure) if told else session), tuple(told)


def _all(session: Session) -> Iterator[FailingSubject]:
    """Return every task and step that fails or has a level, removed ones included."""
    found = {
        t.id: FailingSubject(t.id, t.name, 0 if t.given_up else t.failures, bool(t.given_up))
        for t in session.tree.tasks
        if t.failures or t.id in session.limits.pressure
    }
    step = session.step.value
    if session.limits.step_failures or step in session.limits.pressure:
        found[step] = FailingSubject(step, step, session.limits.step_failures)
    gone = {s: FailingSubject(s, s, 0) for s in session.limits.pressure if s not in found}
    yield from (*found.values(), *gone.values())
