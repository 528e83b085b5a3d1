"""`lopen revert`: back to the last task-completion commit, or to a task's. Nothing is lost: a backup ref first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError
from lopen.base.escape import inert
from lopen.base.events import Reverted
from lopen.cli.command import command
from lopen.cli.parameters import LatestModule, tasks
from lopen.workflow.session import RevertIntent, Session
from lopen.workspace.work_trees import module_documents

if TYPE_CHECKING:
    from lopen.git.repository import Repository
    from lopen.settings.schema import Settings
    from lopen.storage.sessions import SessionStore

MOST_NAMED = 10  # files in one command
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="TASK", help="Back to this task's commit.", autocompletion=tasks)
]


@command
def revert(context: CommandContext, module: LatestModule = None, to: ToOption = None) -> ExitCode:
    """Go back to the module's last task-completion commit; with --to, to that task's.

    What was there, committed or not, is kept under refs/lopen/backup first. Tasks whose commits are gone
    are open again.
    """
    from lopen.application.open_store import one_session, open_store
    from lopen.application.person_only import require_person
    from lopen.application.revert_record import recorded
    from lopen.application.work_trees import apart
    from lopen.cli.commands.check import require_known
    from lopen.documents.spec import find_modules
    from lopen.storage.lock import module_lock
    from lopen.storage.project_documents import write_plan

    require_person("revert", context.root)
    store = open_store(context)
    if module is not None and module not in store.ids() and store.latest(module=module) is None:
        require_known(module, find_modules(context.root))
    session = one_session(store, module)
    settings = context.load().settings
    with module_lock(context.root, session.module, checkout=not apart(settings)):
        session = store.load(session.id)
        repository = _standing(context, settings, store, session)
        intent = intent_of(session, repository, to)
        before = module_documents(context.root, session.module)
        # From here on until the record has followed the branch, a process that dies is heard of.
        store.save(replace(session, revert_intent=intent), datetime.now(UTC))
        try:
            repository.reset_to(intent.commit)
        except LopenError:
            store.save(session, datetime.now(UTC))  # it is told now, and can be tried again
            context.warn(f"what was there is kept in {intent.backup}")
            raise
        after = module_documents(context.root, session.module)
        changed_papers = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
        changed, event = recorded(store, session, repository, intent)
        write_plan(context.root, changed)
    uncommitted = sorted(put_aside(repository, intent) - set(changed_papers))
    _told(context, changed, event, {path: path in before for path in changed_papers})
    if uncommitted:
        back = put_back(repository.root, event.backup, uncommitted)
        context.say(f"uncommitted work was put aside; to have it back: {back}")
    context.emit(
        "reverted",
        session=session.id,
        to=event.to,
        backup=event.backup,
        reopened=event.reopened,
        papers=changed_papers,
        uncommitted=uncommitted,
    )
    if changed.finished:
        context.say(f"nothing is open again: {session.id} is complete")
    else:
        context.say(f"next: lopen resume {session.id}")
    return ExitCode.OK


def _told(context: CommandContext, session: Session, event: Reverted, papers: Mapping[str, bool]) -> None:
    """What was reverted; `papers` that were set back, and whether they had been there."""
    context.say(
        f"{session.module} (session {session.id}) reverted to {event.to[:12]}; what was there is kept in {event.backup}"
    )
    if event.reopened:
        context.say(f"open again: {', '.join(event.reopened)}")
    git = _git_in(context.root)
    for path, was_there in papers.items():
        before_it = (
            f"as it was before: {git} show {shlex.quote(f'{event.backup}:{path}')}"
            if was_there
            else "it was not there before"
        )
        context.say(f"{inert(path)} was set back too; {before_it}")


def _standing(
    context: CommandContext, settings: Settings, store: SessionStore, session: Session
) -> Repository:
    """The repository the session works in, its HEAD on the session's branch."""
    from lopen.application.work_trees import workplace_of
    from lopen.base.clock import SystemClock
    from lopen.git.repository import require_repository
    from lopen.sandbox.known_secrets import KnownSecrets

    if session.branch is None:
        raise LopenError(
            f"{session.module} has no commits to go back to",
            hint="work is committed from the gate on, unless git.enabled or git.auto_commit is off",
        )
    secrets = KnownSecrets(context.root, os.environ)
    place = workplace_of(context, settings, store, session, SystemClock(), secrets)
    repository = require_repository(place.repository)
    if repository.branch_tip(session.branch) is None:
        raise LopenError(f"there is no branch {session.branch} any more", hint="what was merged: git revert")
    if repository.head().branch != session.branch:
        where = f"-C {shlex.quote(str(place.root))} " if place.linked else ""
        raise LopenError(
            f"HEAD of {place.root} is not on {session.branch}", hint=f"git {where}switch {session.branch}"
        )
    return repository


def put_aside(repository: Repository, intent: RevertIntent) -> set[str]:
    """The files whose content was not committed, and lies there no more."""
    kept = repository.references.tip(intent.backup)
    if kept is None or kept == intent.head:
        return set()
    was, now = (repository.changes(commit, kept) for commit in (intent.head, intent.commit))
    return {c.path for c in was if c.kind != "deleted"} & {c.path for c in now}


def put_back(root: Path, backup: str, paths: Sequence[str]) -> str:
    """The command that makes `paths` again what they are in the backup."""
    git = _git_in(root)
    restore = f"{git} --literal-pathspecs restore --source={backup}"  # a file may be called `*` or `:!x`
    if len(paths) <= MOST_NAMED and all(inert(path) == path for path in paths):
        return f"{restore} -- {shlex.join(paths)}"
    # Many, or a name that cannot be shown as it is (a line break, bytes that are no text): git names them itself.
    changed = f"{git} diff --name-only --diff-filter=d -z {backup}^ {backup}"
    return f"{changed} | {restore} --pathspec-from-file=- --pathspec-file-nul"


def _git_in(root: Path) -> str:
    """git at work in `root`, also where the person stands below it: that folder the revert may have taken away."""
    try:
        here = Path.cwd() == root
    except FileNotFoundError:
        here = False
    return "git" if here else f"git -C {shlex.quote(str(root))}"


def intent_of(session: Session, repository: Repository, to: str | None) -> RevertIntent:
    """What is to be done, once what is there now is kept. A revert that was cut off is taken up where nothing else is said.

    The first backup is the one that is named: files may be half reverted since.
    """
    cut_off = session.revert_intent
    commits = [c.sha for c in repository.session_commits(session.id)]
    commit = cut_off.commit if cut_off is not None and to is None else target(session, commits, to)
    head = repository.head().commit
    assert head is not None
    backup = repository.backup(session.id)
    return RevertIntent(commit, cut_off.backup if cut_off is not None else backup, head)


def target(session: Session, commits: list[str], to: str | None) -> str:
    """The commit to go back to: a task's, else the newest of the session's."""
    if to is not None:
        task = session.tree.task(to)
        if task is None or task.commit is None:
            raise LopenError(
                f"{to} has no commit in session {session.id}", hint=f"lopen status {session.module}"
            )
        if task.commit not in commits:
            raise LopenError(f"{to}'s commit {task.commit[:12]} is not in this branch's history")
        return task.commit
    done = [t.commit for t in session.tree.tasks if t.commit in commits]
    newest = next((c for c in reversed(commits) if c in done), None) or session.start_commit
    if newest is None:
        raise LopenError(f"{session.id} has no commit to go back to")
    return newest
