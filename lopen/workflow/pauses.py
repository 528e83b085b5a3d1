"""Why a run waits, in words, and the command that lets it go on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lopen.workflow.assess import Scope
from lopen.workflow.session import Pause, Session
from lopen.workflow.task_tree import Component


def gate_pause(module: str, why: str) -> Pause:
    """A specification wants a person's approval."""
    return Pause("gate", why, f"lopen approve {module} --run")


def endpoint_pause(session: Session, message: str, until: datetime | None) -> Pause:
    """The endpoint cannot be reached, or asked to wait long."""
    when = f"after {until:%Y-%m-%d %H:%M} UTC" if until else "when it is back"
    return Pause(
        "endpoint", f"the model cannot be reached ({message}); go on {when}", f"lopen resume {session.id}"
    )


def circuit_pause(session: Session, message: str, command: str) -> Pause:
    """A circuit is open that only a person closes."""
    return Pause("circuit", message, command or f"lopen resume {session.id}")


def iterations_pause(session: Session) -> Pause:
    """The granted iterations are used up."""
    return Pause(
        "iterations",
        f"{session.iterations} iterations are used up",
        f"lopen resume {session.id}",
    )


def confirmation_pause(session: Session, subject: str, level: int, why: str) -> Pause:
    """Something wants a person's word before the run goes on."""
    return Pause("confirmation", why, confirm_command(session), subject=subject, level=level)


def confirm_command(session: Session) -> str:
    return f"lopen confirm {session.id}"


def interrupted_pause(session: Session) -> Pause:
    """A signal ended the run; everything is saved."""
    return Pause("interrupted", "interrupted; everything is saved", f"lopen resume {session.id}")


def stuck_pause(session: Session, left: Sequence[Component]) -> Pause:
    """What is left was given up, or waits for what was given up."""
    names = ", ".join(c.name for c in left)
    criteria = ", ".join(i for c in left for i in c.criteria) or "none"
    return Pause(
        "guardrail",
        f"not complete: {names} cannot go on because tasks were given up; open criteria: {criteria}; "
        "a new session plans what is left",
        f"lopen run {session.module} --new",
    )


def scope_pause(session: Session, scope: Scope) -> Pause:
    """Everything is verified, and yet less than was planned, or nobody knows how much was."""
    known = "unknown" if scope.original is None else str(scope.original)
    return Pause(
        "guardrail",
        f"scope_continuity: {scope.completed} criteria and components are complete, the original scope is {known}; "
        "plan the module again so that the scope is recorded",
        f"lopen plan {session.module} --new",
    )


FAILURES_TO_ASK = 3
BOUNDARY = "boundary"  # what a person confirms after failed boundaries: the failures in a row
ADDED = "added"  # what a person confirms after much added work: the number of added tasks


def asks(session: Session) -> Pause | None:
    """The pause that asks a person to look before more is spent; None if nothing speaks for it."""
    failed = session.failed_boundaries
    if failed >= session.confirmed.get(BOUNDARY, 0) + FAILURES_TO_ASK:
        return confirmation_pause(
            session, BOUNDARY, failed, f"{failed} boundary verifications failed in a row"
        )
    added = sum(t.added for t in session.tree.tasks)
    planned = session.planned_tasks
    if added > max(planned, 1) + session.confirmed.get(ADDED, 0):
        return confirmation_pause(
            session, ADDED, added, f"{added} tasks were added to {planned} planned ones"
        )
    return None
