"""Where sessions work: one clone a module in the person's cache folder, or a temporary one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.clock import Clock, SystemClock
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.files.workplace import Workplace, open_workplace, start_commit, unsaved_files
from lopen.git import clones
from lopen.git.errors import GitError
from lopen.git.refs import BRANCH_PREFIX, require_commit
from lopen.git.repository import CheckoutOptions, Repository
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.store.folder import Locked, exclusive_lock, state_folder
from lopen.store.sessions import SessionStore
from lopen.store.temporary import TemporaryFolder
from lopen.workflow.session import Session


def clones_folder(root: Path) -> Path:
    """Return the folder with lopen's clones of the project at `root`, one per module."""
    return required(cache_folder()) / "clones" / content_hash(str(root))[:12]


def clone_of(root: Path, module: str) -> Path | None:
    """Return the folder of the files of the module's clone, None where there is none."""
    files = clones_folder(root) / module / root.name
    return files if files.is_dir() else None


def require_repository(root: Path, module: str) -> None:
    """Raise `LopenError` without a git repository, or without a first commit."""
    require_commit(Repository.open(root, clock=SystemClock()).head(), module)


def person_repository(root: Path, settings: Settings, clock: Clock, secrets: KnownSecrets) -> Repository:
    """Return the person's own repository."""
    return Repository.open(root, clock=clock, sign=settings.git.sign, known=secrets.current)


def workplace_of(
    context: CommandContext,
    settings: Settings,
    store: SessionStore,
    session: Session,
    clock: Clock,
    secrets: KnownSecrets,
) -> Workplace:
    """Return the session's place of work, made if needed. The caller holds the module's lock.

    Also remove clones of finished sessions that have no uncommitted work.
    """
    person = person_repository(context.root, settings, clock, secrets)
    folder = clones_folder(context.root)
    options = CheckoutOptions(settings.git.sign, secrets.current)
    for line in _remove_finished(context.root, store, person, options, session.module):
        context.warn(line)
    branch = session.branch or BRANCH_PREFIX + session.module
    start = start_commit(person, branch) if session.branch else require_commit(person.head(), session.module)
    links = settings.sandbox.mode != "none"
    return open_workplace(person, folder / session.module, start, options, links=links)


@contextmanager
def temporary_workplace(
    root: Path, settings: Settings, secrets: KnownSecrets, commit: str = ""
) -> Iterator[Workplace]:
    """Yield a clone for something that is only looked at or tried, at `commit` or the person's HEAD; remove it."""
    person = person_repository(root, settings, SystemClock(), secrets)
    held = TemporaryFolder()
    try:
        options = CheckoutOptions(settings.git.sign, secrets.current)
        commit = commit or require_commit(person.head())
        links = settings.sandbox.mode != "none"
        yield Workplace(person, clones.make_clone(person, held.path / "clone", commit, options, links=links))
    finally:
        held.remove()


def opened(person: Repository, folder: Path, options: CheckoutOptions) -> Repository | None:
    """Return the clone in `folder` to be looked at while a run may work in it, None where there is none."""
    try:
        return clones.open_clone(person, folder, options, alone=False)
    except GitError:
        return None


def _remove_finished(
    root: Path, store: SessionStore, person: Repository, options: CheckoutOptions, but: str
) -> Iterator[str]:
    """Remove the clones of modules without an unfinished session; yield a message about each."""
    for path in sorted(clones_folder(root).glob("[!.]*")):
        if path.name == but or store.latest(module=path.name, unfinished=True) is not None:
            continue
        with suppress(Locked), exclusive_lock(_locks(root), f"module-{path.name}", f"module {path.name}"):
            if store.latest(module=path.name, unfinished=True) is not None:
                continue
            try:
                lost = unsaved_files(root, clones.open_clone(person, path, options))
            except GitError as error:
                lost = (error.message,)
            if lost:
                yield f"the clone {path} of a finished session remains: it has uncommitted work ({', '.join(lost[:5])})"
            else:
                shutil.rmtree(path, ignore_errors=True)
                yield f"removed {path}, the clone of a finished session"


def _locks(root: Path) -> Path:
    return state_folder(root) / "locks"
