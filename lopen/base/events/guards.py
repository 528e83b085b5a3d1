"""Events of guardrails, limits and waiting, and notices to the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lopen.base.events.event import Event


@dataclass(frozen=True, slots=True)
class GuardrailRaised(Event):
    name: ClassVar[str] = "guardrail"
    guard: str
    verdict: Literal["warn", "block"]
    reason: str
    action: str


@dataclass(frozen=True, slots=True)
class EscalationChanged(Event):
    """The consecutive failures of a task (or planning step) reached another escalation level, or ended."""

    name: ClassVar[str] = "escalation"
    subject: str
    subject_name: str
    before: str
    after: str
    failures: int
    reason: str
    action: str


@dataclass(frozen=True, slots=True)
class AlertRaised(Event):
    name: ClassVar[str] = "alert"
    alert_type: str
    budget_id: str
    message: str
    utilization: float = 0.0


@dataclass(frozen=True, slots=True)
class CircuitChanged(Event):
    name: ClassVar[str] = "circuit"
    circuit: str
    rule: str
    state: str
    reason: str
    until: str = ""


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """lopen waits for `seconds` (a cooldown, a rate window)."""

    name: ClassVar[str] = "waiting"
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A message for the user. `level`: info, warning or error."""

    name: ClassVar[str] = "notice"
    level: Literal["info", "warning", "error"]
    message: str
    hint: str = ""
