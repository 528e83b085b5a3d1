"""Events as typed, frozen values in one stream for the terminal, JSON lines, log, metrics and dashboard.

Those of the work (sessions, steps, the plan, tasks, commits, questions) stand here, the others in `event`.
Events report and never expect an answer. `to_json` defines the format of `--json` lines and of the log. Standard
library only, because every command loads this package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from lopen.core.events.event import (
    AlertRaised,
    CircuitChanged,
    EscalationChanged,
    Event,
    GuardrailRaised,
    ModelFallback,
    ModelInput,
    ModelRetry,
    ModelText,
    Notice,
    ProgressReported,
    Recorded,
    Subscriber,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    VerdictGiven,
    VerificationRan,
    Waiting,
)

__all__ = [
    "EVENTS",
    "AlertRaised",
    "CircuitChanged",
    "Committed",
    "ComponentComplete",
    "DriftFound",
    "EscalationChanged",
    "Event",
    "GuardrailRaised",
    "IterationEnded",
    "IterationStarted",
    "ModelFallback",
    "ModelInput",
    "ModelRetry",
    "ModelText",
    "Notice",
    "PlanRecorded",
    "ProgressReported",
    "QuestionAsked",
    "Recorded",
    "Reverted",
    "SessionComplete",
    "SessionFailed",
    "SessionPaused",
    "SessionStarted",
    "SpecApproved",
    "StepEntered",
    "Subscriber",
    "TaskChanged",
    "ToolEnded",
    "ToolStarted",
    "TurnEnded",
    "TurnStarted",
    "VerdictGiven",
    "VerificationRan",
    "Waiting",
    "from_fields",
]


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


EVENTS: Mapping[str, type[Event]] = {cls.name: cls for cls in Event.__subclasses__()}


def from_fields(name: str, values: Mapping[str, Any]) -> Event:
    """Return the event of that name from stored fields; an unknown name (from a newer version) becomes a notice."""
    cls = EVENTS.get(name)
    if cls is None:
        return Notice("info", f"{name}: {json.dumps(dict(values), default=str)}")
    known = {f.name for f in fields(cls)}
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known})
