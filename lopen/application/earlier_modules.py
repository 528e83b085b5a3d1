"""Modules that come after others: they start on top of the earlier modules' branches, and are merged behind them."""

from __future__ import annotations

import os

from lopen.application.command_context import CommandContext
from lopen.application.merging import (
    MergeRefused,
    PreparedMerge,
    merge_module,
    verify_merge,
)
from lopen.application.open_store import newest_session, open_store
from lopen.application.workplaces import person_repository, temporary_workplace
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.files.workplace import Workplace
from lopen.git.refs import BRANCH_PREFIX, HEADS, require_commit
from lopen.git.repository import Repository
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.specification.modules import MissingSource, find_modules
from lopen.specification.order import in_order
from lopen.specification.spec import module_specification
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session


def start_on_earlier(context: CommandContext, settings: Settings, store: SessionStore, module: str) -> None:
    """Put the module's new branch on the branches of the modules before it: on one, or on a merge of several.

    Does nothing for a branch that has begun, and where the person's HEAD has all of them. A merge is verified with the
    commands of the modules that it brings together.

    Raises:
        LopenError: an earlier module is not complete, two conflict, or a verify command does not pass on the merge.
    """
    try:
        after = module_specification(context.root, module).after
    except MissingSource:  # to be drafted
        return
    if not after:
        return
    earlier = [_complete(context, store, module, name) for name in after]
    secrets = KnownSecrets(context.root, os.environ)
    person = person_repository(context.root, settings, SystemClock(), secrets)
    head, branch = require_commit(person.head(), module), BRANCH_PREFIX + module
    before = person.branch_tip(branch)
    if before is not None and not person.reachable(before, head):
        return
    missing = [(s, tip) for s in earlier if (tip := _unmerged(person, s, head)) is not None]
    if not missing:
        return
    with temporary_workplace(context.root, settings, secrets) as place:
        base, merged = _merged(place, branch, head, missing)
        if merged:
            place.bring_commit(base)
            merge = PreparedMerge(branch, base, branch, base, base, place.repository.tree_of(base))
            for session, _ in missing:
                verify_merge(context, settings, store, session, place, merge)
    names = ", ".join(session.module for session, _ in missing)
    person.references.move(HEADS + branch, base, before, f"start {branch} after {names}")
    context.say(f"{module} starts on top of {names} ({base[:12]})")


def _complete(context: CommandContext, store: SessionStore, module: str, earlier: str) -> Session:
    session = newest_session(store, earlier)
    if session is None or not session.finished:
        raise LopenError(
            f"{module} comes after {earlier}, which is not complete",
            hint=f"to build both: lopen run {earlier} {module}",
        )
    return session


def _unmerged(person: Repository, session: Session, head: str) -> str | None:
    """Return the tip of the module's branch; None where the person's HEAD has it, or it was deleted after a merge."""
    tip = person.branch_tip(session.branch) if session.branch else None
    return None if tip is None or person.reachable(tip, head) else tip


def _merged(place: Workplace, branch: str, head: str, tips: list[tuple[Session, str]]) -> tuple[str, bool]:
    """Return the commit that has HEAD and all tips, and True if it is a new merge."""
    clone, base, merged = place.repository, head, False
    for session, tip in tips:
        if clone.reachable(tip, base):
            continue
        if clone.reachable(base, tip):
            base = tip
            continue
        tree, conflicts = clone.merged(base, tip)
        if conflicts:
            raise MergeRefused(
                f"{branch} begins on a merge, in which {session.branch} conflicts in {', '.join(conflicts[:5])}",
                hint="merge the earlier modules first, in order: lopen merge --all",
            )
        base, merged = (
            clone.merge_commit(tree, base, tip, f"Merge branch '{session.branch}' into {branch}\n"),
            True,
        )
    return base, merged


def merge_all(context: CommandContext, into: str | None) -> None:
    """Merge every complete module in the order of `after`; the first that cannot be merged ends it.

    Raises:
        LopenError: a module was not merged; those before it were.
    """
    store = open_store(context)
    names = find_modules(context.root)
    after = {name: module_specification(context.root, name).after for name in names}
    complete = []
    for name in in_order(after, names):
        session = newest_session(store, name)
        if session is not None and session.finished and session.branch is not None:
            complete.append(name)
        else:
            context.say(f"{name} is not complete: nothing to merge")
    store.database.close()
    merged: list[str] = []
    for name in complete:
        try:
            merge_module(context, name, into)
        except LopenError as error:
            done = f"merged before it: {', '.join(merged)}" if merged else "nothing was merged before it"
            raise LopenError(f"{name}: {error.message}; {done}", hint=error.hint) from error
        merged.append(name)
