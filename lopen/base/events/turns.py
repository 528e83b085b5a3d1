"""Events of a conversation: the model's turns, its tool calls, verifications and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopen.base.events.event import Event


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    name: ClassVar[str] = "turn_started"
    durable: ClassVar[bool] = False
    turn: int
    model: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class ModelText(Event):
    """A piece of visible text from the stream."""

    name: ClassVar[str] = "model_text"
    durable: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class ModelInput(Event):
    """A piece of a tool's input from the stream, as JSON text that is not whole yet. No view prints it."""

    name: ClassVar[str] = "model_input"
    durable: ClassVar[bool] = False
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded(Event):
    name: ClassVar[str] = "turn_ended"
    turn: int
    model: str
    stop_reason: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    seconds: float
    text: str = ""
    purpose: str = "turn"


@dataclass(frozen=True, slots=True)
class ModelRetry(Event):
    name: ClassVar[str] = "model_retry"
    reason: str
    attempt: int
    wait_s: float
    retries: int = 0  # that the policy allows; 0 in events of earlier versions


@dataclass(frozen=True, slots=True)
class ModelFallback(Event):
    name: ClassVar[str] = "model_fallback"
    reason: str
    from_model: str
    to_model: str


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    name: ClassVar[str] = "tool_started"
    durable: ClassVar[bool] = False
    call: str
    tool: str
    summary: str


@dataclass(frozen=True, slots=True)
class ToolEnded(Event):
    """`outcome`: "ok", "failed" (a command did), "error", "refused" or "timeout". `number` is that of the call in the audit trail."""

    name: ClassVar[str] = "tool_ended"
    call: str
    tool: str
    summary: str
    outcome: str
    seconds: float
    error: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class ProgressReported(Event):
    """The model's text about its work: data, escaped for display."""

    name: ClassVar[str] = "progress_reported"
    message: str


@dataclass(frozen=True, slots=True)
class VerificationRan(Event):
    """`output` is the end of what the command printed; all that is kept of it is stored under `number`."""

    name: ClassVar[str] = "verification_ran"
    tool: str
    command: str
    passed: bool
    exit_code: int | None
    seconds: float
    number: int = 0
    output: str = ""


@dataclass(frozen=True, slots=True)
class VerdictGiven(Event):
    name: ClassVar[str] = "verdict_given"
    scope: str
    subject: str
    passed: bool
    confidence: str
    summary: str
    findings: int
    cached: bool = False
    evidence_hash: str = ""
