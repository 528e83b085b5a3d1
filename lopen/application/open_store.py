"""Opening a project's state for a command: what cannot be read is moved aside, never deleted, and said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.base.errors import LopenError
from lopen.base.owner_seal import unkept
from lopen.storage.database import Database, ForeignDatabase, UnreadableDatabase
from lopen.storage.folder import CACHE, DATABASE, quarantine_file, require_plain, state_folder
from lopen.storage.segments import ARCHIVES_FOLDER
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session

if TYPE_CHECKING:
    from lopen.retention.upkeep import CleanupResult

UNBEGUN = {".gitignore", "config.toml", CACHE}  # what lies in `.lopen/` before anything ran
NOWHERE = Path(":memory:")
ELSEWHERE = "or by you with another HOME or XDG_DATA_HOME"
HEADER_BYTES = 100  # of an SQLite file


def open_store(context: CommandContext, *, new: bool = False) -> SessionStore:
    """The project's sessions; nothing is made where nothing ran yet, unless `new`: the command begins something.

    A database that came with the repository is set aside, and nothing of it is used.
    """
    if not new and _never_ran(context.root):
        folder = context.root / ".lopen"
        require_plain(folder)
        return SessionStore(Database(NOWHERE), archives=folder / ARCHIVES_FOLDER)
    path = state_folder(context.root) / DATABASE
    try:
        _refuse_emptied(path)
        database = Database(path)
        database.check_integrity()
        store = SessionStore(database)
        if why := unkept():
            context.warn(
                f"what you approve holds for this command alone: {why} (XDG_DATA_HOME names another folder)"
            )
    except ForeignDatabase as error:
        if not new:  # it may be the person's after all, with another HOME than now
            context.warn(
                f"{error.message} ({ELSEWHERE}); nothing of it is used, and lopen run moves it aside"
            )
            return SessionStore(Database(NOWHERE), archives=path.parent / ARCHIVES_FOLDER)
        kept = quarantine_file(path, path.parent).relative_to(context.root)
        context.warn(
            f"{error.message} ({ELSEWHERE}); moved to {kept}, and nothing of it is used."
            f" To have it back: mv {kept} .lopen/{DATABASE}"
        )
        return SessionStore(Database(path))
    except UnreadableDatabase as error:
        kept = quarantine_file(path, path.parent)
        context.warn(f"{error.message}; moved to {kept.relative_to(context.root)}")
        store = SessionStore(Database(path))
    _rebuild(context, store)
    _settle(context, store)
    return store


def made(context: CommandContext, store: SessionStore) -> SessionStore:
    """The project's sessions, made now where `open_store` found none."""
    return open_store(context, new=True) if store.database.path == NOWHERE else store


def _never_ran(root: Path) -> bool:
    """Whether there is no state, nor a trace of one that was lost (a plan, a damaged database, what a hook owes)."""
    try:
        found = set(os.listdir(root / ".lopen"))
    except FileNotFoundError:
        return True
    except OSError:  # the one who opens it says why
        return False
    return found <= UNBEGUN


def _refuse_emptied(path: Path) -> None:
    """A file of next to no bytes where plans were drawn lost what it held; to SQLite it is a new database."""
    logged = path.with_name(path.name + "-wal")
    if not path.exists() or path.stat().st_size >= HEADER_BYTES or logged.exists():
        return
    if path.stat().st_size or any(plans(path.parent)):
        raise UnreadableDatabase(f"{path}: the file is cut down to {path.stat().st_size} bytes")


def plans(state: Path) -> Iterator[Path]:
    """The plans that lie in `.lopen/`, one a module."""
    return (state / "modules").glob("*/plan.md")


def _rebuild(context: CommandContext, store: SessionStore) -> None:
    """Once for every database that was set aside, also where the process died before it was done."""
    folder = store.database.path.parent / "corrupted"
    lost = max((p.name for p in folder.glob("*-state.db")), default="")
    if not lost or store.ids() or store.rebuilt_from() == lost:
        return
    from lopen.application.rebuild import rebuild

    with store.database.transaction():
        found = list(rebuild(context.root, store, _branch_prefix(context)))
        store.record_rebuild(lost)
    for line in found:
        context.warn(line)


def _settle(context: CommandContext, store: SessionStore) -> None:
    if cut_off := store.unfinished_reverts():
        from lopen.application.revert_record import settle

        settle(context, store, cut_off)


def _branch_prefix(context: CommandContext) -> str:
    """As configured; as it is by default where the configuration cannot be read either."""
    from lopen.settings.schema import Git
    from lopen.settings.sources import load

    try:
        return load(context.root).settings.git.branch_prefix
    except LopenError:
        return Git().branch_prefix


def cleaned(context: CommandContext) -> CleanupResult:
    """Clean the project's state now; what was freed."""
    from lopen.base.clock import SystemClock
    from lopen.retention.policy import retention_policy
    from lopen.retention.upkeep import CleanupResult, Upkeep

    policy = retention_policy(context.load().settings)
    store = open_store(context)
    if store.database.path == NOWHERE:
        return CleanupResult()
    return Upkeep(store, state_folder(context.root), policy, SystemClock(), warn=context.warn).clean()


def holding(store: SessionStore, session_id: str) -> SessionStore:
    """The store that has the session: the project's, or its archive, read back into memory (writes are lost)."""
    if session_id in store.ids():
        return store
    from lopen.storage.archives import open_archive

    return open_archive(store.archives, session_id)


def store_of(store: SessionStore, module: str) -> SessionStore:
    """The store that has the module's newest session: the project's, or that session's archive."""
    if store.ids(module=module):
        return store
    from lopen.storage.archives import archive_path, newest_archived

    archived = newest_archived(store.database, module)
    there = archived is not None and archive_path(store.archives, archived) is not None
    return holding(store, archived) if archived is not None and there else store


def one_session(store: SessionStore, wanted: str | None) -> Session:
    """The session of that id (or the latest of the module of that name); the latest unfinished without one."""
    if wanted is None:
        found = store.latest(unfinished=True) or store.latest()
        if found is None:
            raise LopenError("there is no session yet", hint="lopen run MODULE starts one")
        return found
    if wanted in store.ids():
        return store.load(wanted)
    found = store.latest(module=wanted, unfinished=True) or store.latest(module=wanted)
    if found is not None:
        return found
    from lopen.storage.archives import archive_path

    if archive_path(store.archives, wanted) is not None:
        raise LopenError(
            f"{wanted} is complete and archived; there is nothing to go on with or to change",
            hint=f"lopen session show {wanted} shows it",
        )
    return store.load(wanted)
