"""Order 200: attempts in a row that were not accepted: a warning before the last, then a person decides.

An attempt is work that was rejected (`lopen.tools.task_work`), or a conversation that ended without its result. A
success resets the count, and so does a person's confirmation (docs/reference/guardrails.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lopen.guardrails.guard import GuardFacts, GuardResult, one_line, times
from lopen.workflow.pauses import not_accepted
from lopen.workflow.steps import number

NAME = "churn"
ENDED_EARLY = "the turn ended without the step's result"  # the beginning of the reason of such an attempt


def check(facts: GuardFacts) -> GuardResult:
    """Warn one attempt before the threshold, and block at it."""
    session, task, threshold = facts.session, facts.task, facts.failure_threshold
    failures = task.failures if task else session.limits.step_failures
    if failures < max(1, threshold - 1):
        return GuardResult(NAME)
    what, reasons = _what(facts), task.reasons if task else session.step_reasons
    pause = not_accepted(session.id, facts.subject, what, failures, _cause(reasons, failures))
    if reasons and all(reason.startswith(ENDED_EARLY) for reason in reasons):
        told = (
            f"the model ended its turn {times(failures)} without doing {what}; `lopen log -v` shows its words"
        )
        pause = replace(pause, message=told)
    count = f"The {what} has failed {times(failures)} in a row."  # the prompt tells the reasons
    if failures < threshold:
        hint = f"{count} Consider a different approach before you try again."
        return GuardResult(NAME, pause.message, hint, action="continues")
    hint = (
        f"{count} A person allowed other attempts. You must change your strategy: say what the failures have in "
        "common, then try another way."
    )
    if task:
        hint += " If the task cannot be done as it is planned, set it to failed with a note that says why."
    return GuardResult(NAME, pause.message, hint, pause, f"asks a person: {pause.ways}")


def _cause(reasons: Sequence[str], failures: int) -> str:
    """Return the reasons of the attempts, each once; turns that ended early only where nothing else was said."""
    said = [r for r in reasons if r.strip() and not r.startswith(ENDED_EARLY)] or reasons
    return "; ".join(dict.fromkeys(one_line(r, 120).rstrip(".") for r in said[-failures:]))


def _what(facts: GuardFacts) -> str:
    if facts.task is None:
        return f"step {number(facts.session.step)}, {facts.subject.replace('_', ' ')}"
    name = one_line(facts.task.name, 80)
    return f"task {facts.task.id} ({name})" if name else f"task {facts.task.id}"
