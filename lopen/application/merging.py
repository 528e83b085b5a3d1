"""Merge a module's branch: the result is verified in a temporary clone first, and only then does anything move.

See docs/reference/git.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from lopen.application.command_context import CommandContext, ResumeOptions
from lopen.application.open_store import one_session, open_store, store_with
from lopen.application.reports import merged_into
from lopen.application.wiring import StandIns, wired
from lopen.application.workplaces import temporary_workplace
from lopen.core.errors import LopenError
from lopen.files.workplace import Workplace
from lopen.git.errors import GitError, RefMoved
from lopen.git.refs import HEADS, unfinished_operation
from lopen.git.repository import Repository
from lopen.guardrails.completion import tool_name
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.store.audit import VerifyResult
from lopen.store.folder import is_worked_on, module_lock
from lopen.store.sessions import SessionStore
from lopen.verification.runners import shown_output
from lopen.workflow import changes
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


def merge_module(context: CommandContext, module: str, into: str | None) -> None:
    """Merge the branch of a complete module if its verify commands pass on the result.

    Raises:
        LopenError: the module is not complete, the branches cannot be merged, or a verify command does not pass.
    """
    store, session = complete_session(context, module)
    settings = context.load().settings
    secrets = KnownSecrets(context.root, os.environ)
    with module_lock(context.root, module), temporary_workplace(context.root, settings, secrets) as place:
        deleted = place.person.branch_tip(session.branch or "") is None
        merge = None if deleted and merged_into(context, session) else prepare(place, session, into)
        if merge is None:
            context.emit("merged", session=session.id, branch=session.branch, commit=None)
            context.say(f"{session.branch} is merged already")
            return
        check_clean(place.person, merge)
        verified = verify_merge(context, settings, store, session, place, merge)
        if not verified:
            context.warn(f"{module} has no verify commands: nothing was run on the result")
        accept(place, merge)
    context.emit(
        "merged",
        session=session.id,
        branch=merge.branch,
        into=merge.target,
        commit=merge.commit,
        verified=verified,
    )
    context.say(f"merged {merge.branch} into {merge.target} at {merge.commit[:12]}")
    context.say(f"to delete the branch: git branch -d {merge.branch}")


def complete_session(context: CommandContext, module: str) -> tuple[SessionStore, Session]:
    """Return the module's newest session, which must be complete, with the store that holds it.

    An archive keeps no approval: the project's counts.
    """
    store = open_store(context)
    approval, store = store.approval(module), store_with(store, module)
    session = one_session(context, store, module)
    if not session.finished:
        if is_worked_on(context.root, module):
            raise LopenError(f"{module} is being built", hint=f"to follow it: lopen attach {module}")
        raise LopenError(f"{module} is not complete", hint=f"go on with: lopen resume {session.id}")
    if session.branch is None:
        raise LopenError(f"{module} has no branch: its work was not committed", hint="see: git status")
    return store, session if session.approval or not approval else changes.renew_approval(session, approval)


def verify_merge(
    context: CommandContext,
    settings: Settings,
    store: SessionStore,
    session: Session,
    place: Workplace,
    merge: PreparedMerge,
) -> list[str]:
    """Run the approved verify commands on the merge in the temporary clone; return the names of the commands that
    passed.

    Raises:
        LopenError: one did not pass.
    """
    place.repository.reset_to(merge.commit)
    workflow = settings.workflow.model_copy(update={"record": False})
    settings = settings.model_copy(update={"workflow": workflow})
    quiet, stand_ins = CommandContext(context.root), StandIns(place, publish=False)
    verified = []
    with wired(quiet, settings, store, session, ResumeOptions(), stand_ins=stand_ins) as loop:
        verifier = loop.project.verifier
        for name in verifier.commands:
            # verify-setup runs before the first that needs it
            result = None if name == "verify-setup" else verifier.run(tool_name(name))
            if result is not None:
                _require_passed(context, session, merge, name, result)
                verified.append(name)
    return verified


def _require_passed(
    context: CommandContext, session: Session, merge: PreparedMerge, name: str, result: VerifyResult
) -> None:
    context.emit(
        "verification_ran",
        session=session.id,
        tool=result.tool,
        command=result.command,
        passed=result.passed,
        exit_code=result.exit_code,
        output=shown_output(result.output, passed=result.passed),
    )
    if not result.passed:
        context.say(shown_output(result.output, passed=result.passed).rstrip())
        raise LopenError(
            f"{name} did not pass on the merge of {merge.branch} into {merge.target}: {result.command}",
            hint=result.hint or f"nothing was merged; to see both together: git merge {merge.branch}",
        )
    context.say(f"{name} passed: {result.command}")


def prepare(place: Workplace, session: Session, into: str | None) -> PreparedMerge | None:
    """Merge in a temporary clone; return None where the branch is merged already.

    Raises:
        MergeRefused: a branch is missing, or the branches conflict.
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

    Specifications and untracked files that the merge does not touch, and files that are already as it makes them,
    are left alone.
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

    untracked = repository.untracked()

    def harmless(path: str) -> bool:
        if path in touched:
            return repository.blobs([path]).get(path) == touched[path]
        if path in untracked:  # a file may lie where the merge makes a folder, and the other way round
            return not any(f"{path}/".startswith(f"{t}/") or t.startswith(f"{path}/") for t in touched)
        return path.startswith((".lopen/", "specs/"))

    dirty = repository.dirty(harmless)
    if changed := tuple(path for path in dirty if path not in untracked):
        raise MergeRefused(
            f"uncommitted work: {_listed(changed)}",
            hint="commit it, or put it aside (git stash), then merge again",
        )
    if dirty:
        raise MergeRefused(
            f"the merge would write over untracked files: {_listed(dirty)}",
            hint="move them elsewhere, then merge again",
        )


def accept(place: Workplace, merge: PreparedMerge) -> None:
    """Move the target branch to the merge; a work tree that is on one of the two branches goes with it.

    The branch moves after the files. The next merge completes a killed one, and leaves files alone that are merged
    already. If the branch cannot move, the files are restored.

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
