"""`lopen revert`: go back to the last task-completion commit, or to that of a task, after a backup."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import LatestModule, tasks
from lopen.core.errors import ExitCode, LopenError, WrongUsage, did_you_mean
from lopen.core.escape import inert
from lopen.core.events import Reverted
from lopen.workflow import changes
from lopen.workflow.session import RevertIntent, Session

if TYPE_CHECKING:
    from lopen.files.workplace import Workplace
    from lopen.git.repository import Backup, Repository
    from lopen.settings.schema import Settings
    from lopen.store.sessions import SessionStore

MAX_LISTED = 10  # files in one command
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="TASK", help="Go back to the commit of this task.", autocompletion=tasks),
]
UndoOption = Annotated[bool, typer.Option("--undo", help="Restore what the latest revert removed.")]


@command
def revert(
    context: CommandContext, module: LatestModule = None, to: ToOption = None, undo: UndoOption = False
) -> ExitCode:
    """Go back to the module's last task-completion commit, or with --to to the commit of that task.

    All work, also uncommitted, is first saved under refs/lopen/backup. Tasks whose commits are removed are
    open again. --undo restores the latest of these backups, commits and uncommitted work alike.
    """
    from lopen.application.open_store import one_session, open_store
    from lopen.application.person_only import require_person
    from lopen.application.revert_record import recorded
    from lopen.specification.modules import find_modules, require_known
    from lopen.store.folder import module_lock
    from lopen.store.project_documents import write_plan

    require_person("revert", context.root)
    if undo and to is not None:
        raise WrongUsage("--undo and --to exclude each other", hint="see lopen revert --help")
    store = open_store(context)
    if module is not None and module not in store.ids() and store.latest(module=module) is None:
        require_known(module, find_modules(context.root))
    session = one_session(store, module)
    settings = context.load().settings
    with module_lock(context.root, session.module):
        session = store.load(session.id)
        place = _open_place(context, settings, store, session)
        repository = place.repository
        if not undo and to is None and _is_in_place(session, repository):
            context.say(f"nothing to revert: {session.module} is complete, and nothing has changed since")
            context.emit("nothing_to_revert", session=session.id)
            return ExitCode.OK
        restored = _latest_backup(store, session, repository) if undo else None
        spared = _spared(repository, restored.saved) if restored is not None else {}
        intent = intent_of(session, repository, to, restored, spared)
        place.publish_backup(intent.backup)
        _move(context, store, session, place, intent, spared)
        if restored is not None:
            work = repository.changes(restored.head, restored.saved)
            repository.restore(repository.tree_of(restored.saved), [change.path for change in work])
        changed, event = recorded(store, session, repository, intent)
        write_plan(context.root, changed)
    uncommitted = sorted(put_aside(repository, intent))
    _report(context, changed, event, undo=undo)
    if uncommitted:
        back = put_back(repository.root, event.backup, uncommitted)
        context.say(f"uncommitted work was removed; to restore it: {back}")
    context.emit(
        "reverted",
        session=session.id,
        to=event.to,
        backup=event.backup,
        reopened=event.reopened,
        restored=event.restored,
        uncommitted=uncommitted,
    )
    _say_next(context, changed, undo=undo)
    return ExitCode.OK


def _is_in_place(session: Session, repository: Repository) -> bool:
    """True if a complete session's branch and files are as its last commit left them."""
    if not session.finished or session.intents.revert is not None:
        return False
    commits = [c.sha for c in repository.session_commits(session.id)]
    return target(session, commits, None) == repository.head().commit and not repository.dirty(
        lambda _: False
    )


def _say_next(context: CommandContext, session: Session, *, undo: bool) -> None:
    if session.finished:
        context.say(
            f"{session.id} is complete again" if undo else f"no task was reopened: {session.id} is complete"
        )
        return
    if undo and not any(task.open for task in session.tree.tasks):
        context.say("every task is complete; the components and the module are verified again:")
    context.say(f"next: lopen resume {session.id}")


def _move(
    context: CommandContext,
    store: SessionStore,
    session: Session,
    place: Workplace,
    intent: RevertIntent,
    spared: Mapping[str, str],
) -> None:
    """Reset the branch as intended. If this process dies meanwhile, the next command finds the intent."""
    store.save(changes.intend_revert(session, intent), datetime.now(UTC))
    try:
        place.repository.reset_to(intent.commit, spared)
        place.move_back(session.branch or "", intent.head, intent.commit)
    except LopenError:
        store.save(session, datetime.now(UTC))  # the failure is reported, and the command can be repeated
        context.warn(f"backup: {intent.backup}")
        raise


def _report(context: CommandContext, session: Session, event: Reverted, *, undo: bool) -> None:
    """Report what was done."""
    done = "restored" if undo else "reverted"
    context.say(f"{session.module} (session {session.id}) {done} to {event.to[:12]}; backup: {event.backup}")
    if event.reopened:
        context.say(f"reopened: {', '.join(event.reopened)}")
    if event.restored:
        context.say(f"complete again: {', '.join(event.restored)}")


def _open_place(
    context: CommandContext, settings: Settings, store: SessionStore, session: Session
) -> Workplace:
    """Return the session's clone, on its branch as the person's repository has it, with the earlier backups.

    Raises:
        LopenError: the session has no branch, or a checkout of the person stands on it.
    """
    from lopen.application.workplaces import workplace_of
    from lopen.core.clock import SystemClock
    from lopen.sandbox.known_secrets import KnownSecrets

    if session.branch is None:
        raise LopenError(
            f"{session.module} has no commits to revert to", hint="commits start after the approval"
        )
    secrets = KnownSecrets(context.root, os.environ)
    place = workplace_of(context, settings, store, session, SystemClock(), secrets)
    if place.person.branch_tip(session.branch) is None:
        raise LopenError(
            f"branch {session.branch} does not exist any more", hint="to undo merged work: git revert COMMIT"
        )
    place.person.references.require_plain(session.branch)
    if folder := place.person.references.checked_out(session.branch):
        away = session.start_branch or place.person.references.likely_base(session.branch) or "main"
        raise LopenError(
            f"{session.branch} is checked out in {folder}, and lopen does not change your checkout",
            hint=f"git switch {shlex.quote(away)}, then revert again",
        )
    place.follow(session.branch)
    return place


def put_aside(repository: Repository, intent: RevertIntent) -> set[str]:
    """Return the files whose uncommitted content the revert removed."""
    kept = repository.references.tip(intent.backup)
    if kept is None or kept == intent.head:
        return set()
    was, now = (repository.changes(commit, kept) for commit in (intent.head, intent.commit))
    return {c.path for c in was if c.kind != "deleted"} & {c.path for c in now}


def put_back(root: Path, backup: str, paths: Sequence[str]) -> str:
    """Return the shell command that restores `paths` from the backup."""
    git = _git_in(root)
    restore = f"{git} --literal-pathspecs restore --source={backup}"  # a file may be called `*` or `:!x`
    if len(paths) <= MAX_LISTED and all(inert(path) == path for path in paths):
        return f"{restore} -- {shlex.join(paths)}"
    # Too many, or a name that cannot be shown (a line break, invalid UTF-8): git lists them itself.
    changed = f"{git} diff --name-only --diff-filter=d -z {backup}^ {backup}"
    return f"{changed} | {restore} --pathspec-from-file=- --pathspec-file-nul"


def _git_in(root: Path) -> str:
    """Return the git command for `root`, also if the current folder is below it: the revert may remove that."""
    try:
        here = Path.cwd() == root
    except FileNotFoundError:
        here = False
    return "git" if here else f"git -C {shlex.quote(str(root))}"


def _latest_backup(store: SessionStore, session: Session, repository: Repository) -> Backup:
    """Return the newest backup of the session. Raise `LopenError` if it has none, or it was restored already."""
    from lopen.application.session_report import reverts

    latest, before = repository.latest_backup(session.id), reverts(store, session)
    if before and before[-1][1].undo:
        raise LopenError(
            "nothing is left to undo: the latest revert is undone",
            hint=f"to revert again: lopen revert {session.module} --to TASK; "
            f"work from after that revert is kept in {before[-1][1].backup}",
        )
    if latest is None:
        raise LopenError(f"{session.id} has no backup to restore", hint=f"lopen status {session.module}")
    return latest


def _spared(repository: Repository, saved: str) -> Mapping[str, str]:
    """Return path → blob of the untracked files that an undo leaves alone: the `.gitignore` files of `saved` ignore them."""
    from lopen.git.ignores import ignored_by

    held = repository.entries(saved)
    tracked = repository.entries(repository.head().commit or saved)
    loose = [path for path in repository.dirty(lambda _: False) if path not in held and path not in tracked]
    rules = {p: repository.file_at(saved, p) or b"" for p in held if PurePosixPath(p).name == ".gitignore"}
    return repository.blobs(ignored_by(rules, loose, repository.git)) if loose else {}


def intent_of(
    session: Session,
    repository: Repository,
    to: str | None,
    restored: Backup | None,
    spared: Mapping[str, str],
) -> RevertIntent:
    """Back up the current state and return the intent. Without `to`, an interrupted revert is continued.

    An interrupted revert keeps its first backup, which was made before files changed.
    """
    interrupted = session.intents.revert if restored is None else None
    commits = [c.sha for c in repository.session_commits(session.id)]
    if restored is not None:
        commit = restored.head
    else:
        commit = interrupted.commit if interrupted and to is None else target(session, commits, to)
    head = repository.head().commit
    assert head is not None
    backup = repository.backup(session.id, spared)
    kept = interrupted.backup if interrupted is not None else backup
    undo = restored is not None or (interrupted is not None and to is None and interrupted.undo)
    return RevertIntent(commit, kept, head, undo)


def target(session: Session, commits: list[str], to: str | None) -> str:
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
