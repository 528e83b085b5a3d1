"""A person skips a task: the work that it began is put aside in a backup, so that no later task's commit holds it."""

from __future__ import annotations

from lopen.core.events import Reverted
from lopen.files.workplace import Workplace, unsaved_files
from lopen.git.refs import require_commit
from lopen.store.journal import Journal
from lopen.workflow import changes
from lopen.workflow.next_step import task_skipped
from lopen.workflow.session import RevertIntent, Session


def skip(journal: Journal, place: Workplace | None, task_id: str, reason: str, *, keep: bool) -> Session:
    """Skip the task; put aside what it left uncommitted in `place`, unless `keep`. `lopen revert --undo` undoes both.

    Raises:
        LopenError: the task is complete, or there is none of that id.
    """
    task, after = journal.session.tree.task(task_id), changes.skip_task(journal.session, task_id, reason)
    told, head = task_skipped(after, task_id), after.start_commit or ""
    now = journal.session.task  # the files are of this one
    begun = task is not None and task.base is not None and (now is None or now.id == task_id)
    if keep or not begun or place is None or not unsaved_files(place.home, place.repository):
        return journal.save(after, told, _event(after, RevertIntent(head, "", head, skipped=task_id)))
    head = require_commit(place.repository.head())
    backup = place.repository.backup(after.id)
    place.publish_backup(backup)
    journal.save(changes.put_aside(after, RevertIntent(head, backup, head, skipped=task_id)), told)
    return put_aside(journal, place)


def put_aside(journal: Journal, place: Workplace) -> Session:
    """Remove the work of a skipped task from the files, as its recorded intent says; a killed process may have begun."""
    session, intent = journal.session, journal.session.intents.revert
    assert intent is not None
    place.repository.reset_to(intent.commit)
    return journal.save(changes.intend_revert(session, None), _event(session, intent))


def _event(session: Session, intent: RevertIntent) -> Reverted:
    verified = tuple(c.id for c in session.tree.components if c.verified)
    return Reverted(intent.commit, intent.backup, (), verified=verified, skipped=intent.skipped)
