"""The session: the state of building one module, which outlives the process. A value that is saved as a whole.

Only `lopen.store` writes it; only the journal replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lopen.workflow.pauses import AddedTasks, Pause, Reason
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree

Status = Literal["running", "paused", "failed", "complete"]
MAX_CLARIFICATIONS = (
    1  # questions of the model that reach a person in one session; further ones get their default
)
GUIDANCE = "Guidance:"  # the question of an answer that a person gave unasked
FAILS_BEFORE_ANY_WORK = (
    "{name} fails on the code that is there, before any work; a task completes only once it passes."
)
FAILS_NOW = FAILS_BEFORE_ANY_WORK.partition(" ")[2]  # the same without the command's name
ATTEMPT_FAILED = "The last attempt ended without its result: "  # the prefix of the correction with the reason


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's approval of one exact specification."""

    who: str
    at: datetime
    note: str
    spec_hash: str
    sections: Mapping[str, str]
    commands: Mapping[str, str | None]  # verify command name → command line, None if there is none
    changed: tuple[str, ...] = ()  # sections that read otherwise, or are gone, since the approval before
    test_removals: tuple[str, ...] = ()  # globs of test files whose tests may be removed
    seal: str = ""  # proof of the person (`lopen.core.person`), which the store sets and checks


@dataclass(frozen=True, slots=True)
class Dependency:
    """A dependency of the module, as step 2 recorded it."""

    name: str
    kind: Literal["library", "module", "service", "tool"]
    reason: str
    available: bool


@dataclass(frozen=True, slots=True)
class CommitIntent:
    """A commit to create, recorded before; if the process dies in between, the commit's trailer shows the result."""

    task_id: str
    tree: str
    parent: str
    message: str


@dataclass(frozen=True, slots=True)
class RevertIntent:
    """A person's revert, recorded before it moves the branch; if the process dies, the next one reports or ends it."""

    commit: str  # the target
    backup: str  # the reference to the previous content
    head: str  # the branch's previous tip
    undo: bool = False  # it restores the work that an earlier revert removed
    skipped: str = ""  # the task whose uncommitted work is put aside, because a person skipped it


@dataclass(frozen=True, slots=True)
class Plan:
    """The recorded plan of a module, and the part of the specification that it was made for."""

    dependencies: tuple[Dependency, ...] | None = None
    tree: TaskTree = field(default_factory=TaskTree)
    selected: str | None = None  # component id
    sections: Mapping[str, str] = field(default_factory=dict)  # path → hash when the plan was made
    criteria: Mapping[str, str] = field(default_factory=dict)  # id → text, as step 3 recorded them
    original_scope: int | None = None
    planned_tasks: int = 0
    replan: Step | None = None  # drift: this planning step must be recorded again
    made_for: str = ""  # the hash of the specification that step 1 wrote, and recorded this plan for

    @property
    def component(self) -> Component | None:
        """The selected component."""
        return self.tree.component(self.selected) if self.selected else None


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The counts of a session that end in a pause, and the person's allowances beyond them."""

    iterations: int = 0
    iterations_granted: int = 0
    max_cost_usd: float | None = None  # the last `--max-cost`; None: the settings' value
    group: str = ""  # the modules that share one budget, whose money `max_cost_usd` is then
    confirmed: tuple[Reason, ...] = ()  # by a person
    rejected: str = ""  # the hash of the evidence whose rejection was the last to count as an attempt
    boundary_failures: int = 0  # consecutive failed verifications of a component
    module_failures: int = 0  # consecutive failed verifications of the module
    step_failures: int = 0  # consecutive failures of a planning step
    context_level: int = 0  # 0: full size; each context overflow makes the next prompt smaller

    @property
    def confirmed_tasks(self) -> int:
        """The number of added tasks up to which a person confirmed that the run goes on."""
        return max((r.added for r in self.confirmed if isinstance(r, AddedTasks)), default=0)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The messages of the person and of lopen to the model, and the model's questions."""

    request: str = ""  # the person's words for the module
    clarifications: int = 0  # questions that the model asked
    answers: tuple[tuple[str, str], ...] = ()  # question (or `GUIDANCE`) and answer of the person
    assumptions: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()  # undecided verdicts that a person accepted, with their notes
    corrections: tuple[str, ...] = ()  # for the model's next prompt
    notes: tuple[str, ...] = ()  # a person's notes, reverts and drift, shown to the model once
    refused: tuple[str, str] = (
        "",
        "",
    )  # the last conversation's subject, and the part of its work that lopen refused

    def answer_to(self, question: str) -> str | None:
        """Return the person's latest answer to the question, None where there is none."""
        same = (answer for asked, answer in reversed(self.answers) if asked.split() == question.split())
        return next(same, None)


@dataclass(frozen=True, slots=True)
class Intents:
    """Changes of the repository that are recorded before they are made."""

    commit: CommitIntent | None = None
    revert: RevertIntent | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The state of one module on its way through the workflow; `lopen.workflow.changes` changes it."""

    id: str
    module: str
    created_at: datetime
    step: Step = Step.DRAFT_SPECIFICATION
    status: Status = "running"
    pause: Pause | None = None
    approval: Approval | None = None
    branch: str | None = None
    start_branch: str | None = None  # the branch that HEAD was on before, for the merge command
    start_commit: str | None = None
    plan: Plan = field(default_factory=Plan)
    limits: SessionLimits = field(default_factory=SessionLimits)
    dialogue: Dialogue = field(default_factory=Dialogue)
    intents: Intents = field(default_factory=Intents)
    commands_started: str = ""  # the hash of the verify commands that were seen to start

    @property
    def finished(self) -> bool:
        """True if the session is complete."""
        return self.status == "complete"

    @property
    def tree(self) -> TaskTree:
        """The plan's components and tasks."""
        return self.plan.tree

    @property
    def task(self) -> Task | None:
        """The task in progress in the selected component."""
        component = self.plan.component
        if component is None:
            return None
        return next((t for t in component.tasks if t.state is State.IN_PROGRESS), None)

    @property
    def step_reasons(self) -> tuple[str, ...]:
        """The reasons of the planning step's failures in a row, without the guardrails' additions."""
        failures = [c for c in self.dialogue.corrections if c.startswith(ATTEMPT_FAILED)]
        return tuple(c.removeprefix(ATTEMPT_FAILED) for c in failures)
