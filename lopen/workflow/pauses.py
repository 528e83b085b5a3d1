"""The messages of pauses and the commands that continue after them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime

from lopen.workflow.next_step import Scope
from lopen.workflow.session import BOUNDARY, Pause, Question, Session
from lopen.workflow.task_tree import Component


def gate_pause(module: str, reason: str) -> Pause:
    """Return the pause for a specification that needs a person's approval."""
    return Pause("gate", reason, f"lopen approve {module} --run")


def endpoint_pause(session: Session, message: str, until: datetime | None) -> Pause:
    """Return the pause for an endpoint that is not reachable or asks for a long wait."""
    when = f"after {until:%Y-%m-%d %H:%M} UTC" if until else "when it is available again"
    return Pause(
        "endpoint", f"the model cannot be reached ({message}); continue {when}", f"lopen resume {session.id}"
    )


def circuit_pause(session: Session, message: str, command: str) -> Pause:
    """Return the pause for an open circuit that only a person closes."""
    return Pause("circuit", message, command or f"lopen resume {session.id}")


def iterations_pause(session: Session) -> Pause:
    """Return the pause for a session that used all granted iterations."""
    return Pause(
        "iterations",
        f"the session used all {session.limits.iterations} iterations",
        f"lopen resume {session.id}",
    )


def confirmation_pause(session: Session, subject: str, level: int, reason: str) -> Pause:
    """Return the pause for something that a person must confirm."""
    return Pause("confirmation", reason, confirm_command(session), subject=subject, level=level)


def question_pause(session: Session, question: Question) -> Pause:
    """Return the pause for the model's question; the command answers with the default, so that it can be pasted."""
    choice = f" [{' / '.join(question.options)}]" if question.options else ""
    given = shlex.quote(" ".join(question.default.split()) or "TEXT")
    return Pause(
        "question",
        f"the model asks: {question.text}{choice} (default: {question.default})",
        f"lopen answer {session.id} {given}",
    )


def confirm_command(session: Session) -> str:
    return f"lopen confirm {session.id}"


def interrupted_pause(session: Session) -> Pause:
    """Return the pause for a run that a signal ended."""
    return Pause("interrupted", "interrupted; everything is saved", f"lopen resume {session.id}")


def person_pause(session: Session) -> Pause:
    """Return the pause that a person asked for with `lopen pause`."""
    return Pause("person", "you paused it; everything is saved", f"lopen resume {session.id}")


def verdict_pause(session: Session, evidence_hash: str, level: int, what: str, summary: str) -> Pause:
    """Return the pause for a verdict of which neither oracle model could tell whether it passes."""
    why = f"the oracle could not tell whether {what} is complete: {summary}; look at it, then accept it"
    return confirmation_pause(session, f"{VERDICT}{evidence_hash}", level, why)


def idle_pause(session: Session) -> Pause:
    """Return the pause for a run that came back to the same state without any change."""
    return Pause(
        "guardrail",
        f"the last iterations changed nothing, and the next would not either (step {session.step.value}); look at "
        f"`lopen log {session.id}`, or plan the module again",
        f"lopen plan {session.module} --new",
    )


def stuck_pause(session: Session, remaining: Sequence[Component]) -> Pause:
    """Return the pause for remaining components that are given up or depend on such a component."""
    names = ", ".join(c.name for c in remaining)
    criteria = ", ".join(i for c in remaining for i in c.criteria) or "none"
    return Pause(
        "guardrail",
        f"not complete: {names} cannot continue because tasks were given up; open criteria: {criteria}; "
        "a new session plans the remaining work",
        f"lopen run {session.module} --new",
    )


def scope_pause(session: Session, scope: Scope) -> Pause:
    """Return the pause for a verified module with less than the planned scope, or without a known scope."""
    known = "unknown" if scope.original is None else str(scope.original)
    return Pause(
        "guardrail",
        f"scope_continuity: {scope.completed} criteria and components are complete, the original scope is {known}; "
        "plan the module again so that the scope is recorded",
        f"lopen plan {session.module} --new",
    )


FAILURES_TO_ASK = 3
ADDED = "added"  # the confirmed level is the number of added tasks
VERDICT = "verdict:"  # the hash of the evidence follows; the confirmed level is the breadth of the scope


def review_pause(session: Session) -> Pause | None:
    """Return the pause for a person's review before lopen spends more, None if there is no reason for one."""
    failed = session.limits.failed_boundaries
    if failed >= session.limits.confirmed.get(BOUNDARY, 0) + FAILURES_TO_ASK:
        return confirmation_pause(
            session, BOUNDARY, failed, f"{failed} boundary verifications failed in a row"
        )
    added = sum(t.added for t in session.tree.tasks)
    planned = session.plan.planned_tasks
    if added > max(planned, 1) + session.limits.confirmed.get(ADDED, 0):
        return confirmation_pause(
            session, ADDED, added, f"{added} tasks were added to {planned} planned ones"
        )
    return None
