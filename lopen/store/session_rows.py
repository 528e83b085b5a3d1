"""Rows of a session: its task tree (one row per component and task), its approval, and the numbers in its ids.

Only changed rows are written. Session and task numbers are never reused, because commits carry them.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from lopen.core.person import holds, owner, sealed
from lopen.workflow.changes import with_tree
from lopen.workflow.session import Approval, Session
from lopen.workflow.task_tree import Component, Task, TaskTree


@cache  # made when first used: each takes milliseconds, and most commands need few of them
def _component() -> TypeAdapter[Component]:
    return TypeAdapter(Component)


@cache
def _task() -> TypeAdapter[Task]:
    return TypeAdapter(Task)


@cache
def _tasks() -> TypeAdapter[list[Task]]:
    return TypeAdapter(list[Task])


@cache
def _session() -> TypeAdapter[Session]:
    return TypeAdapter(Session)


@cache
def _approval() -> TypeAdapter[Approval]:
    return TypeAdapter(Approval)


def save_tree(connection: sqlite3.Connection, session: str, before: TaskTree, after: TaskTree) -> None:
    """Update the rows from `before` to `after`, inside the caller's transaction."""
    old = {c.id: (n, c) for n, c in enumerate(before.components)}
    for removed in old.keys() - {c.id for c in after.components}:
        connection.execute("DELETE FROM components WHERE session=? AND id=?", (session, removed))
        connection.execute("DELETE FROM tasks WHERE session=? AND component=?", (session, removed))
    for position, component in enumerate(after.components):
        old_position, known = old.get(component.id, (-1, None))
        if known is component and old_position == position:
            continue
        bare = replace(component, tasks=())
        if known is None or old_position != position or replace(known, tasks=()) != bare:
            connection.execute(
                "INSERT OR REPLACE INTO components (session, id, position, body) VALUES (?, ?, ?, ?)",
                (session, component.id, position, _component().dump_json(bare).decode()),
            )
        _save_tasks(connection, session, component, known.tasks if known else ())


def _save_tasks(
    connection: sqlite3.Connection, session: str, component: Component, before: Sequence[Task]
) -> None:
    """Write the tasks that differ from `before`. Identical objects are skipped without comparing them."""
    after = component.tasks
    changed = [n for n, (old, new) in enumerate(zip(before, after, strict=False)) if old is not new]
    changed = [n for n in changed if before[n] != after[n]] + [*range(len(before), len(after))]
    replaced = {before[n].id for n in changed if n < len(before)} | {t.id for t in before[len(after) :]}
    for removed in replaced - {after[n].id for n in changed}:
        connection.execute(
            "DELETE FROM tasks WHERE session=? AND id=? AND component=?", (session, removed, component.id)
        )
    for n in changed:
        task = after[n]
        connection.execute(
            "INSERT OR REPLACE INTO tasks (session, id, component, position, state, body)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (session, task.id, component.id, n, task.state.value, _task().dump_json(task).decode()),
        )


def load_tree(connection: sqlite3.Connection, session: str) -> TaskTree:
    """Return the tree in the rows; raises pydantic's `ValidationError` if a row is not valid."""
    rows = connection.execute(
        "SELECT component, body FROM tasks WHERE session=? ORDER BY position", (session,)
    ).fetchall()
    tasks: dict[str, list[Task]] = {}
    for row, task in zip(rows, _parsed_tasks([row["body"] for row in rows]), strict=True):
        tasks.setdefault(row["component"], []).append(task)
    components = [
        _component().validate_json(row["body"])
        for row in connection.execute(
            "SELECT body FROM components WHERE session=? ORDER BY position", (session,)
        )
    ]
    return TaskTree(tuple(replace(c, tasks=tuple(tasks.get(c.id, ()))) for c in components))


def _parsed_tasks(bodies: list[str]) -> list[Task]:
    """Parse all bodies as one document, which takes half the time for ten thousand tasks.

    If a body is not exactly one JSON document, parse them one by one.
    """
    try:
        tasks = _tasks().validate_json(f"[{','.join(bodies)}]")
    except ValueError:
        tasks = []
    return tasks if len(tasks) == len(bodies) else [_task().validate_json(body) for body in bodies]


def save_approval(connection: sqlite3.Connection, module: str, approval: Approval, text: str) -> Approval:
    """Store the approval with the user's seal, and its text if there is any; return the sealed one."""
    approval = replace(approval, seal=sealed(*_sealed_parts(connection, module, approval)))
    body = _approval().dump_json(approval).decode()
    sql = "INSERT INTO approvals (module, at, body) VALUES (?, ?, ?)"
    connection.execute(sql, (module, approval.at.isoformat(), body))
    if text:
        compressed = zlib.compress(text.encode("utf-8", "surrogatepass"))
        sql = "INSERT OR REPLACE INTO approved_texts VALUES (?, ?, ?)"
        connection.execute(sql, (module, approval.spec_hash, compressed))
    return approval


def load_approved_text(connection: sqlite3.Connection, module: str, approval: Approval) -> str | None:
    """Return the text that was approved, None if it is not stored; raises `ValueError` if its row is damaged."""
    sql = "SELECT body FROM approved_texts WHERE module=? AND spec_hash=?"
    row = connection.execute(sql, (module, approval.spec_hash)).fetchone()
    try:
        return None if row is None else zlib.decompress(row["body"]).decode("utf-8", "surrogatepass")
    except zlib.error as error:
        raise ValueError(str(error)) from error


def parse_approval(text: str) -> Approval:
    """Return the approval in a row of `save_approval`; `is_authentic` verifies its seal."""
    return _approval().validate_json(text)


def is_authentic(connection: sqlite3.Connection, module: str, approval: Approval) -> bool:
    """Return True if this user sealed exactly this approval in this database."""
    return holds(approval.seal, *_sealed_parts(connection, module, approval))


def _sealed_parts(connection: sqlite3.Connection, module: str, approval: Approval) -> tuple[str, ...]:
    """Return what the seal covers: every field of the approval, and the database it belongs to."""
    fields = _approval().dump_python(replace(approval, seal=""), mode="json")
    for later in ("changed", "test_removals"):  # approvals from before these fields keep their seal
        if not fields[later]:
            del fields[later]
    return "approval", owner(connection), module, json.dumps(fields, sort_keys=True)


def new_session_id(connection: sqlite3.Connection, module: str, at: datetime) -> str:
    """Return `<module>-YYYYMMDD-<n>`, where n follows every number of that day, archived and deleted ones too."""
    stem = f"{module}-{at:%Y%m%d}-"
    rows = connection.execute(
        "SELECT id FROM sessions WHERE module=?1 AND substr(id, 1, ?2) = ?3"
        " UNION SELECT session FROM archived WHERE module=?1 AND substr(session, 1, ?2) = ?3",
        (module, len(stem), stem),
    )
    taken = [int(n) for row in rows if (n := row["id"][len(stem) :]).isdigit()]
    return f"{stem}{max([*taken, _last_deleted(connection, stem)]) + 1}"


def record_deleted_id(connection: sqlite3.Connection, session: str) -> None:
    """Reserve the id of a deleted session, so that no later session adopts its commits."""
    stem, dash, number = session.rpartition("-")
    last = max(int(number), _last_deleted(connection, stem + dash))
    connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (f"deleted:{stem}{dash}", str(last)))


def _last_deleted(connection: sqlite3.Connection, stem: str) -> int:
    row = connection.execute("SELECT body FROM memos WHERE key=?", (f"deleted:{stem}",)).fetchone()
    return int(row["body"]) if row else 0


def next_task_number(connection: sqlite3.Connection, module: str) -> int:
    """Return the lowest number above all tasks of the module, archived sessions included."""
    rows = connection.execute(
        "SELECT t.id FROM tasks t JOIN sessions s ON s.id = t.session WHERE s.module=?", (module,)
    )
    archived = connection.execute("SELECT max(highest_task) AS n FROM archived WHERE module=?", (module,))
    return max(highest_task_number(module, (row["id"] for row in rows)), archived.fetchone()["n"] or 0) + 1


def highest_task_number(module: str, tasks: Iterable[str]) -> int:
    """Return the highest number among task ids `<module>-t<n>`; 0 if there are none."""
    stem = f"{module}-t"
    return max((int(n) for task in tasks if (n := task.removeprefix(stem)).isdigit()), default=0)


def parse_session(connection: sqlite3.Connection, session_id: str, body: str) -> Session:
    """Return the session with its tree, its approval only if this user gave it. Raises `ValueError`, `TypeError`."""
    session = with_tree(_session().validate_json(body), load_tree(connection, session_id))
    approval = session.approval
    if approval is None or is_authentic(connection, session.module, approval):
        return session
    return replace(session, approval=None)


def dump_session(session: Session) -> str:
    """Return the session as its row holds it: without its tree, which has rows of its own."""
    return _session().dump_json(with_tree(session, TaskTree())).decode()
