"""The state after a revert, and the completion of an interrupted one whose branch has moved."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.core.errors import LopenError
from lopen.core.events import Reverted
from lopen.judge.verdict import Verdict, accepted, verdict_from_json
from lopen.store.journal import ConversationStore
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.session import RevertIntent, Session
from lopen.workflow.task_tree import State

if TYPE_CHECKING:
    from lopen.git.repository import Repository


def recorded(
    store: SessionStore, session: Session, repository: Repository, intent: RevertIntent
) -> tuple[Session, Reverted]:
    """Store that the branch was reverted as intended: tasks whose commits are removed are open again."""
    commits = repository.session_commits(session.id, within=intent.commit)
    remaining = {c.sha for c in commits}
    removed = [t.id for t in session.tree.tasks if t.commit and t.commit not in remaining]
    by_task = {c.task: c.sha for c in commits}
    restored = {t.id: by_task[t.id] for t in session.tree.tasks if t.open and t.id in by_task}
    done = "restored the work of" if intent.undo else "reverted the work to"
    note = f"A person {done} commit {intent.commit[:12]}; what was there is kept in {intent.backup}."
    now = datetime.now(UTC)
    changed = changes.record_revert(session, removed, restored, note)
    if intent.undo:
        trees = [repository.tree_of(commit.sha) for commit in commits]
        changed = _verified_again(
            changed, list(map(verdict_from_json, store.verdicts(session.id))), [c.sha for c in commits], trees
        )
    event = Reverted(intent.commit, intent.backup, tuple(removed), tuple(restored), intent.undo)
    with store.database.transaction():
        store.save(changed, now)
        ConversationStore(store.database, session.id, redact=str).clear()  # it rests on files that are gone
        store.append_event(session.id, now, event.name, body(event))
    return changed, event


def _verified_again(
    session: Session, verdicts: Sequence[Verdict], commits: Sequence[str], trees: Sequence[str]
) -> Session:
    """Return the session with what the verdicts say of the restored commits, so that an undo needs no new judgement.

    `trees` are those of `commits`, oldest first. A verdict counts for a component if all of its tasks were committed by then.
    """
    passed = [v for v in verdicts if accepted(v) and v.tree in trees]
    verified: set[str] = set()
    for component in session.tree.components:
        made = {commits.index(t.commit) for t in component.tasks if t.commit in commits}
        ready = not component.verified and made and all(t.state is State.COMPLETE for t in component.tasks)
        judged = (
            v for v in passed if v.scope == "module" or (v.scope, v.subject) == ("component", component.id)
        )
        if ready and any(len(trees) - 1 - trees[::-1].index(v.tree) >= max(made) for v in judged):
            verified.add(component.id)
    whole = all(c.verified or c.id in verified for c in session.tree.components)
    complete = whole and any(v.scope == "module" and v.tree == trees[-1] for v in passed)
    return changes.record_verified(session, verified, module=complete)


def body(event: Reverted) -> str:
    """Return the event's fields as stored."""
    return json.dumps(asdict(event))


def settle(context: CommandContext, store: SessionStore, ids: Sequence[str]) -> None:
    """Complete or report interrupted reverts. Change no files: they may be newer than the revert.

    A module whose lock is held is skipped.
    """
    from lopen.store.folder import Locked, module_lock

    for session_id in ids:
        try:
            module = store.load(session_id).module
            with module_lock(context.root, module):
                _settle(context, store, store.load(session_id))
        except Locked:
            continue
        except LopenError as error:
            context.warn(f"an interrupted revert of {session_id} cannot be completed: {error.message}")


def _settle(context: CommandContext, store: SessionStore, session: Session) -> None:
    from lopen.application.workplaces import workplace_of
    from lopen.core.clock import SystemClock
    from lopen.sandbox.known_secrets import KnownSecrets
    from lopen.store.project_documents import write_plan

    intent = session.intents.revert
    if intent is None or session.branch is None:
        return
    settings, clock = context.load().settings, SystemClock()
    secrets = KnownSecrets(context.root, os.environ)
    place = workplace_of(context, settings, store, session, clock, secrets)
    repository = place.repository
    tip, summary = (
        repository.branch_tip(session.branch),
        f"a revert to {intent.commit[:12]} was interrupted",
    )
    backup = f"backup: {intent.backup}"
    if tip == intent.head:  # also the case if only uncommitted work was to be removed
        context.warn(
            f"{summary} before the branch moved; some files may have changed; {backup}; {again(session)}"
        )
        return
    if tip != intent.commit:
        store.save(changes.intend_revert(session, None), clock.now())
        context.warn(f"{summary}, and {session.branch} has moved since: nothing is changed; {backup}")
        return
    place.move_back(session.branch, intent.head, intent.commit)
    repository.align_index()
    changed, event = recorded(store, session, repository, intent)
    write_plan(context.root, changed)
    opened = f"; reopened: {', '.join(event.reopened)}" if event.reopened else ""
    context.warn(f"{summary} and is now complete; {backup}{opened}; next: lopen resume {session.id}")


def again(session: Session) -> str:
    """Return the instruction that completes an interrupted revert."""
    return f"complete it with: lopen revert {session.module}"


def refuse_unfinished(session: Session) -> None:
    """Raise `LopenError` for a session with an interrupted revert: its files may be half reverted."""
    if session.intents.revert is not None:
        raise LopenError(
            f"a revert of {session.id} to {session.intents.revert.commit[:12]} was interrupted; "
            f"backup: {session.intents.revert.backup}",
            hint=again(session),
        )
