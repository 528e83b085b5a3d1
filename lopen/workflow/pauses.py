"""The reasons why a session waits, as values: what is stored is what is shown, answered and taken up. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PauseKind = Literal[
    "gate",
    "confirmation",
    "question",
    "budget",
    "circuit",
    "iterations",
    "endpoint",
    "guardrail",
    "interrupted",
    "person",
    "branch",
]


@dataclass(frozen=True, slots=True)
class FailuresInRow:
    """So many failures in a row of a task, or of a planning step."""

    subject: str
    failures: int
    kind: Literal["failures"] = "failures"


@dataclass(frozen=True, slots=True)
class FailedBoundaries:
    """So many failed verifications of a component or the module in a row."""

    failures: int
    kind: Literal["boundaries"] = "boundaries"


@dataclass(frozen=True, slots=True)
class AddedTasks:
    """So many tasks that were added to the planned ones."""

    added: int
    kind: Literal["added"] = "added"


@dataclass(frozen=True, slots=True)
class BudgetThreshold:
    """The module's budget is past its confirmation threshold."""

    kind: Literal["budget"] = "budget"


@dataclass(frozen=True, slots=True)
class UndecidedVerdict:
    """Evidence of which no model could tell whether it passes, for a scope of this breadth."""

    evidence_hash: str
    breadth: int
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True, slots=True)
class ChangedSetup:
    """A state of the files that decide what verify-setup installs; `key` is its hash."""

    key: str
    kind: Literal["setup"] = "setup"


Reason = FailuresInRow | FailedBoundaries | AddedTasks | BudgetThreshold | UndecidedVerdict | ChangedSetup


@dataclass(frozen=True, slots=True)
class Gate:
    """A specification needs a person's approval."""

    module: str
    message: str
    kind: Literal["gate"] = "gate"

    @property
    def command(self) -> str:
        return f"lopen approve {self.module} --run"


@dataclass(frozen=True, slots=True)
class Question:
    """The model's question, with a person's answer once there is one."""

    session: str
    text: str
    options: tuple[str, ...]
    default: str
    answer: str | None = None
    kind: Literal["question"] = "question"

    @property
    def message(self) -> str:
        if self.answer is not None:
            return f"you answered {self.answer!r} to: {self.text}"
        choice = f" [{' / '.join(self.options)}]" if self.options else ""
        return f"the model asks: {self.text}{choice} (default: {self.default})"

    @property
    def command(self) -> str:
        """The command that answers with the default, so that it can be pasted."""
        if self.answer is not None:
            return f"lopen resume {self.session}"
        return f"lopen answer {self.session} {shlex.quote(' '.join(self.default.split()) or 'TEXT')}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A person must confirm `reason` before lopen goes on."""

    session: str
    reason: Reason
    message: str
    kind: Literal["confirmation"] = "confirmation"

    @property
    def command(self) -> str:
        return f"lopen confirm {self.session}"


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A budget is used up; `command` extends it."""

    message: str
    command: str
    kind: Literal["budget"] = "budget"


@dataclass(frozen=True, slots=True)
class CircuitOpen:
    """A circuit is open; `acknowledge` is the command that closes it, "" where it closes by itself."""

    session: str
    message: str
    acknowledge: str = ""
    kind: Literal["circuit"] = "circuit"

    @property
    def command(self) -> str:
        return self.acknowledge or f"lopen resume {self.session}"


@dataclass(frozen=True, slots=True)
class IterationsUsed:
    """The session used all granted iterations."""

    session: str
    iterations: int
    kind: Literal["iterations"] = "iterations"

    @property
    def message(self) -> str:
        return f"the session used all {self.iterations} iterations"

    @property
    def command(self) -> str:
        return f"lopen resume {self.session}"


@dataclass(frozen=True, slots=True)
class EndpointUnreachable:
    """No model can be reached, or the endpoint asks for a wait until then."""

    session: str
    cause: str
    until: datetime | None = None
    kind: Literal["endpoint"] = "endpoint"

    @property
    def message(self) -> str:
        when = f"after {self.until:%Y-%m-%d %H:%M} UTC" if self.until else "when it is available again"
        return f"the model cannot be reached ({self.cause}); continue {when}"

    @property
    def command(self) -> str:
        return f"lopen resume {self.session}"


@dataclass(frozen=True, slots=True)
class Blocked:
    """A guardrail ended the run; `command` goes on."""

    message: str
    command: str
    kind: Literal["guardrail"] = "guardrail"


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal ended the run."""

    session: str
    kind: Literal["interrupted"] = "interrupted"

    @property
    def message(self) -> str:
        return "interrupted; everything is saved"

    @property
    def command(self) -> str:
        return f"lopen resume {self.session}"


@dataclass(frozen=True, slots=True)
class PausedByPerson:
    """A person asked the run to pause."""

    session: str
    kind: Literal["person"] = "person"

    @property
    def message(self) -> str:
        return "you paused it; everything is saved"

    @property
    def command(self) -> str:
        return f"lopen resume {self.session}"


@dataclass(frozen=True, slots=True)
class BranchMoved:
    """The person moved the module's branch, or their checkout stands on it; `command` is the way on."""

    message: str
    command: str
    kind: Literal["branch"] = "branch"


Pause = (
    Gate
    | Question
    | Confirmation
    | LimitReached
    | CircuitOpen
    | IterationsUsed
    | EndpointUnreachable
    | Blocked
    | Interrupted
    | PausedByPerson
    | BranchMoved
)


def waits_for_answer(pause: Pause | None) -> bool:
    """Return True if only a person's answer ends the pause; the next run asks again whatever has changed.

    What depends on files and limits as they are now is looked at again, and asked again only where it still holds.
    """
    match pause:
        case Question():
            return True
        case Confirmation():
            return isinstance(pause.reason, FailuresInRow | FailedBoundaries | AddedTasks)
        case _:
            return False
