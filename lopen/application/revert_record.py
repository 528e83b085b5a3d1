"""What a revert means for the record, and finishing one that was cut off after the branch had moved."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.base.errors import LopenError
from lopen.base.events import Reverted
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import RevertIntent, Session
from lopen.workflow.task_tree import reopened

if TYPE_CHECKING:
    from lopen.git.repository import Repository


def recorded(
    store: SessionStore, session: Session, repository: Repository, intent: RevertIntent
) -> tuple[Session, Reverted]:
    """Keep that the branch went back as intended: tasks whose commits are gone are open again."""
    left = {c.sha for c in repository.session_commits(session.id, within=intent.commit)}
    gone = [t.id for t in session.tree.tasks if t.commit and t.commit not in left]
    note = f"A person reverted the work to commit {intent.commit[:12]}; what was there is kept in {intent.backup}."
    now = datetime.now(UTC)
    changed = replace(
        session,
        tree=reopened(session.tree, gone),
        status="paused" if session.finished and gone else session.status,
        leftovers={},
        commit_intent=None,
        revert_intent=None,
        notes=(*session.notes, note),
    )
    event = Reverted(intent.commit, intent.backup, tuple(gone))
    with store.database.transaction():
        store.save(changed, now)
        store.append_event(session.id, now, event.name, body(event))
    return changed, event


def body(event: Reverted) -> str:
    """The event's own fields as kept."""
    return json.dumps(asdict(event))


def settle(context: CommandContext, store: SessionStore, ids: Sequence[str]) -> None:
    """Finish or tell of reverts that were cut off. Files are changed by `lopen revert` alone: here they may be newer.

    Nothing is done where somebody works on the module at this moment.
    """
    from lopen.application.work_trees import apart
    from lopen.storage.lock import Locked, module_lock

    for session_id in ids:
        try:
            settings = context.load().settings
            module = store.load(session_id).module
            with module_lock(context.root, module, checkout=not apart(settings)):
                _settle(context, store, store.load(session_id))
        except Locked:
            continue
        except LopenError as error:
            context.warn(f"a revert of {session_id} was cut off and is not finished: {error.message}")


def _settle(context: CommandContext, store: SessionStore, session: Session) -> None:
    from lopen.application.work_trees import workplace_of
    from lopen.base.clock import SystemClock
    from lopen.git.repository import require_repository
    from lopen.sandbox.known_secrets import KnownSecrets
    from lopen.storage.project_documents import write_plan

    intent = session.revert_intent
    if intent is None or session.branch is None:
        return
    settings, clock = context.load().settings, SystemClock()
    secrets = KnownSecrets(context.root, os.environ)
    place = workplace_of(context, settings, store, session, clock, secrets)
    repository = require_repository(place.repository)
    tip, said = repository.branch_tip(session.branch), f"a revert to {intent.commit[:12]} was cut off"
    kept = f"what was there is kept in {intent.backup}"
    if tip == intent.head:  # as it is also where only uncommitted work was to go
        context.warn(f"{said} before the branch moved, some files may have; {kept}; {again(session)}")
        return
    if tip != intent.commit:
        store.save(replace(session, revert_intent=None), clock.now())
        context.warn(f"{said}, and {session.branch} is elsewhere by now: it is left as it is; {kept}")
        return
    if repository.head().branch == session.branch:
        repository.align_index()
    changed, event = recorded(store, session, repository, intent)
    write_plan(context.root, changed)
    opened = f"; open again: {', '.join(event.reopened)}" if event.reopened else ""
    context.warn(f"{said} and is finished now; {kept}{opened}; next: lopen resume {session.id}")


def again(session: Session) -> str:
    """What finishes a revert that did not come to its branch."""
    return f"finish it with: lopen revert {session.module}"


def refuse_unfinished(session: Session) -> None:
    """No run begins over files that are half reverted."""
    if session.revert_intent is not None:
        raise LopenError(
            f"a revert of {session.id} to {session.revert_intent.commit[:12]} was cut off; "
            f"what was there is kept in {session.revert_intent.backup}",
            hint=again(session),
        )
