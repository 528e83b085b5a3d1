"""The scratch clone of a replay: the project as it was when a session was approved, with a state of its own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.application.approval import specification
from lopen.application.command_context import CommandContext
from lopen.application.open_store import open_store
from lopen.core.clock import Clock
from lopen.core.errors import LopenError
from lopen.git.clones import clone_repository
from lopen.git.repository import Repository
from lopen.specification.drift import section_hashes, spec_hash
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Approval, Session


@dataclass(frozen=True)
class Scratch:
    """The clone in which a session is rebuilt, and its first state."""

    context: CommandContext
    store: SessionStore
    session: Session


def stage(
    context: CommandContext, store: SessionStore, session: Session, folder: Path, *, clock: Clock
) -> Scratch:
    """Clone the project into the empty `folder` as it was when `session` was approved.

    Raises:
        LopenError: the session was never approved, or its first commit or specification is missing.
    """
    if session.approval is None or session.start_commit is None:
        raise LopenError(
            f"{session.id} was never approved: it has nothing to rebuild",
            hint=f"lopen status {session.module} shows its state",
        )
    repository = Repository.open(context.root, clock=clock)
    approved = next(iter(repository.session_commits(session.id, within=session.start_commit)), None)
    base = approved.parent if approved else session.start_commit
    if base is None:
        raise LopenError(
            f"{session.id} started in a repository without a commit, which cannot be cloned",
            hint="replay a session that started after the first commit",
        )
    copy = clone_repository(
        context.root, folder, commit=base, branch=session.start_branch or "main", clock=clock
    )
    folder_of_spec = f"specs/{session.module}/"
    if approved:
        paths = [
            c.path
            for c in copy.changes(copy.tree_of(base), approved.tree)
            if c.path.startswith(folder_of_spec)
        ]
        copy.restore(approved.tree, paths)
    else:
        shutil.copytree(context.root / folder_of_spec, folder / folder_of_spec, dirs_exist_ok=True)
    clone_context = replace(context, root=folder)
    own_store = open_store(clone_context, new=True)
    _copy_history(store, own_store, session)
    _require_approved(folder, own_store, session.module, session.approval)
    return Scratch(clone_context, own_store, Session(session.id, session.module, session.created_at))


def _copy_history(source: SessionStore, target: SessionStore, session: Session) -> None:
    """Copy the state at the session's start: the approval, criterion ids, and earlier sessions.

    Task ids continue those of earlier sessions.
    """
    module = session.module
    target.remember_criteria(module, {i: text for text, i in source.known_criteria(module).items()})
    if session.approval is not None:
        target.approve(module, session.approval)
    for other in source.ids(module=module):
        earlier = source.load(other)
        if earlier.created_at < session.created_at:
            target.save(earlier, earlier.created_at)


def _require_approved(folder: Path, store: SessionStore, module: str, approval: Approval) -> None:
    spec = specification(folder, store, module)
    if spec_hash(section_hashes(spec)) != approval.spec_hash:
        raise LopenError(
            "the session's first specification differs from the one approved last",
            hint="the specification changed while the session ran; such a session cannot be replayed",
        )
