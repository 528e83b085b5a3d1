"""Merge a module's branch: the result is verified in a temporary clone first, and only then does anything move.

See docs/reference/git.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lopen.application.command_context import CommandContext
from lopen.application.run_options import ResumeOptions
from lopen.application.wiring import wired
from lopen.core.errors import LopenError
from lopen.files.workplace import Workplace
from lopen.git.errors import GitError, RefMoved
from lopen.git.refs import HEADS, unfinished_operation
from lopen.git.repository import Repository
from lopen.guardrails.completion import tool_name
from lopen.settings.sources import Loaded
from lopen.store.sessions import SessionStore
from lopen.tools.verification import Verified
from lopen.workflow.session import Session

MOST_NAMED = 10  # paths in one message


@dataclass(frozen=True, slots=True)
class PreparedMerge:
    """A merge as a commit that no reference has yet: the two branches with their commits, and the result."""

    branch: str
    branch_tip: str
    target: str
    target_tip: str
    commit: str
    tree: str


class MergeRefused(LopenError):
    """The branch cannot be merged as things are. Nothing was changed."""


def prepare(place: Workplace, session: Session, into: str | None) -> PreparedMerge | None:
    """Merge in a temporary clone; return None where the branch is merged already.

    Raises:
        MergeRefused: a branch is missing, the work tree has uncommitted work, or the branches conflict.
    """
    branch, repository, clone = session.branch or "", place.person, place.repository
    target = into or session.start_branch or repository.references.likely_base(branch)
    tip, target_tip = repository.branch_tip(branch), repository.branch_tip(target or "") if target else None
    if tip is None:
        raise MergeRefused(f"the branch {branch} does not exist any more", hint="see: git branch --list")
    if target is None or target_tip is None:
        raise MergeRefused(
            f"there is no branch {target}" if target else f"nothing says which branch {branch} came from",
            hint=f"name the branch to merge into: lopen merge {session.module} --into BRANCH",
        )
    if repository.reachable(tip, target_tip):
        return None
    if repository.reachable(target_tip, tip):  # git would fast-forward, too
        return PreparedMerge(branch, tip, target, target_tip, tip, repository.tree_of(tip))
    tree, conflicts = clone.merged(target_tip, tip)
    if conflicts:
        raise MergeRefused(
            f"{branch} and {target} conflict in {_listed(conflicts)}",
            hint=f"merge by hand: git switch {target} && git merge {branch}",
        )
    commit = clone.merge_commit(tree, target_tip, tip, f"Merge branch '{branch}' into {target}\n")
    place.bring_commit(commit)
    return PreparedMerge(branch, tip, target, target_tip, commit, tree)


def check_clean(repository: Repository, merge: PreparedMerge) -> None:
    """Refuse a merge that uncommitted work, another work tree or an unfinished operation of git stands against.

    Specifications that the merge does not touch, and files that are already as it makes them, are left alone.
    """
    if elsewhere := repository.references.checked_out(merge.target, elsewhere=True):
        raise MergeRefused(
            f"{merge.target} is checked out in another work tree ({elsewhere})",
            hint="run the command there, or see: git worktree list",
        )
    head = repository.head()
    if head.branch not in (merge.branch, merge.target) or head.commit is None:
        return  # the work tree is not touched
    if operation := unfinished_operation(repository.layout):
        raise MergeRefused(f"a {operation} is in progress", hint=f"abort it first: git {operation} --abort")
    touched = {c.path: c.after for c in repository.changes(repository.tree_of(head.commit), merge.tree)}

    def harmless(path: str) -> bool:
        if path in touched:
            return repository.blobs([path]).get(path) == touched[path]
        return path.startswith((".lopen/", "specs/"))

    if dirty := repository.dirty(harmless):
        raise MergeRefused(
            f"uncommitted work: {_listed(dirty)}",
            hint="commit it, or put it aside (git stash -u), then merge again",
        )


@contextmanager
def merge_result(
    context: CommandContext,
    loaded: Loaded,
    store: SessionStore,
    session: Session,
    place: Workplace,
    merge: PreparedMerge,
) -> Iterator[Iterator[tuple[str, Verified | None]]]:
    """Check the merge out in the temporary clone; yield what is run there.

    Each verify command of the approval comes with its result, or with None where there is no such command.
    """
    place.repository.reset_to(merge.commit)
    recording = loaded.settings.recording.model_copy(update={"enabled": False})
    plain = replace(loaded, settings=loaded.settings.model_copy(update={"recording": recording}))
    quiet = CommandContext(context.root)
    with wired(quiet, plain, store, session, ResumeOptions(), heard=False, place=place) as run:
        verifier = run.loop.project.verifier
        names = [
            name for name in verifier.commands if name != "verify-setup"
        ]  # run before the first that needs it
        try:
            yield ((name, verifier.run(tool_name(name))) for name in names)
        finally:  # no later session finds a room that is named after this folder
            verifier.room.forget_installed()


def accept(place: Workplace, merge: PreparedMerge) -> None:
    """Move the target branch to the merge; a work tree that is on one of the two branches goes with it.

    The branch moves after the files: a killed merge is completed by the next one, which leaves files alone that are
    already as it makes them. If the branch cannot move, the files become what they were.

    Raises:
        RefMoved: somebody moved the target branch meanwhile.
    """
    repository = place.person
    if repository.branch_tip(merge.target) != merge.target_tip:
        raise RefMoved(f"{merge.target} moved meanwhile: nothing was merged", hint="merge again")
    check_clean(repository, merge)
    head = repository.head()
    reason = f"merge {merge.branch} into {merge.target}"
    if head.branch not in (merge.branch, merge.target) or head.commit is None:
        repository.references.move(HEADS + merge.target, merge.commit, merge.target_tip, reason)
        return
    before = repository.tree_of(head.commit)
    paths = [change.path for change in repository.changes(before, merge.tree)]
    try:
        repository.restore(merge.tree, paths)
        repository.references.move(HEADS + merge.target, merge.commit, merge.target_tip, reason)
    except GitError:
        repository.restore(before, paths)
        raise
    if head.branch != merge.target:
        repository.references.attach_head(merge.target)
    repository.align_index()


def _listed(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more
