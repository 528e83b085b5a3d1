"""The scratch clone of a replay: the project as it was when a session passed the gate, with a state of its own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.application.open_store import open_store
from lopen.base.clock import Clock
from lopen.base.errors import LopenError
from lopen.documents.drift import section_hashes, spec_hash
from lopen.documents.spec import load
from lopen.git.fresh import clone
from lopen.git.repository import Repository
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Approval, Session


@dataclass(frozen=True)
class Scratch:
    """Where a session is rebuilt, and what it stands on."""

    context: CommandContext
    store: SessionStore
    session: Session


def stage(
    context: CommandContext, store: SessionStore, session: Session, folder: Path, *, clock: Clock
) -> Scratch:
    """Clone the project into the empty `folder` as it was when `session` began, approval included.

    Raises `LopenError` where the session never passed the gate, or what it began with is gone.
    """
    if session.approval is None or session.start_commit is None:
        raise LopenError(f"{session.id} never passed the gate; there is nothing to rebuild")
    own = Repository.open(context.root, clock=clock)
    approved = next(iter(own.session_commits(session.id, within=session.start_commit)), None)
    base = approved.parent if approved else session.start_commit
    if base is None:
        raise LopenError(f"{session.id} began in a repository without a commit; that cannot be cloned")
    copy = clone(context.root, folder, commit=base, branch=session.start_branch or "main", clock=clock)
    papers = f"specs/{session.module}/"
    if approved:
        paths = [c.path for c in copy.changes(copy.tree_of(base), approved.tree) if c.path.startswith(papers)]
        copy.restore(approved.tree, paths)
    else:
        shutil.copytree(context.root / papers, folder / papers, dirs_exist_ok=True)
    there = CommandContext(folder, context.json, context.verbose)
    mine = open_store(there, new=True)
    _bring_over(store, mine, session)
    _check(folder, mine, session.module, session.approval)
    return Scratch(there, mine, Session(session.id, session.module, session.created_at))


def _bring_over(theirs: SessionStore, mine: SessionStore, session: Session) -> None:
    """What was known when the session began: the approval, ids of criteria, and the sessions before it.

    Ids of tasks count on from those of earlier sessions.
    """
    module = session.module
    mine.remember_criteria(module, {i: text for text, i in theirs.known_criteria(module).items()})
    if session.approval is not None:
        mine.approve(module, session.approval)
    for other in theirs.ids(module=module):
        earlier = theirs.load(other)
        if earlier.created_at < session.created_at:
            mine.save(earlier, earlier.created_at)


def _check(folder: Path, store: SessionStore, module: str, approval: Approval) -> None:
    path = folder / "specs" / module / "SPECIFICATION.md"
    spec = load(path, module=module, known_ids=store.known_criteria(module))
    if spec_hash(section_hashes(spec)) != approval.spec_hash:
        raise LopenError(
            "the specification that the session began with is not the one that was approved last",
            hint="it was changed while the session ran; a replay cannot change it at the right moment",
        )
