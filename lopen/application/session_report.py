"""Modules and sessions as plain objects, for `--json` and for the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lopen.application.open_store import store_of
from lopen.limits.budgets.budget import BudgetState
from lopen.storage.archives import ArchivedSession
from lopen.storage.sessions import SessionStore
from lopen.workflow.assess import displayed_step, scope_of
from lopen.workflow.session import Session
from lopen.workflow.steps import Step, phase_of
from lopen.workflow.task_tree import progress


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
        "iterations": {"used": session.iterations, "granted": session.iterations_granted},
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
        "answers": [{"question": asked, "answer": answer} for asked, answer in session.answers],
        "assumptions": list(session.assumptions),
        "accepted": list(session.accepted),
        "waiting": _waiting(session),
    }


def session_summary(session: Session) -> dict[str, Any]:
    """Return a session as one row of a list."""
    done = progress(session.tree)
    return {
        "session": session.id,
        "module": session.module,
        "status": session.status,
        "step": displayed_step(session).value,
        "created_at": _second(session.created_at),
        "tasks_done": done.tasks_done,
        "tasks": done.tasks,
        "waiting": _waiting(session),
    }


def archived_summary(old: ArchivedSession) -> dict[str, Any]:
    """Return an archived session as one row of a list."""
    return {
        "session": old.session,
        "module": old.module,
        "status": "archived",
        "step": Step.REPEAT.value,
        "created_at": _second(old.created_at),
        "tasks_done": old.tasks_done,
        "tasks": old.tasks,
        "waiting": None,
    }


def _second(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _waiting(session: Session) -> dict[str, str] | None:
    pause = session.pause
    if pause is None:
        return None
    return {"kind": pause.kind, "message": pause.message, "command": pause.command}


def module_object(store: SessionStore, name: str, budget: BudgetState | None) -> dict[str, Any]:
    """Return a module: its state, its progress, and its budget's tokens and cost."""
    session = store_of(store, name).latest(module=name)
    done = progress(session.tree) if session else None
    approved = store.approval(name) is not None
    return {
        "session": session.id if session else "",
        "module": name,
        "state": session.status if session else ("approved" if approved else "specified"),
        "step": displayed_step(session).value if session else None,
        "tasks_done": done.tasks_done if done else 0,
        "tasks": done.tasks if done else 0,
        "tokens": budget.tokens_used if budget else 0,
        "cost_usd": budget.cost_usd if budget else 0.0,
        "unpriced_tokens": budget.unpriced_tokens if budget else 0,
    }
