"""What a guardrail answers, and what a guardrail is. Values only; the table itself is `pipeline.GUARDRAILS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lopen.guardrails.facts import GuardFacts
from lopen.workflow.session import PauseKind


class GuardVerdict(StrEnum):
    """One vocabulary for every guard."""

    PASS = "pass"  # noqa: S105 - a verdict's word, no password
    WARN = "warn"
    BLOCK = "block"


class Category(StrEnum):
    """The four kinds of back-pressure."""

    RESOURCE_LIMITS = "resource limits"
    PROGRESS_INTEGRITY = "progress integrity"
    QUALITY_GATES = "quality gates"
    TOOL_DISCIPLINE = "tool discipline"


@dataclass(frozen=True, slots=True)
class GuardResult:
    """One guard's answer.

    `reason` is for people, `correction` for the model's next prompt, `action` says what lopen does about it.
    A block carries what a pause needs: its kind, the person's `command`, and where the command is `confirm`
    the subject and the `level` that the confirmation is good for (for a budget: the percentage it is about,
    also in a warning). `wait_s` is a wait that lopen sits out by
    itself. `announce` is false where people have been told of this before.
    """

    guard: str
    verdict: GuardVerdict
    reason: str = ""
    correction: str = ""
    command: str = ""
    pause_kind: PauseKind | None = None
    confirm: str = ""
    level: int = 0
    action: str = ""
    wait_s: float = 0.0
    announce: bool = True


Check = Callable[[GuardFacts], GuardResult]


@dataclass(frozen=True, slots=True)
class Guardrail:
    """One row of the table. With `short_circuit` a block of it ends the pass."""

    order: int
    name: str
    category: Category
    short_circuit: bool
    check: Check


def passing(guard: str, reason: str = "") -> GuardResult:
    """Nothing to object to."""
    return GuardResult(guard, GuardVerdict.PASS, reason)
