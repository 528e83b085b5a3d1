"""Reports on modules and sessions for every shell: plain objects for `--json` and the API, and what a session waits for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lopen.application.open_store import store_of
from lopen.core.errors import LopenError
from lopen.core.events import Reverted, SessionFailed, from_fields
from lopen.judge.verdict import established, verdict_from_json
from lopen.limits.budget import BudgetState
from lopen.store.archives import ArchivedSession
from lopen.store.audit import last_failure
from lopen.store.folder import is_worked_on
from lopen.store.sessions import SessionStore
from lopen.workflow.next_step import displayed_step, scope_of, standing_work
from lopen.workflow.pauses import Question
from lopen.workflow.session import Session
from lopen.workflow.steps import Step, phase_of
from lopen.workflow.task_tree import progress


@dataclass(frozen=True, slots=True)
class CriterionState:
    """An acceptance criterion as the latest verdict sees it; `open`: that verdict does not name it, or there is none."""

    id: str
    text: str
    holds: Literal["yes", "no", "cannot_tell", "open"] = "open"
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class RemovedWork:
    """The work that a person's reverts removed: the time of the revert by task, without those restored since."""

    session: Session
    at: Mapping[str, str]

    def includes(self, subject: str | None, given_at: str) -> bool:
        """Return True if what was judged or verified then, a task, component or the module (None), was removed since."""
        component = self.session.tree.component(subject or "")
        tasks = {t.id for t in component.tasks} if component else {subject}
        whole = subject in (None, self.session.module)
        return any(given_at <= at for task, at in self.at.items() if whole or task in tasks)


def removed_work(store: SessionStore, session: Session) -> RemovedWork:
    """Return what reverts removed from the session."""
    removed: dict[str, str] = {}
    for at, event in reverts(store, session):
        removed |= dict.fromkeys(event.reopened, at)
        removed = {task: then for task, then in removed.items() if task not in event.restored}
    return RemovedWork(session, removed)


def reverts(store: SessionStore, session: Session) -> list[tuple[str, Reverted]]:
    """Return the session's reverts with their times, oldest first."""
    rows = store.database.connection.execute(
        "SELECT ts, body FROM events WHERE session=? AND name=? ORDER BY seq", (session.id, Reverted.name)
    )
    return [(row["ts"], Reverted(**json.loads(row["body"]))) for row in rows]


def present_verdicts(store: SessionStore, session: Session) -> list[dict[str, Any]]:
    """Return the verdicts, oldest first, without those on work that a revert removed."""
    removed = removed_work(store, session)
    return [v for v in store.verdicts(session.id) if not removed.includes(v["subject"], v["given_at"])]


def held_criteria(session: Session, verdicts: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of the criteria to which accepted verdicts on work that stands said `yes`."""
    return (
        established(map(verdict_from_json, verdicts), standing_work(session)) & session.plan.criteria.keys()
    )


def criterion_states(
    session: Session, verdicts: Sequence[Mapping[str, Any]], wanted: Iterable[str]
) -> Iterable[CriterionState]:
    """Yield the wanted criteria of the session with what the verdicts, oldest first, found of each."""
    judged: dict[str, Any] = {c["id"]: c for v in verdicts for c in v.get("criteria", ())}
    held = held_criteria(session, verdicts)
    for name in wanted:
        found: dict[str, Any] = judged.get(name, {"holds": "open", "evidence": ""})
        if name in held:
            found = found | {"holds": "yes"}
        elif found["holds"] == "yes":  # of a verdict that did not pass, or on work that was taken back
            found = found | {"holds": "open"}
        yield CriterionState(name, session.plan.criteria.get(name, ""), found["holds"], found["evidence"])


def session_object(store: SessionStore, session: Session) -> dict[str, Any]:
    """Return the status of a session for a program."""
    scope, verdicts = scope_of(session), store.verdicts(session.id)
    judged = {v["subject"]: v["passed"] for v in verdicts if v["scope"] == "task"}
    return {
        "session": session.id,
        "module": session.module,
        "status": session.status,
        "step": displayed_step(session).value,
        "phase": phase_of(displayed_step(session)),
        "iterations": {"used": session.limits.iterations, "granted": session.limits.iterations_granted},
        "scope": {"completed": scope.completed, "original": scope.original},
        "branch": session.branch,
        "components": [
            {
                "id": c.id,
                "name": c.name,
                "state": c.state.value,
                "criteria": list(c.criteria),
                "tasks": [
                    {
                        "id": t.id,
                        "name": t.name,
                        "state": t.state.value,
                        "commit": t.commit,
                        "failures": t.failures,
                        "judged": judged.get(t.id),
                    }
                    for t in c.tasks
                ],
            }
            for c in session.tree.components
        ],
        "verdicts": verdicts[-10:],
        "answers": [{"question": asked, "answer": answer} for asked, answer in session.dialogue.answers],
        "assumptions": list(session.dialogue.assumptions),
        "accepted": list(session.dialogue.accepted),
        "waiting": _waiting(session),
    }


def session_summary(session: Session | ArchivedSession) -> dict[str, Any]:
    """Return a session, archived or not, as one row of a list."""
    created = session.created_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    own: dict[str, Any]
    if isinstance(session, ArchivedSession):
        own = {"session": session.session, "status": "archived", "step": Step.REPEAT.value, "waiting": None}
        own |= {"tasks_done": session.tasks_done, "tasks": session.tasks}
    else:
        done = progress(session.tree)
        own = {"session": session.id, "status": session.status, "step": displayed_step(session).value}
        own |= {"tasks_done": done.tasks_done, "tasks": done.tasks, "waiting": _waiting(session)}
    return own | {"module": session.module, "created_at": created}


def _waiting(session: Session) -> dict[str, str] | None:
    pause = session.pause
    if pause is None or (isinstance(pause, Question) and pause.answer is not None):
        return None
    return {"kind": pause.kind, "message": pause.message, "command": pause.command}


def module_object(root: Path, store: SessionStore, name: str, budget: BudgetState | None) -> dict[str, Any]:
    """Return a module: its state, its progress, and its budget's tokens and cost."""
    session = store_of(store, name).latest(module=name)
    done = progress(session.tree) if session else None
    approved = store.approval(name) is not None
    return {
        "session": session.id if session else "",
        "module": name,
        "state": shown_status(root, session) if session else ("approved" if approved else "specified"),
        "step": displayed_step(session).value if session else None,
        "tasks_done": done.tasks_done if done else 0,
        "tasks": done.tasks if done else 0,
        "tokens": budget.tokens_used if budget else 0,
        "cost_usd": budget.cost_usd if budget else 0.0,
        "unpriced_tokens": budget.unpriced_tokens if budget else 0,
    }


INTERRUPTED = "the last run was interrupted; everything up to then is saved"


@dataclass(frozen=True, slots=True)
class Standstill:
    """The reason why an unfinished session does not run, how to mend it, and the command that continues it."""

    cause: str
    mend: str
    command: str


def standstill(root: Path, store: SessionStore, session: Session) -> Standstill | None:
    """Return what a session waits for; None if it is complete or a process works on it."""
    command, pause = f"lopen resume {session.id}", session.pause
    if pause is not None and pause.kind == "gate" and _approved(root, store, session):
        return Standstill("the specification is approved by now", "", command)
    if pause is not None:
        return Standstill(pause.message, "", pause.command)
    if session.status == "failed":
        return Standstill(*_newest_failure(store, session.id), command)
    if session.status == "paused":  # by a revert or a skip
        return Standstill("", "", command)
    if shown_status(root, session) != "interrupted":
        return None
    return Standstill(INTERRUPTED, "", command)


def standstill_lines(root: Path, store: SessionStore, session: Session) -> list[str]:
    """Return the same as lines for a person, which end the report on a session."""
    found = standstill(root, store, session)
    if found is None:
        return []
    label = "failed" if session.status == "failed" else "waits"
    lines = [f"{label}: {found.cause}"] if found.cause else []
    lines += [f"  {line}" for line in found.mend.splitlines()]
    if failure := last_failure(store.database, session.id):
        lines += failure.excerpt().splitlines()
    return [*lines, f"next: {found.command}"]


def shown_status(root: Path, session: Session) -> str:
    """Return the session's status; "interrupted" where it should run and no process works on it."""
    if session.status == "running" and not is_worked_on(root, session.module):
        return "interrupted"
    return session.status


def present_state(root: Path, store: SessionStore, session: Session) -> dict[str, Any]:
    """Return what has become of a session's record by now: its status, and what it waits for."""
    found, pause = standstill(root, store, session), session.pause
    kind = pause.kind if pause is not None else shown_status(root, session)
    waiting = None if found is None else {"kind": kind, "message": found.cause, "command": found.command}
    return {"status": shown_status(root, session), "waiting": waiting}


def _approved(root: Path, store: SessionStore, session: Session) -> bool:
    """Return True if a person approved the specification as it is now, after the run had stopped for that."""
    from lopen.specification.drift import section_hashes, spec_hash
    from lopen.specification.modules import spec_path
    from lopen.specification.spec import load_specification

    given = store.approval(session.module)
    if given is None:
        return False
    try:
        spec = load_specification(spec_path(root, session.module), module=session.module)
    except LopenError:
        return False
    return given.spec_hash == spec_hash(section_hashes(spec))


def _newest_failure(store: SessionStore, session_id: str) -> tuple[str, str]:
    """Return message and hint of the newest failure; empty if it is archived or unreadable."""
    row = store.database.connection.execute(
        "SELECT body FROM events WHERE session=? AND name=? ORDER BY seq DESC LIMIT 1",
        (session_id, SessionFailed.name),
    ).fetchone()
    with suppress(ValueError, TypeError):
        found = from_fields(SessionFailed.name, json.loads(row["body"])) if row else None
        if isinstance(found, SessionFailed):
            return found.message, found.hint
    return "", ""
