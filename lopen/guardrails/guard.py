"""A guardrail: the facts it is given, the result it returns, its row in the table, and the words of its messages.

All facts are counts and short tuples, so a pass takes as long after ten tool calls as after a million. Text from
outside is made safe for one line of a message.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from lopen.guardrails.call_history import WastefulHabit
from lopen.workflow.pauses import Pause
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Task, next_task


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
class GuardFacts:
    """The facts for one pass: the session's record, and the limits, failures and habits beside it.

    `habits` are the ones of this conversation that still matter.
    """

    session: Session
    now: datetime
    failure_threshold: int = 3
    budget: BudgetFacts = field(default_factory=BudgetFacts)
    circuit: OpenCircuit | None = None
    habits: tuple[WastefulHabit, ...] = ()

    @property
    def task(self) -> Task | None:
        """The task that the next conversation is about; None outside step 6."""
        component = self.session.plan.component
        if self.session.step is not Step.ITERATE_THROUGH_TASKS or component is None:
            return None
        return next_task(component)

    @property
    def subject(self) -> str:
        """The subject of the next conversation: a task's id, or a step."""
        return self.task.id if self.task else self.session.step.value


class Category(StrEnum):
    """The kind of back-pressure that a guard applies."""

    RESOURCE_LIMITS = "resource limits"
    PROGRESS_INTEGRITY = "progress integrity"
    QUALITY_GATES = "quality gates"
    TOOL_DISCIPLINE = "tool discipline"


@dataclass(frozen=True, slots=True)
class GuardResult:
    """The result of one guard: a pass without a `reason`, a block with a `pause`, else a warning.

    `reason` is for people, `correction` for the model's next prompt, `action` names lopen's reaction.
    `wait_s` is a wait that lopen makes by itself. `announce` is false where people know this already.
    """

    guard: str
    reason: str = ""
    correction: str = ""
    pause: Pause | None = None
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
