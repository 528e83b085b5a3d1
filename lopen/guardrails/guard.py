"""A guardrail: the facts it is given, the result it returns, its row in the table, and the words of its messages.

All facts are counts and short tuples, so a pass takes as long after ten tool calls as after a million. Text from
outside is made safe for one line of a message.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from lopen.guardrails.call_history import WastefulHabit
from lopen.workflow.pauses import HaltKind
from lopen.workflow.steps import Step

Boundary = Literal["task", "component", "module"]


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """The answer of the budgets of module and session to another request.

    `crossing` is the threshold that matters ("" for none), `command` the person's where no request may be made.
    """

    crossing: Literal["", "warning", "confirmation", "pause"] = ""
    message: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    """A circuit that is open. `until` is the end of its cooldown; with `needs_ack` a person closes it."""

    id: str
    rule: str
    reason: str
    until: datetime | None = None
    needs_ack: bool = False


@dataclass(frozen=True, slots=True)
class ChurnFacts:
    """The task's failures in a row, their reasons, and the count that a person confirmed.

    `confirmed_at` is valid for this row of failures: the caller removes it when the task succeeds
    (`repeated_failures.after_success`).
    """

    failures: int = 0
    reasons: tuple[str, ...] = ()
    confirmed_at: int = 0
    threshold: int = 3


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """Acceptance criteria and components that are complete, of those recorded in step 3; None where unknown."""

    completed: int | None = None
    original: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that `subject` is complete, and the required tools that have not succeeded since the last change."""

    boundary: Boundary
    subject: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """The facts for one pass. `circular` and `discipline` are the habits found in this conversation."""

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


class GuardVerdict(StrEnum):
    """The verdict of a guard."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    WARN = "warn"
    BLOCK = "block"


class Category(StrEnum):
    """The kind of back-pressure that a guard applies."""

    RESOURCE_LIMITS = "resource limits"
    PROGRESS_INTEGRITY = "progress integrity"
    QUALITY_GATES = "quality gates"
    TOOL_DISCIPLINE = "tool discipline"


@dataclass(frozen=True, slots=True)
class GuardResult:
    """The result of one guard.

    `reason` is for people, `correction` for the model's next prompt, `action` names lopen's reaction.
    A block has a `pause_kind` and the person's `command`; where the command is `confirm`, also the subject
    (`confirm`) and the `level` that the confirmation covers.
    `wait_s` is a wait that lopen makes by itself. `announce` is false where people know this already.
    """

    guard: str
    verdict: GuardVerdict
    reason: str = ""
    correction: str = ""
    command: str = ""
    pause_kind: HaltKind | Literal["confirmation"] | None = None
    confirm: str = ""
    level: int = 0
    action: str = ""
    wait_s: float = 0.0
    announce: bool = True


Check = Callable[[GuardFacts], GuardResult]


@dataclass(frozen=True, slots=True)
class Guardrail:
    """One row of the table. With `short_circuit` a block of this guard ends the pass."""

    order: int
    name: str
    category: Category
    short_circuit: bool
    check: Check


def passing(guard: str, reason: str = "") -> GuardResult:
    """Return the result of a guard that has no objection."""
    return GuardResult(guard, GuardVerdict.PASS, reason)


_ELLIPSIS = "…"
_SCANNED = 8  # read at most this many times the limit


def one_line(text: str, limit: int = 160) -> str:
    """Return `text` on one line of at most `limit` characters; control and format characters become blanks."""
    if len(text) <= limit and text.isprintable():  # the usual case, and much faster
        return " ".join(text.split())
    head = text[: limit * _SCANNED]
    safe = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"} else c for c in head)
    line = " ".join(safe.split())
    return line if len(line) <= limit and len(head) == len(text) else line[: limit - 1] + _ELLIPSIS


def times(count: int) -> str:
    """Return a count in words: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def listing(names: tuple[str, ...], limit: int = 5) -> str:
    """Return the first `limit` names, and how many more there are."""
    shown = ", ".join(one_line(n, 80) for n in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def confirm_command(session: str) -> str:
    """Return the command that confirms a pause."""
    return f"lopen confirm {shlex.quote(session)}"


def ack_command(circuit: str) -> str:
    """Return the command that closes a circuit."""
    return f"lopen circuit ack {shlex.quote(circuit)}"


def skip_command(task_id: str) -> str:
    """Return the command that skips a task."""
    return f"lopen skip {shlex.quote(task_id)}"


def plan_command(module: str) -> str:
    """Return the command that plans a module again."""
    return f"lopen plan {shlex.quote(module)} --new"


def resume_command(session: str) -> str:
    """Return the command that resumes a session."""
    return f"lopen resume {shlex.quote(session)}"
