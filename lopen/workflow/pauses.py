"""The reasons why a session waits, as values: one value is stored, shown, answered and taken up. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lopen.core.errors import WrongUsage
from lopen.workflow.steps import Step

HaltKind = Literal[
    "gate",
    "budget",
    "circuit",
    "iterations",
    "endpoint",
    "guardrail",
    "interrupted",
    "person",
    "branch",
]


BOUNDARIES = "boundaries"
"""The subject of failures for the verifications of components and of the module."""
OWN_SUBJECTS = frozenset({BOUNDARIES, *(step.value for step in Step)})  # of failures, beside the tasks


@dataclass(frozen=True, slots=True)
class FailuresInRow:
    """So many attempts in a row that were not accepted, at a task, at a planning step or at `BOUNDARIES`."""

    subject: str
    failures: int
    kind: Literal["failures"] = "failures"


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


Reason = FailuresInRow | AddedTasks | BudgetThreshold | UndecidedVerdict


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
    def is_numbered(self) -> bool:
        """True where a bare number means the option of that number; False where numbers are answers themselves."""
        return bool(self.options) and not any(told.isdecimal() for told in (*self.options, self.default))

    def chosen(self, text: str) -> str:
        """Return the answer that a person's words mean, in every shell; raise `WrongUsage` for a number of no option."""
        text = text.strip()
        if not (self.is_numbered and text.isdecimal()):
            return text
        if 1 <= int(text) <= len(self.options):
            return self.options[int(text) - 1]
        named = ", ".join(f"{number}. {option}" for number, option in enumerate(self.options, 1))
        raise WrongUsage(f"there is no option {text}; the options are: {named}")

    def taken_as(self, text: str) -> str:
        """Return what is said of an answer that is none of the offered options; "" of one that is."""
        if not self.options or text in (*self.options, self.default):
            return ""
        return f" (taken as your own words; offered: {', '.join(self.options)})"

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

    @property
    def ways(self) -> str:
        """The ways on after attempts that were not accepted, in one line for a shell; "" for another reason."""
        if not isinstance(self.reason, FailuresInRow):
            return ""
        subject, module = self.reason.subject, self.session.rsplit("-", 2)[0]
        skips = "" if subject in OWN_SUBJECTS else f"skip the task (lopen skip {subject}), "
        return (
            f"confirm {self.reason.failures} more attempts (--note TEXT tells the model what to do), {skips}"
            f"or change specs/{module}/SPECIFICATION.md (then: lopen approve {module} --run)"
        )


@dataclass(frozen=True, slots=True)
class Halt:
    """A reason that ended the run and asks nothing that the session records; `command` goes on once it is settled."""

    kind: HaltKind
    message: str
    command: str


Pause = Question | Confirmation | Halt


def not_accepted(session: str, subject: str, what: str, attempts: int, cause: str) -> Confirmation:
    """Return the pause after so many attempts in a row at `what` that were not accepted."""
    message = f"{what} was not accepted in {attempts} attempts: {cause}".rstrip(": .")
    return Confirmation(session, FailuresInRow(subject, attempts), message)


LOOK_AT_IT = "; look at it, then accept it"


def gate(module: str, message: str) -> Halt:
    """Return the pause for a specification that needs a person's approval."""
    return Halt("gate", message, f"lopen approve {module} --run")


def budget_reached(session: str, message: str, command: str, *, confirms: bool) -> Pause:
    """Return the pause for a budget that lets no request be made: a person confirms, or extends it."""
    if confirms:
        return Confirmation(session, BudgetThreshold(), message)
    return Halt("budget", message, command)


ACKNOWLEDGE = "; acknowledge it, then resume (-p TEXT tells the model another way)"  # said to a person


def circuit_open(session: str, message: str, acknowledge: str = "") -> Halt:
    """Return the pause for an open circuit; `acknowledge` closes it, "" where it closes by itself."""
    told = message + ACKNOWLEDGE if acknowledge else message
    return Halt("circuit", told, acknowledge or f"lopen resume {session}")


def iterations_used(session: str, iterations: int) -> Halt:
    """Return the pause for a session that used all granted iterations."""
    return Halt("iterations", f"the session used all {iterations} iterations", f"lopen resume {session}")


def endpoint_unreachable(session: str, cause: str, until: datetime | None = None) -> Halt:
    """Return the pause where no model can be reached, or the endpoint asks for a wait until then."""
    when = f"after {until:%Y-%m-%d %H:%M} UTC" if until else "when it is available again"
    return Halt(
        "endpoint", f"the model cannot be reached ({cause}); continue {when}", f"lopen resume {session}"
    )


def interrupted(session: str) -> Halt:
    """Return the pause for a run that a signal ended."""
    return Halt("interrupted", "interrupted; everything is saved", f"lopen resume {session}")


def pause_asked_for(session: str, why: str = "") -> Halt:
    """Return the pause that a person asked for, or for another reason the worker that stops."""
    return Halt("person", f"{why or 'you paused it'}; everything is saved", f"lopen resume {session}")


def waits_for_answer(pause: Pause | None) -> bool:
    """Return True if only a person's answer ends the pause.

    The next run checks every other reason against the present files and limits, and asks again only if it still holds.
    """
    match pause:
        case Question():
            return True
        case Confirmation():
            return isinstance(pause.reason, FailuresInRow | AddedTasks)
        case _:
            return False


def asks_now(pause: Pause | None) -> bool:
    """Return True for a question without an answer, and for the gate: a run that a signal ends leaves them open."""
    return (isinstance(pause, Question) and pause.answer is None) or (
        pause is not None and pause.kind == "gate"
    )
