"""Order 300: what must have passed before something may be called complete (contract §4 "Completion", §6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lopen.guardrails.facts import Boundary, Claim, GuardFacts
from lopen.guardrails.verdicts import Result, Verdict, passing
from lopen.guardrails.wording import listing, one_line, resume_command

NAME = "quality_gate"

REQUIRED: Mapping[Boundary, tuple[str, ...]] = {
    "task": ("verify_tests", "verify_task_completion"),
    "component": ("verify_tests", "verify_lint", "verify_component_completion"),
    "module": ("verify_build", "verify_tests", "verify_lint", "verify_module_completion"),
}
STANDARD = frozenset({"verify_setup", "verify_build", "verify_tests", "verify_lint", "verify_commit"})
JUDGED = frozenset({"verify_task_completion", "verify_component_completion", "verify_module_completion"})


def tool_name(command_name: str) -> str:
    """The tool for a command of `Skills & Hooks`: `verify-tests` becomes `verify_tests`."""
    return command_name.replace("-", "_")


def required(boundary: Boundary, commands: Mapping[str, str | None]) -> tuple[str, ...]:
    """The tools that `boundary` wants, in the order to call them: the oracle's judgement last.

    `commands` are the approved verify commands by name, None where the specification says there is none;
    one that is none, or left out, is not required. The oracle's tools always are. A component also wants
    every `verify-*` of the specification that has no standard name.
    """
    there = {tool_name(name) for name, command in commands.items() if command}
    ruled = [t for t in REQUIRED[boundary] if t not in JUDGED and t in there]
    own = [t for t in map(tool_name, commands) if t in there and t not in STANDARD | JUDGED]
    judged = [t for t in REQUIRED[boundary] if t in JUDGED]
    return (*ruled, *(own if boundary == "component" else ()), *judged)


def missing(
    boundary: Boundary, commands: Mapping[str, str | None], fresh: Collection[str]
) -> tuple[str, ...]:
    """Required tools that are not in `fresh`: those that succeeded **since the last change** to the work tree."""
    return tuple(t for t in required(boundary, commands) if t not in fresh)


def unproven(claim: Claim) -> str:
    """What is wrong with a claim, for people."""
    subject = f"{claim.boundary} {one_line(claim.subject, 80)}"
    return f"{subject} is claimed complete without {listing(claim.missing, 20)}"


def rejection(claim: Claim) -> str:
    """What a refused completion says: which tools, in which order, and what then. Empty if nothing is missing."""
    if not claim.missing:
        return ""
    subject = f"{claim.boundary} {one_line(claim.subject, 80)}"
    return (
        f"Cannot mark {subject} as complete: {listing(claim.missing, 20)} did not succeed since the last change "
        "to the work tree. Run them now, in this order, mend what they find, then retry."
    )


def check(facts: GuardFacts) -> Result:
    """Block a completion that stands without its verifications."""
    claim = facts.claim
    if claim is None:
        return passing(NAME)
    if not claim.missing:
        return passing(NAME, f"{claim.boundary} {one_line(claim.subject, 80)} has its verifications")
    return Result(
        NAME,
        Verdict.BLOCK,
        unproven(claim),
        rejection(claim),
        resume_command(facts.session),
        "guardrail",
        action="pauses; nothing is recorded as complete",
    )
