"""`lopen skip`: a person skips a task."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError
from lopen.cli.command import command
from lopen.cli.parameters import TaskArgument
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State

ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, stored and reported.")]


@command
def skip(context: CommandContext, task: TaskArgument, reason: ReasonOption) -> ExitCode:
    """Skip a task. Its criteria stay open, and the report says so."""
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person
    from lopen.storage.lock import module_lock
    from lopen.storage.project_documents import write_plan

    require_person("skip", context.root)
    store = open_store(context)
    with module_lock(context.root, session_with(store, task).module):
        session = session_with(store, task)
        found = session.tree.task(task)
        assert found is not None
        if found.state is State.COMPLETE:
            raise LopenError(
                f"{task} is complete", hint=f"to undo completed work: lopen revert {session.module}"
            )
        given_up = replace(found, given_up=" ".join(reason.split()) or "no reason given", state=State.FAILED)
        answered = session.pause is not None and session.pause.subject == task
        session = replace(
            session, tree=session.tree.with_task(given_up), pause=None if answered else session.pause
        )
        store.save(session, datetime.now(UTC))
        write_plan(context.root, session)
    owner = session.tree.owner(task)
    criteria = ", ".join(owner.criteria) if owner else ""
    context.say(f"skipped {task} ({found.name}); open criteria: {criteria or 'none'}")
    context.emit("skipped", session=session.id, task=task, reason=reason)
    context.say(f"next: lopen resume {session.id}")
    return ExitCode.OK


def session_with(store: SessionStore, task: str) -> Session:
    """Return the newest session that has the task."""
    for session_id in store.ids():
        session = store.load(session_id)
        if session.tree.task(task) is not None:
            return session
    raise LopenError(f"no task named {task}", hint="lopen status shows the tasks")
