"""Reverts: going back to a commit of the session, undoing that, and completing an interrupted revert."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError, did_you_mean
from lopen.core.events import Reverted
from lopen.store.journal import ConversationStore, Journal
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.session import RevertIntent, Session

if TYPE_CHECKING:
    from lopen.files.workplace import Workplace
    from lopen.git.repository import Backup, Repository


def revert_session(
    context: CommandContext, store: SessionStore, session_id: str, *, to: str | None, undo: bool
) -> tuple[Session, Reverted] | None:
    """Move the session's branch and files back, or with `undo` to the latest backup; return None if nothing is to do.

    The present state is saved under refs/lopen/backup first. Tasks whose commits are removed are open again.

    Raises:
        LopenError: there is no commit or backup to go to, or a checkout of the person stands on the branch.
    """
    from lopen.store.folder import module_lock
    from lopen.store.project_documents import write_plan

    with module_lock(context.root, store.load(session_id).module):
        session = store.load(session_id)
        if undo and (skipped := _skip_without_work(store, session)):
            changed, event = _reopened(store, session, skipped)
            return _waits_again(context, store, changed), event
        place = _open_place(context, store, session)
        repository = place.repository
        if not undo and to is None and _is_in_place(session, repository):
            return None
        restored = _backup_to_restore(store, session, repository) if undo else None
        intent = _intent(session, repository, to, restored)
        place.publish_backup(intent.backup)
        _move(context, store, session, place, intent)
        if restored is not None:
            work = repository.changes(restored.head, restored.saved)
            repository.restore(repository.tree_of(restored.saved), [change.path for change in work])
        changed, event = recorded(store, session, repository, intent)
        write_plan(context.root, changed)
        if changed.finished:
            place.close()
        return _waits_again(context, store, changed) if undo else changed, event


def _waits_again(context: CommandContext, store: SessionStore, session: Session) -> Session:
    """Return the session, paused again where the failed attempts of its task ask a person."""
    from lopen.guardrails.guard import GuardFacts
    from lopen.guardrails.repeated_failures import check

    at, settings = datetime.now(UTC), context.load().settings
    pause = check(GuardFacts(session, at, settings.workflow.failure_threshold)).pause
    if session.finished or session.pause is not None or pause is None:
        return session
    session = changes.pause_for(session, pause)
    store.save(session, at)
    return session


def _is_in_place(session: Session, repository: Repository) -> bool:
    """True if a complete session's branch and files are as its last commit left them."""
    if not session.finished or session.intents.revert is not None:
        return False
    commits = [c.sha for c in repository.session_commits(session.id)]
    return _target(session, commits, None) == repository.head().commit and not repository.dirty(
        lambda _: False
    )


def _move(
    context: CommandContext,
    store: SessionStore,
    session: Session,
    place: Workplace,
    intent: RevertIntent,
) -> None:
    """Reset the branch as intended. If this process dies meanwhile, the next command finds the intent."""
    store.save(changes.intend_revert(session, intent), datetime.now(UTC))
    try:
        place.repository.reset_to(intent.commit)
        place.move_back(session.branch or "", intent.head, intent.commit)
    except LopenError:
        store.save(session, datetime.now(UTC))  # the failure is reported, and the command can be repeated
        context.warn(f"backup: {intent.backup}")
        raise


def _open_place(context: CommandContext, store: SessionStore, session: Session) -> Workplace:
    """Return the session's clone, on its branch as the person's repository has it, with the earlier backups.

    Raises:
        LopenError: the session has no branch, or a checkout of the person stands on it.
    """
    from lopen.application.workplaces import workplace_of
    from lopen.sandbox.known_secrets import KnownSecrets

    if session.branch is None:
        raise LopenError(
            f"{session.module} has no commits to revert to", hint="commits start after the approval"
        )
    place = workplace_of(context, store, session, KnownSecrets(context.root, os.environ))
    if place.person.branch_tip(session.branch) is None:
        raise LopenError(
            f"branch {session.branch} does not exist any more", hint="to undo merged work: git revert COMMIT"
        )
    if folder := place.person.references.checked_out(session.branch):
        away = session.start_branch or place.person.references.likely_base(session.branch) or "main"
        raise LopenError(
            f"{session.branch} is checked out in {folder}, and lopen does not change your checkout",
            hint=f"git switch {shlex.quote(away)}, then revert again",
        )
    place.follow(session.branch)
    return place


def _latest(store: SessionStore, session: Session) -> Reverted | None:
    """Return the session's latest revert; None where there is none, or its event is archived."""
    row = store.database.connection.execute(
        "SELECT body FROM events WHERE session=? AND name=? ORDER BY seq DESC LIMIT 1",
        (session.id, Reverted.name),
    ).fetchone()
    return Reverted(**json.loads(row["body"])) if row else None


def _skip_without_work(store: SessionStore, session: Session) -> Reverted | None:
    """Return the latest revert if it is the skip of a task from which nothing was put aside."""
    latest = _latest(store, session)
    return latest if latest is not None and latest.skipped and not latest.backup and not latest.undo else None


def _reopened(store: SessionStore, session: Session, skipped: Reverted) -> tuple[Session, Reverted]:
    """Open the skipped task again; no file changes."""
    event = replace(skipped, reopened=(skipped.skipped,), undo=True)
    changed = changes.reopen_skipped(session, skipped.skipped)
    return Journal(store, session, SystemClock(), redact=str).save(changed, event), event


def _backup_to_restore(store: SessionStore, session: Session, repository: Repository) -> Backup:
    """Return what the latest revert saved before it changed anything: not the newest backup, if that revert was
    interrupted and completed later.

    Raises:
        LopenError: there is no backup, or it was restored already.
    """
    interrupted, before = session.intents.revert, _latest(store, session)
    if interrupted is not None and not interrupted.undo:
        name: str | None = interrupted.backup
    elif before is not None and before.undo:
        raise LopenError(
            "nothing is left to undo: the latest revert is undone",
            hint=f"to revert again: lopen revert {session.module} --to TASK; "
            f"work from after that revert is kept in {before.backup}",
        )
    else:
        name = before.backup if before is not None else repository.references.latest_backup_name(session.id)
    backup = repository.read_backup(name) if name else None
    if backup is None:
        raise LopenError(f"{session.id} has no backup to restore", hint=f"lopen status {session.module}")
    return backup


def _intent(
    session: Session,
    repository: Repository,
    to: str | None,
    restored: Backup | None,
) -> RevertIntent:
    """Back up the current state and return the intent. Without `to`, an interrupted revert is continued.

    An interrupted revert, or undo, keeps its first backup, which was made before files changed.
    """
    interrupted = session.intents.revert
    if interrupted is not None and restored is not None and not interrupted.undo:
        interrupted = None
    commits = [c.sha for c in repository.session_commits(session.id)]
    if restored is not None:
        commit = restored.head
    else:
        commit = interrupted.commit if interrupted and to is None else _target(session, commits, to)
    head = repository.head().commit
    assert head is not None
    backup = repository.backup(session.id)
    kept = interrupted.backup if interrupted is not None else backup
    undo = restored is not None or (interrupted is not None and to is None and interrupted.undo)
    return RevertIntent(commit, kept, head, undo)


def _target(session: Session, commits: list[str], to: str | None) -> str:
    """Return the commit to go back to: that of the task `to`, else of the newest completed task."""
    if to is not None:
        task = session.tree.task(to)
        if task is None or task.commit is None:
            known = [t.id for t in session.tree.tasks if t.commit]
            hint = did_you_mean(to, known, f"lopen status {session.module}")
            raise LopenError(f"{to} has no commit in session {session.id}", hint=hint)
        if task.commit not in commits:
            raise LopenError(
                f"the commit {task.commit[:12]} of {to} is not in this branch's history",
                hint=f"lopen status {session.module}",
            )
        return task.commit
    done = [t.commit for t in session.tree.tasks if t.commit in commits]
    newest = next((c for c in reversed(commits) if c in done), None) or session.start_commit
    if newest is None:
        raise LopenError(
            f"{session.id} has no commit to revert to",
            hint="no task is complete and the first commit is unknown",
        )
    return newest


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
    changed = changes.record_revert(session, removed, restored, note)
    reopened = removed
    if intent.undo and (undone := _latest(store, session)) is not None:
        changed = changes.record_verified(changed, undone.verified, complete=undone.complete)
        changed = changes.reopen_skipped(changed, undone.skipped)
        reopened = [*removed, *filter(None, [undone.skipped])]
    event = Reverted(
        intent.commit,
        intent.backup,
        tuple(reopened),
        tuple(restored),
        intent.undo,
        tuple(c.id for c in session.tree.components if c.verified),
        session.finished,
    )
    with store.database.transaction():
        Journal(store, session, SystemClock(), redact=str).save(changed, event)
        ConversationStore(store.database, session.id, redact=str).clear()  # it rests on files that are gone
    return changed, event


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
    from lopen.files.skipped_work import put_aside
    from lopen.sandbox.known_secrets import KnownSecrets
    from lopen.store.project_documents import write_plan

    intent = session.intents.revert
    if intent is None or session.branch is None:
        return
    secrets = KnownSecrets(context.root, os.environ)
    place = workplace_of(context, store, session, secrets)
    repository, summary = place.repository, f"a revert to {intent.commit[:12]} was interrupted"
    tip = repository.branch_tip(session.branch)
    backup = f"backup: {intent.backup}"
    if intent.skipped:
        place.publish_backup(repository.backup(session.id))  # files may be newer
        put_aside(Journal(store, session, SystemClock(), redact=secrets.redact), place)
        context.warn(f"the work of {intent.skipped}, which you skipped, is now put aside; {backup}")
        return
    if tip == intent.head:  # also the case if only uncommitted work was to be removed
        context.warn(
            f"{summary} before the branch moved; some files may have changed; {backup}; {again(session)}"
        )
        return
    if tip != intent.commit:
        store.save(changes.intend_revert(session, None), datetime.now(UTC))
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
