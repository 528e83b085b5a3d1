"""The place where a session works: the person's checkout, or a work tree in the user's cache folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.clock import Clock, SystemClock
from lopen.core.hashing import content_hash
from lopen.core.person import cache_folder, required
from lopen.files.work_trees import WorkTree, open_linked_tree, remove_finished
from lopen.git.branches import require_commit
from lopen.git.checkout import Checkout
from lopen.git.repository import Repository
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded
from lopen.store.folder import Locked, exclusive_lock, state_folder
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

WAIT_S = 60.0  # for another session that creates its work tree, which checks out every file


def apart(settings: Settings) -> bool:
    """True if sessions work in work trees of their own."""
    return settings.git.isolation == "worktree"


def in_checkout(loaded: Loaded) -> Loaded:
    """Return the settings for a repository that needs no work tree: a copy, or one that is only read."""
    git = loaded.settings.git.model_copy(update={"isolation": "branch"})
    return replace(loaded, settings=loaded.settings.model_copy(update={"git": git}))


def trees_folder(root: Path) -> Path:
    """Return the folder with the work trees of the project at `root`, one per module."""
    return required(cache_folder()) / "worktrees" / f"{root.name}-{content_hash(str(root))[:12]}"


def require_repository(root: Path, settings: Settings, module: str) -> None:
    """Raise `LopenError` without a git repository, or without a first commit if work is committed."""
    if settings.git.enabled:
        head = Repository.open(root, clock=SystemClock(), sign=settings.git.sign).head()
        if settings.git.auto_commit:
            require_commit(head, module)


def checkout_of(root: Path, settings: Settings, clock: Clock, secrets: KnownSecrets) -> Checkout:
    """Return the project's repository; with `git.enabled = false` a private history of snapshots."""
    if settings.git.enabled:
        return Repository.open(root, clock=clock, sign=settings.git.sign, known=secrets.current)
    shadow = root / ".lopen" / "cache" / "shadow"
    return Repository.shadow(root, shadow, clock=clock, known=secrets.current)


def workplace_of(
    context: CommandContext,
    settings: Settings,
    store: SessionStore,
    session: Session,
    clock: Clock,
    secrets: KnownSecrets,
) -> WorkTree:
    """Return the session's place of work, created if needed. The caller holds the module's lock.

    Also remove work trees of finished sessions that have no uncommitted work.
    """
    if not apart(settings):
        return WorkTree(context.root, checkout_of(context.root, settings, clock, secrets))
    checkout = Repository.open(context.root, clock=clock, sign=settings.git.sign, known=secrets.current)
    folder = trees_folder(context.root)
    branch = session.branch or settings.git.branch_prefix + session.module

    with exclusive_lock(_locks(context.root), "worktrees", "the work trees", wait_s=WAIT_S):
        with ExitStack() as stack:

            def finished(module: str) -> bool:
                return module != session.module and stack.enter_context(_idle(context.root, store, module))

            for line in remove_finished(checkout, folder, finished):
                context.warn(line)
        path, has_branch = folder / session.module, session.branch is not None
        return open_linked_tree(checkout, path, branch, has_branch=has_branch)


@contextmanager
def _idle(root: Path, store: SessionStore, module: str) -> Iterator[bool]:
    """Yield True if the module has no unfinished session and no process; none can start meanwhile."""
    if store.latest(module=module, unfinished=True) is not None:
        yield False  # do not take its lock: somebody may be about to resume it
        return
    try:
        with exclusive_lock(_locks(root), f"module-{module}", f"module {module}"):
            yield store.latest(module=module, unfinished=True) is None
    except Locked:
        yield False


def _locks(root: Path) -> Path:
    return state_folder(root) / "locks"
