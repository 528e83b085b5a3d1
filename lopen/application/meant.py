"""The session or module that a command means where the person names none: the only one that fits."""

from __future__ import annotations

from collections.abc import Callable

from lopen.application.command_context import TO_START, CommandContext, nothing_here
from lopen.application.open_store import newest_session, one_session, the_one
from lopen.application.reports import is_approved, merged_into
from lopen.core.errors import WrongUsage
from lopen.specification.modules import find_modules
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session


def the_session(
    context: CommandContext,
    store: SessionStore,
    wanted: str | None,
    fits: Callable[[Session], bool],
    state: str,
) -> Session:
    """Return the session that a person names, else the only unfinished one that `fits`, which `state` words.

    Raises:
        WrongUsage: several fit, or none does.
    """
    if wanted is not None:
        return one_session(context, store, wanted)
    found = {s.module: s for s in store.readable(store.ids(unfinished=True)) if fits(s)}
    return found[the_one("session", list(found), state)]


def module_to_build(context: CommandContext, store: SessionStore) -> str:
    """Return the only module that is not complete."""

    def is_left(module: str) -> bool:
        last = newest_session(store, module)
        return last is None or not last.finished

    return the_one("module", _modules(context, is_left), "is left to build")


def module_to_approve(context: CommandContext, store: SessionStore) -> str:
    """Return the only module whose specification, as it is now, no person approved."""
    found = _modules(context, lambda module: not is_approved(context.root, store, module))
    return the_one("module", found, "waits for your approval")


def module_to_merge(context: CommandContext, store: SessionStore) -> str:
    """Return the only complete module whose branch is not merged."""

    def is_due(module: str) -> bool:
        last = newest_session(store, module)
        return last is not None and last.finished and bool(last.branch) and not merged_into(context, last)

    return the_one("module", _modules(context, is_due), "is complete and not merged")


def _modules(context: CommandContext, fits: Callable[[str], bool]) -> list[str]:
    modules = find_modules(context.root)
    if not modules:
        raise WrongUsage(nothing_here(context.root), hint=TO_START)
    return [module for module in modules if fits(module)]
