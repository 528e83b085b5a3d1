"""A session: everything of one drive of one module that must outlive the process. A value, saved whole.

Only `lopen.storage` writes it down; only the journal replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Task, TaskTree

Status = Literal["running", "paused", "failed", "complete"]
PauseKind = Literal[
    "gate",
    "confirmation",
    "question",
    "budget",
    "circuit",
    "iterations",
    "endpoint",
    "guardrail",
    "storage",
    "interrupted",
]

ATTEMPT_FAILED = "The last attempt ended without its result: "  # begins the correction that gives the reason


def is_session_id(text: str, module: str) -> bool:
    """Whether lopen could have made `text` for the module: what a repository says is tried first."""
    return re.fullmatch(rf"{re.escape(module)}-[0-9]{{8}}-[1-9][0-9]{{0,8}}", text) is not None


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a session waits, and the command that lets it go on."""

    kind: PauseKind
    message: str
    command: str
    subject: str = ""  # what exactly is to be confirmed: a task's id, "budget", "boundary"
    level: int = 0  # how far the confirmation holds: failures of a task, percent of a budget


@dataclass(frozen=True, slots=True)
class Progress:
    """The result of a step that lopen takes by itself: it moved on, it waits for a person, or a model is needed."""

    kind: Literal["moved", "waits", "needs_model"]
    pause: Pause | None = None


MOVED = Progress("moved")
NEEDS_MODEL = Progress("needs_model")


def waits(pause: Pause) -> Progress:
    """Return the progress of a step that waits for a person."""
    return Progress("waits", pause)


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's word for one exact specification."""

    who: str
    at: datetime
    note: str
    spec_hash: str
    sections: Mapping[str, str]
    commands: Mapping[str, str | None]  # verify command name → command line, None where there is none
    seal: str = ""  # shows that it is this person's (`lopen.base.owner_seal`); the store sets and checks it


@dataclass(frozen=True, slots=True)
class Dependency:
    """What the module needs, as step 2 recorded it."""

    name: str
    kind: Literal["library", "module", "service", "tool"]
    reason: str
    available: bool


@dataclass(frozen=True, slots=True)
class Question:
    """The one question the model may have open."""

    text: str
    options: tuple[str, ...]
    default: str
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class CommitIntent:
    """A commit about to be made, recorded first: if the process dies between, the trailer tells."""

    task_id: str
    tree: str
    parent: str
    message: str


@dataclass(frozen=True, slots=True)
class RevertIntent:
    """A person's revert about to move the branch, recorded first: if the process dies, the next one tells or ends it."""

    commit: str  # where to
    backup: str  # the reference that keeps what was there
    head: str  # the branch's tip before


@dataclass(frozen=True, slots=True)
class Session:
    """One drive of one module through the workflow."""

    id: str
    module: str
    created_at: datetime
    step: Step = Step.DRAFT_SPECIFICATION
    status: Status = "running"
    pause: Pause | None = None
    request: str = ""  # the person's own words
    approval: Approval | None = None
    planned: Mapping[str, str] = field(default_factory=dict)  # section path → hash the plan rests on
    dependencies: tuple[Dependency, ...] | None = None
    tree: TaskTree = field(default_factory=TaskTree)
    selected: str | None = None  # component id
    original_scope: int | None = None
    criteria: Mapping[str, str] = field(default_factory=dict)  # id → text, as step 3 recorded them
    replan: Step | None = None  # drift: this planning step must be recorded again
    branch: str | None = None
    start_branch: str | None = None  # what HEAD was on before, for the merge command
    start_commit: str | None = None
    iterations: int = 0
    iterations_granted: int = 0
    max_cost_usd: float | None = None  # as the last `--max-cost` said; None: as the settings say
    question: Question | None = None
    clarifications: int = 0
    assumptions: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()  # told to the model in the next prompt
    notes: tuple[str, ...] = ()  # a person's notes, reverts and drift: told once to the model
    confirmed: Mapping[str, int] = field(default_factory=dict)  # subject → level a person confirmed
    boundary_failures: int = 0  # consecutive failed verifications of a component
    module_failures: int = 0  # consecutive failed verifications of the module
    planned_tasks: int = 0
    step_failures: int = 0  # consecutive failures of a planning step
    pressure: Mapping[str, str] = field(default_factory=dict)  # task or step → rung of its failures, if any
    budget_told: int = 0  # percent of the module's budget that the guard last told people of
    context_level: int = 0  # 0 whole; each context overflow makes the next prompt smaller
    whole: str = ""  # hash of the branch's tip and the tasks' commits that were all seen to be in its history
    commit_intent: CommitIntent | None = None
    revert_intent: RevertIntent | None = None
    leftovers: Mapping[str, str] = field(default_factory=dict)  # what verify commands left: path → blob id
    hooks: str = ""  # the repository's commit hooks as they were when the session began, as JSON

    @property
    def finished(self) -> bool:
        """Nothing more will be done in it."""
        return self.status == "complete"

    @property
    def failed_boundaries(self) -> int:
        """Consecutive failures of the boundary that fails most: a component that passes does not reset the module's."""
        return max(self.boundary_failures, self.module_failures)

    @property
    def task(self) -> Task | None:
        """The task in progress in the selected component."""
        component = self.tree.component(self.selected) if self.selected else None
        if component is None:
            return None
        return next((t for t in component.tasks if t.state.value == "in_progress"), None)

    @property
    def last_failure(self) -> str:
        """Why the latest attempt failed, without what the guardrails made of it; empty where none did."""
        failures = [c for c in self.corrections if c.startswith(ATTEMPT_FAILED)]
        return failures[-1].removeprefix(ATTEMPT_FAILED) if failures else ""

    def paused(self, pause: Pause) -> Session:
        """This session, waiting."""
        return replace(self, status="paused", pause=pause)
