"""Order 220: the original scope. Unfinished, the run goes on and may not stop; unknown, it may not go on."""

from __future__ import annotations

from lopen.guardrails.answers import GuardResult, GuardVerdict, passing
from lopen.guardrails.facts import GuardFacts
from lopen.guardrails.wording import plan_command
from lopen.workflow.steps import Step, number

NAME = "scope_continuity"
FIRST_STEP = number(Step.SELECT_NEXT_COMPONENT)


def known(completed: int | None, original: int | None) -> bool:
    """Whether both counts say something: an original scope of at least one, and a count of what is done."""
    return original is not None and original > 0 and completed is not None and completed >= 0


def fulfilled(completed: int | None, original: int | None) -> bool:
    """Whether a module may be held complete for its scope; never on an unknown scope."""
    if completed is None or original is None or not known(completed, original):
        return False
    return completed >= original


def check(facts: GuardFacts) -> GuardResult:
    """From step 4 on: pass with the count, or block where there is no count to go by."""
    if number(facts.step) < FIRST_STEP:
        return passing(NAME)
    completed, original = facts.scope.completed, facts.scope.original
    if not known(completed, original):
        return _unknown(facts)
    if fulfilled(completed, original):
        return passing(NAME, f"{completed} of {original} acceptance criteria are done")
    return passing(NAME, f"{completed} of {original} acceptance criteria are done: the run goes on")


def _unknown(facts: GuardFacts) -> GuardResult:
    original = facts.scope.original
    if original is None or original <= 0:
        what = f"the original scope is {'unknown' if original is None else original}"
    else:
        what = "what is done of the original scope is unknown"
    return GuardResult(
        NAME,
        GuardVerdict.BLOCK,
        f"{what}, so nobody could tell when module {facts.module} is complete",
        "The scope of this module was not recorded. Record components that cover every acceptance criterion "
        "with record_components before anything else.",
        plan_command(facts.module),
        "guardrail",
        action="pauses until step 3 has recorded the scope",
    )
