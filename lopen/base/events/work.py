"""Events of the work: sessions, steps, the plan, tasks, commits and questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopen.base.events.event import Event


@dataclass(frozen=True, slots=True)
class SessionStarted(Event):
    name: ClassVar[str] = "session_started"
    module: str
    step: str
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SessionPaused(Event):
    """`output` is the end of the last verification, if it failed."""

    name: ClassVar[str] = "session_paused"
    kind: str
    message: str
    command: str
    output: str = ""


@dataclass(frozen=True, slots=True)
class SessionFailed(Event):
    name: ClassVar[str] = "session_failed"
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SessionComplete(Event):
    name: ClassVar[str] = "session_complete"
    module: str
    components: int
    tasks: int
    commits: int
    cost_usd: float | None
    tokens: int
    branch: str
    merge_command: str
    assumptions: tuple[str, ...] = ()
    unpriced_tokens: int = 0  # those of `tokens` without a known price, which `cost_usd` does not include
    accepted: tuple[str, ...] = ()  # undecided verdicts that a person accepted
    answers: tuple[str, ...] = ()  # a person's, each with its question


@dataclass(frozen=True, slots=True)
class StepEntered(Event):
    """`reason` is the trigger's name, or "assessment"."""

    name: ClassVar[str] = "step_entered"
    step: str
    number: int
    phase: str
    reason: str


@dataclass(frozen=True, slots=True)
class IterationStarted(Event):
    name: ClassVar[str] = "iteration_started"
    iteration: int
    step: str
    model: str
    component: str = ""
    task: str = ""
    task_name: str = ""


@dataclass(frozen=True, slots=True)
class IterationEnded(Event):
    name: ClassVar[str] = "iteration_ended"
    iteration: int
    outcome: str
    reason: str = ""
    turns: int = 0


@dataclass(frozen=True, slots=True)
class SpecApproved(Event):
    name: ClassVar[str] = "spec_approved"
    who: str
    note: str
    spec_hash: str


@dataclass(frozen=True, slots=True)
class DriftFound(Event):
    name: ClassVar[str] = "drift"
    changed: tuple[str, ...]
    new: tuple[str, ...]
    removed: tuple[str, ...]
    effect: str


@dataclass(frozen=True, slots=True)
class PlanRecorded(Event):
    """`what`: dependencies, components, component, tasks; `names` are the recorded ones."""

    name: ClassVar[str] = "plan_recorded"
    what: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskChanged(Event):
    name: ClassVar[str] = "task_changed"
    task: str
    task_name: str
    component: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ComponentComplete(Event):
    name: ClassVar[str] = "component_complete"
    component: str
    component_name: str


@dataclass(frozen=True, slots=True)
class Committed(Event):
    name: ClassVar[str] = "committed"
    commit: str
    subject: str
    branch: str
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Reverted(Event):
    name: ClassVar[str] = "reverted"
    to: str
    backup: str
    reopened: tuple[str, ...]
    restored: tuple[str, ...] = ()
    undo: bool = False  # it restored what an earlier one removed


@dataclass(frozen=True, slots=True)
class QuestionAsked(Event):
    name: ClassVar[str] = "question_asked"
    question: str
    options: tuple[str, ...]
    default: str
    answer: str = ""
    assumed: bool = False
