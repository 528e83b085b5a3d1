"""Events as typed, frozen values in one stream for the terminal, JSON lines, log, metrics and dashboard.

Events report and never expect an answer. `to_json` defines the format of `--json` lines and of the log. Standard
library only, because every command loads this package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from lopen.base.events.event import Event, Recorded, Subscriber
from lopen.base.events.guards import (
    AlertRaised,
    CircuitChanged,
    EscalationChanged,
    GuardrailRaised,
    Notice,
    Waiting,
)
from lopen.base.events.turns import (
    ModelFallback,
    ModelInput,
    ModelRetry,
    ModelText,
    ProgressReported,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    VerdictGiven,
    VerificationRan,
)
from lopen.base.events.work import (
    Committed,
    ComponentComplete,
    DriftFound,
    IterationEnded,
    IterationStarted,
    PlanRecorded,
    QuestionAsked,
    Reverted,
    SessionComplete,
    SessionFailed,
    SessionPaused,
    SessionStarted,
    SpecApproved,
    StepEntered,
    TaskChanged,
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

EVENTS: Mapping[str, type[Event]] = {cls.name: cls for cls in Event.__subclasses__()}


def from_fields(name: str, values: Mapping[str, Any]) -> Event:
    """Return the event of that name from stored fields; an unknown name (from a newer version) becomes a notice."""
    cls = EVENTS.get(name)
    if cls is None:
        return Notice("info", f"{name}: {json.dumps(dict(values), default=str)}")
    known = {f.name for f in fields(cls)}
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known})
