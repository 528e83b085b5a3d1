"""Orders 220 and 300: the original scope, and the verifications that a completion requires (docs/reference/completion.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from lopen.guardrails.guard import GuardFacts, GuardResult, listing, one_line
from lopen.workflow.pauses import Halt
from lopen.workflow.steps import Step, number
from lopen.workflow.task_tree import State

Boundary = Literal["task", "component", "module"]

SCOPE = "scope_continuity"
QUALITY = "quality_gate"
SCOPE_FROM = number(Step.SELECT_NEXT_COMPONENT)

REQUIRED: Mapping[Boundary, tuple[str, ...]] = {
    "task": ("verify_lint", "verify_tests", "verify_task_completion"),
    "component": ("verify_lint", "verify_tests", "verify_component_completion"),
    "module": ("verify_build", "verify_lint", "verify_tests", "verify_module_completion"),
}
STANDARD = frozenset(
    {"verify_setup", "verify_build", "verify_tests", "verify_lint", "verify_commit", "verify_fix"}
)
JUDGED = frozenset({"verify_task_completion", "verify_component_completion", "verify_module_completion"})


def tool_name(command_name: str) -> str:
    """Return the tool for a command of `Skills & Hooks`: `verify-tests` becomes `verify_tests`."""
    return command_name.replace("-", "_")


def required(boundary: Boundary, commands: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the tools that `boundary` requires, in the order to call them, the judge's last.

    `commands` are the approved verify commands by name. A command that is None or absent is not required; the
    judge's tools always are. A component also requires every `verify-*` without a standard name.
    """
    available = {tool_name(name) for name, command in commands.items() if command}
    standard = [t for t in REQUIRED[boundary] if t not in JUDGED and t in available]
    own = [t for t in map(tool_name, commands) if t in available and t not in STANDARD | JUDGED]
    judged = [t for t in REQUIRED[boundary] if t in JUDGED]
    return (*standard, *(own if boundary == "component" else ()), *judged)


def missing(
    boundary: Boundary, commands: Mapping[str, str | None], fresh: Collection[str]
) -> tuple[str, ...]:
    """Return the required tools not in `fresh`, the tools that succeeded since the last change to the work tree."""
    return tuple(t for t in required(boundary, commands) if t not in fresh)


def rejection(subject: str, lacking: tuple[str, ...]) -> str:
    """Return the error for a completion of `subject` that lacks these required tools, named in order."""
    return (
        f"Cannot mark {one_line(subject, 80)} as complete: {listing(lacking, 20)} did not succeed in this iteration "
        "since the last change to the work tree. Run them now, in this order, fix what they find, then retry."
    )


def check_quality(facts: GuardFacts) -> GuardResult:
    """Block where a task is recorded as complete without its commit, which only passed verifications lead to."""
    session = facts.session
    unproven = tuple(t.id for t in session.tree.tasks if t.state is State.COMPLETE and not t.commit)
    if not unproven:
        return GuardResult(QUALITY)
    reason = (
        f"recorded as complete without a commit, so without the required verifications: {listing(unproven)}"
    )
    return GuardResult(
        QUALITY,
        reason,
        f"{listing(unproven)} counts as complete, but nothing shows that it was verified: do not build on it.",
        Halt("guardrail", f"{QUALITY}: {reason}", f"lopen plan {session.module} --new"),
        "pauses until the module is planned again",
    )


def check_scope(facts: GuardFacts) -> GuardResult:
    """From step 4 on, block where the plan no longer holds the original scope, or nothing tells how large it was."""
    session = facts.session
    original, planned = session.plan.original_scope, len(session.plan.criteria) + len(session.tree.components)
    if number(session.step) < SCOPE_FROM or (original and planned >= original):
        return GuardResult(SCOPE)
    reason = f"the plan holds {planned} criteria and components, of {original or 'an unknown number'} that the module began with"
    return GuardResult(
        SCOPE,
        reason,
        "The plan does not hold the module's original scope. Record components that cover every acceptance criterion "
        "with record_components before anything else.",
        Halt("guardrail", reason, f"lopen plan {session.module} --new"),
        "pauses until the components are planned anew",
    )
