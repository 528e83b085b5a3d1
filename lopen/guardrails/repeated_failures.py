"""Order 200: failures of one task in a row, and how lopen escalates (docs/reference/guardrails.md).

normal → warning → intervention → halted, at 2, 3 and 5 by default; `workflow.failure_threshold` moves the
3, the others keep their distance. From intervention on lopen asks a person at 3, 5, then every second failure.
A confirmation is valid until the next of these counts, so a halted task can continue for two more failures.
A success resets the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from lopen.guardrails.guard import GuardFacts, GuardResult, one_line, times
from lopen.workflow.pauses import Confirmation, FailuresInRow
from lopen.workflow.steps import number

NAME = "churn"
ENDED_EARLY = "the turn ended without the step's result"  # the beginning of the reason of such an attempt
HALT_AFTER = 2  # failures beyond the threshold


class Pressure(StrEnum):
    """The level of escalation."""

    NORMAL = "normal"
    WARNING = "warning"
    INTERVENTION = "intervention"
    HALTED = "halted"


def pressure_at(failures: int, threshold: int) -> Pressure:
    """Return the level for a number of failures in a row. With a threshold of 1 there is no warning level."""
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
    session, task, threshold = facts.session, facts.task, facts.failure_threshold
    failures = task.failures if task else session.limits.step_failures
    pressure = pressure_at(failures, threshold)
    if pressure is Pressure.NORMAL:
        return GuardResult(NAME)
    reason = _reason(facts, failures, task.reasons if task else session.step_reasons)
    correction = _correction(facts, failures, pressure)
    gate = confirmation_at(failures, threshold)
    if gate <= session.limits.confirmed_failures(facts.subject):
        return GuardResult(NAME, reason, correction, action="continues")
    told = f"{reason}; confirm another try (--note TEXT tells the model what to do)"
    pause = Confirmation(session.id, FailuresInRow(facts.subject, gate), told)
    verb = "halts" if pressure is Pressure.HALTED else "pauses"
    skip = f", or skips the task with lopen skip {task.id}" if task else ""
    return GuardResult(NAME, reason, correction, pause, f"{verb} until a person confirms another try{skip}")


def _reason(facts: GuardFacts, failures: int, reasons: Sequence[str]) -> str:
    subject, refused = facts.session.dialogue.refused
    if subject == facts.subject and refused:
        cause = one_line(refused.partition("\n")[0].partition(": ")[2], 200).rstrip(".")
        return f"{_what(facts)} was not accepted in {failures} attempts: {cause}"
    if reasons and all(reason.startswith(ENDED_EARLY) for reason in reasons):
        return f"the model ended its turn {times(failures)} without doing {_what(facts)}; `lopen log -v` shows its words"
    causes = "; ".join(dict.fromkeys(one_line(r, 120) for r in reasons if r.strip()))
    return f"{_what(facts)} failed {times(failures)} in a row{f' ({causes})' if causes else ''}"


def _correction(facts: GuardFacts, failures: int, pressure: Pressure) -> str:
    count = f"The {_what(facts)} has failed {times(failures)} in a row."  # the prompt tells the reasons
    match pressure:
        case Pressure.WARNING | Pressure.NORMAL:
            return f"{count} Consider a different approach before you try again."
        case Pressure.INTERVENTION:
            return f"{count} You must change your strategy: say what the failures have in common, then try another way."
        case Pressure.HALTED:
            told = f"{count} A person allowed another try. Do not repeat an earlier approach"
            if facts.task is None:
                return f"{told}."
            return (
                f"{told}; if the task cannot be done as it is planned, "
                "set it to failed with a note that says why."
            )


def _what(facts: GuardFacts) -> str:
    if facts.task is None:
        return f"step {number(facts.session.step)}, {facts.subject.replace('_', ' ')}"
    name = one_line(facts.task.name, 80)
    return f"task {facts.task.id} ({name})" if name else f"task {facts.task.id}"
