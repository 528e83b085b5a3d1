"""Events as typed, frozen values in one stream for the terminal, JSON lines, log, metrics and dashboard.

Events report and never expect an answer. `to_json` defines the format of `--json` lines and of the log. Standard
library only, because every command loads this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Event:
    """An event. `name` is its public name; the fields are JSON values."""

    name: ClassVar[str] = "event"
    durable: ClassVar[bool] = True  # True: stored in the session's history, not only displayed

    def body(self) -> str:
        """Return the event's own fields as one JSON object on one line."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        text = json.dumps(own, ensure_ascii=False, default=_as_json)
        # A path's byte that is not UTF-8 is kept as JSON escapes it.
        return text.encode("utf-8", "backslashreplace").decode()


def _as_json(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its time and session, for subscribers. `seq` orders a session's history (0: not stored).

    `body`: the stored fields without secrets; "" if the event is not stored.
    """

    ts: datetime
    session: str
    event: Event
    seq: int = 0
    body: str = ""

    def to_json(self) -> str:
        """Return the event's `json_line`."""
        return json_line(self.ts, self.event.name, self.session, self.body or self.event.body())


def json_line(ts: datetime, name: str, session: str, body: str) -> str:
    """Return one JSON object on one line: `ts`, `event`, `session`, then the event's own fields, the object in `body`."""
    time = ts.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = json.dumps({"ts": time, "event": name, "session": session}, ensure_ascii=False)
    return head[:-1] + (", " if len(body) > len("{}") else "") + body[1:]


Subscriber = Callable[[Recorded], None]


@dataclass(frozen=True, slots=True)
class SessionStarted(Event):
    name: ClassVar[str] = "session_started"
    module: str
    step: str
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SessionPaused(Event):
    """`output` is the verdict that led to it, and the end of the last verification, where they failed."""

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
    tokens: int | None  # None: unknown, and so is the cost
    branch: str
    assumptions: tuple[str, ...] = ()
    unpriced_tokens: int = 0  # part of `tokens`, without a known price and so not in `cost_usd`
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
    undo: bool = False  # it restored the work that an earlier revert removed
    verified: tuple[str, ...] = ()  # components that were verified before it
    complete: bool = False  # and the module was complete
    skipped: str = ""  # the task that a person skipped, whose uncommitted work alone was put aside, if any


@dataclass(frozen=True, slots=True)
class QuestionAsked(Event):
    name: ClassVar[str] = "question_asked"
    question: str
    options: tuple[str, ...]
    default: str
    answer: str = ""
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class GuidanceGiven(Event):
    name: ClassVar[str] = "guidance_given"
    text: str  # a person's words, which the model gets with its next turn


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
    longest_s: float = 0.0  # of all waits that are left


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
class VerificationRan(Event):
    """`output` is the end of the command's output; the stored output has the number `number`."""

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
    """`findings` is their number; `reasons` are those of a verdict that did not pass, each on a line for people."""

    name: ClassVar[str] = "verdict_given"
    scope: str
    subject: str
    passed: bool
    confidence: str
    summary: str
    findings: int
    cached: bool = False
    evidence_hash: str = ""
    reasons: tuple[str, ...] = ()
    outcome: str = ""  # "passed", "rejected" or "cannot tell"


@dataclass(frozen=True, slots=True)
class GuardrailRaised(Event):
    name: ClassVar[str] = "guardrail"
    guard: str
    verdict: Literal["warn", "block"]
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
class Waiting(Event):
    """lopen waits for `seconds` (a cooldown, a rate window)."""

    name: ClassVar[str] = "waiting"
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A message for the user. `level`: detail (only `-v` shows it), info, warning or error."""

    name: ClassVar[str] = "notice"
    level: Literal["detail", "info", "warning", "error"]
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ProgressTold(Event):
    """The progress of the running work; the next event of this kind replaces it."""

    name: ClassVar[str] = "progress"
    durable: ClassVar[bool] = False
    text: str


EVENTS: Mapping[str, type[Event]] = {cls.name: cls for cls in Event.__subclasses__()}


def from_fields(name: str, values: Mapping[str, Any]) -> Event:
    """Return the event of that name from stored fields; an unknown name (from a newer version) becomes a notice."""
    cls = EVENTS.get(name)
    if cls is None:
        return Notice("info", f"{name}: {json.dumps(dict(values), default=str)}")
    known = {f.name for f in fields(cls)}
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known})
