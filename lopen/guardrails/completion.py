"""Orders 220 and 300: the original scope, and the verifications that a completion requires (docs/reference/completion.md).

Also here: the quality gates that a repository lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lopen.guardrails.guard import (
    Boundary,
    Claim,
    GuardFacts,
    GuardResult,
    GuardVerdict,
    listing,
    one_line,
    passing,
    plan_command,
    resume_command,
)
from lopen.workflow.steps import Step, number

SCOPE = "scope_continuity"
QUALITY = "quality_gate"
SCOPE_FROM = number(Step.SELECT_NEXT_COMPONENT)

REQUIRED: Mapping[Boundary, tuple[str, ...]] = {
    "task": ("verify_tests", "verify_task_completion"),
    "component": ("verify_tests", "verify_lint", "verify_component_completion"),
    "module": ("verify_build", "verify_tests", "verify_lint", "verify_module_completion"),
}
STANDARD = frozenset({"verify_setup", "verify_build", "verify_tests", "verify_lint", "verify_commit"})
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


def unproven(claim: Claim) -> str:
    """Describe a claim without its verifications, for people."""
    subject = f"{claim.boundary} {one_line(claim.subject, 80)}"
    return f"{subject} is claimed complete without {listing(claim.missing, 20)}"


def rejection(claim: Claim) -> str:
    """Return the error for a refused completion: the missing tools in order. Empty if nothing is missing."""
    if not claim.missing:
        return ""
    subject = f"{claim.boundary} {one_line(claim.subject, 80)}"
    return (
        f"Cannot mark {subject} as complete: {listing(claim.missing, 20)} did not succeed in this iteration "
        "since the last change to the work tree. Run them now, in this order, fix what they find, then retry."
    )


def check_quality(facts: GuardFacts) -> GuardResult:
    """Block a completion without its verifications."""
    claim = facts.claim
    if claim is None:
        return passing(QUALITY)
    if not claim.missing:
        return passing(QUALITY, f"{claim.boundary} {one_line(claim.subject, 80)} has its verifications")
    return GuardResult(
        QUALITY,
        GuardVerdict.BLOCK,
        unproven(claim),
        rejection(claim),
        resume_command(facts.session),
        "guardrail",
        action="pauses; nothing is recorded as complete",
    )


def check_scope(facts: GuardFacts) -> GuardResult:
    """From step 4 on, pass with the count, or block where the original scope or the completed part is unknown."""
    if number(facts.step) < SCOPE_FROM:
        return passing(SCOPE)
    completed, original = facts.scope.completed, facts.scope.original
    if original and original > 0 and completed is not None and completed >= 0:
        count = f"{completed} of the {original} acceptance criteria and components are complete"
        return passing(SCOPE, count if completed >= original else f"{count}: the run continues")
    return GuardResult(
        SCOPE,
        GuardVerdict.BLOCK,
        f"the original scope of module {facts.module} or its completed part is not recorded, "
        "so lopen cannot tell when the module is complete",
        "The scope of this module was not recorded. Record components that cover every acceptance criterion "
        "with record_components before anything else.",
        plan_command(facts.module),
        "guardrail",
        action="pauses until step 3 has recorded the scope",
    )


OFFER = "commands are named under Skills & Hooks"


def missing_gates(commands: Mapping[str, str | None]) -> tuple[str, ...]:
    """Name the quality gates that the approved verify `commands` lack."""
    missing = []
    if not commands.get("verify-tests"):
        missing.append("a test runner (verify-tests is none)")
    if not commands.get("verify-lint"):
        missing.append("a linter (verify-lint is none)")
    return tuple(missing)


def advice(missing: Collection[str]) -> str:
    """Tell the planning model of the missing gates; empty where nothing is missing."""
    return (
        f"Missing here: {', '.join(missing)}. Only a person adds these: plan none of them." if missing else ""
    )
