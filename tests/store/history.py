"""Sessions with a history, for what moves and archives them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lopen.core.events import Notice, ToolEnded, VerdictGiven
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.call_gate import announce_call
from lopen.limits.circuits import CircuitCall, RuleBook
from lopen.limits.sqlite_store import SqliteStore
from lopen.models.messages import Usage
from lopen.store.audit import AuditTrail
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Plan, Session
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.fakes import FakeClock
from tests.limits.conftest import charged

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def lived(
    store: SessionStore,
    session_id: str,
    *,
    calls: int = 3,
    module: str = "calc",
    task: str = "calc-t1",
    at: datetime = NOW,
    finished: bool = True,
) -> Session:
    """A session saved with a task, calls, events, a verdict, a budget and a circuit."""
    state = State.COMPLETE if finished else State.PENDING
    tree = TaskTree((Component("c1", "Core", tasks=(Task(task, "Write it", state=state),)),))
    session = Session(session_id, module, at, plan=Plan(tree=tree))
    journal = Journal(store, session, FakeClock(at), redact=str)
    journal.save(session)
    audit = AuditTrail(store.database, session_id, str)
    for n in range(calls):
        seq = audit.start(iteration=1, turn=n, task=task, tool="read_file", arguments={"path": f"{n}"}, at=at)
        audit.end(seq, seconds=0.1, outcome="ok")
        journal.tell(ToolEnded(f"call{n}", "read_file", f"{n}", "ok", 0.1))
    verdict = {"passed": True, "confidence": "high", "summary": "It holds.", "findings": []}
    store.remember_verdict(session_id, f"hash of {session_id}", "task", task, at, verdict)
    journal.tell(VerdictGiven("task", task, True, "high", "It holds.", 0), Notice("info", "the last word"))
    limits = SqliteStore(store.database)
    charge = Charge(1_000, Usage(900, 100), 1, 0.25, "builder", "claude-sonnet-5-5")
    specs = [BudgetSpec(f"session:{session_id}", "session", 1_100), BudgetSpec(f"task:{task}", "task", 9_000)]
    charged(limits, [*specs, BudgetSpec(f"module:{module}", "module", 0)], charge, at)
    circuit, call = f"session:{session_id}", CircuitCall("read_file", "same", "1")
    limits.atomically(lambda rows: announce_call(rows, circuit, call, at, RuleBook()))
    return journal.save(replace(journal.session, status="complete" if finished else "paused"))


def many(store: SessionStore, count: int, *, first: datetime = NOW) -> list[str]:
    """So many finished sessions, a minute apart; their ids, oldest first."""
    ids = []
    for n in range(1, count + 1):
        ids.append(f"calc-20260301-{n}")
        lived(store, ids[-1], task=f"calc-t{n}", at=first + timedelta(minutes=n))
    return ids
