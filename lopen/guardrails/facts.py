"""Everything a guard may look at, as plain values that the caller gathered. No guard looks anywhere else.

All of them are counts and short tuples: a pass costs the same after ten tool calls and after a million.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lopen.workflow.steps import Step

Boundary = Literal["task", "component", "module"]
FindingKind = Literal["circle", "reread", "retry", "untested_edits"]


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """The module's budget: tokens as billed and requests, each with 0 for unlimited.

    `warning`, `confirmation` and `pause` are fractions of a limit. `confirmed_level` is the percentage a
    person last confirmed for this limit (0: none), `announced_level` the percentage last told to people.
    `extension`: tokens to grant for work to go on; 0 where no extension helps.
    """

    tokens_used: int = 0
    tokens_max: int = 0
    requests_used: int = 0
    requests_max: int = 0
    warning: float = 0.8
    confirmation: float = 0.9
    pause: float = 1.0
    confirmed_level: int = 0
    announced_level: int = 0
    extension: int = 0
    enforcement: Literal["hard", "warn"] = "hard"
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    """A circuit that is open now. `until` is the end of its cooldown; `needs_ack` waits for a person instead."""

    id: str
    rule: str
    reason: str
    until: datetime | None = None
    needs_ack: bool = False


@dataclass(frozen=True, slots=True)
class ChurnFacts:
    """The task's failures **in a row**, why the latest ones failed, and the count a person confirmed.

    `confirmed_at` belongs to this row of failures: the caller forgets it when the task succeeds
    (`churn.after_success`).
    """

    failures: int = 0
    reasons: tuple[str, ...] = ()
    confirmed_at: int = 0
    threshold: int = 3


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """Acceptance criteria done of those recorded in step 3; None where it is not known."""

    completed: int | None = None
    original: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Something is held to be complete: what, and which of its required tools have no fresh success."""

    boundary: Boundary
    subject: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WastefulHabit:
    """A wasteful habit that was seen: of which kind, on what, how often, and what to do instead."""

    kind: FindingKind
    resource: str
    count: int
    correction: str


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """One pass's facts. `circular` and `discipline` come from `Habits.circular` and `Habits.discipline`."""

    module: str
    session: str
    step: Step
    now: datetime
    task_id: str = ""
    task_name: str = ""
    budget: BudgetFacts = field(default_factory=BudgetFacts)
    circuits: tuple[OpenCircuit, ...] = ()
    churn: ChurnFacts = field(default_factory=ChurnFacts)
    scope: ScopeFacts = field(default_factory=ScopeFacts)
    claim: Claim | None = None
    circular: tuple[WastefulHabit, ...] = ()
    discipline: tuple[WastefulHabit, ...] = ()
