"""A session's tree as rows: one a component, one a task, written only where they changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from lopen.base.owner_seal import holds, owner, sealed
from lopen.workflow.session import Approval
from lopen.workflow.task_tree import Component, Task, TaskTree

_COMPONENT = TypeAdapter(Component)
_TASK = TypeAdapter(Task)
_TASKS = TypeAdapter(list[Task])


def save_tree(connection: sqlite3.Connection, session: str, before: TaskTree, after: TaskTree) -> None:
    """Make the rows that hold `before` hold `after`; inside a transaction of the caller's."""
    old = {c.id: (n, c) for n, c in enumerate(before.components)}
    for gone in old.keys() - {c.id for c in after.components}:
        connection.execute("DELETE FROM components WHERE session=? AND id=?", (session, gone))
        connection.execute("DELETE FROM tasks WHERE session=? AND component=?", (session, gone))
    for position, component in enumerate(after.components):
        was, known = old.get(component.id, (-1, None))
        if known is component and was == position:
            continue
        bare = replace(component, tasks=())
        if known is None or was != position or replace(known, tasks=()) != bare:
            connection.execute(
                "INSERT OR REPLACE INTO components (session, id, position, body) VALUES (?, ?, ?, ?)",
                (session, component.id, position, _COMPONENT.dump_json(bare).decode()),
            )
        _save_tasks(connection, session, component, known.tasks if known else ())


def _save_tasks(
    connection: sqlite3.Connection, session: str, component: Component, before: Sequence[Task]
) -> None:
    """Write the tasks that differ from `before`. Tasks that are the same objects are only passed over."""
    after = component.tasks
    changed = [n for n, (was, now) in enumerate(zip(before, after, strict=False)) if was is not now]
    changed = [n for n in changed if before[n] != after[n]] + [*range(len(before), len(after))]
    replaced = {before[n].id for n in changed if n < len(before)} | {t.id for t in before[len(after) :]}
    for gone in replaced - {after[n].id for n in changed}:
        connection.execute(
            "DELETE FROM tasks WHERE session=? AND id=? AND component=?", (session, gone, component.id)
        )
    for n in changed:
        task = after[n]
        connection.execute(
            "INSERT OR REPLACE INTO tasks (session, id, component, position, state, body)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (session, task.id, component.id, n, task.state.value, _TASK.dump_json(task).decode()),
        )


def load_tree(connection: sqlite3.Connection, session: str) -> TaskTree:
    """The tree that the rows hold; pydantic's `ValidationError` where they cannot be read."""
    rows = connection.execute(
        "SELECT component, body FROM tasks WHERE session=? ORDER BY position", (session,)
    ).fetchall()
    tasks: dict[str, list[Task]] = {}
    for row, task in zip(rows, _all_tasks([row["body"] for row in rows]), strict=True):
        tasks.setdefault(row["component"], []).append(task)
    components = [
        _COMPONENT.validate_json(row["body"])
        for row in connection.execute(
            "SELECT body FROM components WHERE session=? ORDER BY position", (session,)
        )
    ]
    return TaskTree(tuple(replace(c, tasks=tuple(tasks.get(c.id, ()))) for c in components))


def _all_tasks(bodies: list[str]) -> list[Task]:
    """In one go, which ten thousand of them take half as long for; one by one where a body is no single document."""
    try:
        found = _TASKS.validate_json(f"[{','.join(bodies)}]")
    except ValueError:
        found = []
    return found if len(found) == len(bodies) else [_TASK.validate_json(body) for body in bodies]


_APPROVAL = TypeAdapter(Approval)


def to_row(connection: sqlite3.Connection, module: str, approval: Approval) -> tuple[Approval, str]:
    """The approval under the person's seal, and as text."""
    approval = replace(approval, seal=sealed(*_said(connection, module, approval)))
    return approval, _APPROVAL.dump_json(approval).decode()


def from_row(text: str) -> Approval:
    """What `to_row` wrote; whether it is a person's, `is_real` tells."""
    return _APPROVAL.validate_json(text)


def is_real(connection: sqlite3.Connection, module: str, approval: Approval) -> bool:
    """Whether the seal is this person's, for these very words in this database."""
    return holds(approval.seal, *_said(connection, module, approval))


def _said(connection: sqlite3.Connection, module: str, approval: Approval) -> tuple[str, ...]:
    """What a seal stands for: every word of the approval, and the database it was given to."""
    fields = _APPROVAL.dump_python(replace(approval, seal=""), mode="json")
    return "approval", owner(connection), module, json.dumps(fields, sort_keys=True)
