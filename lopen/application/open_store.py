"""Opening a project's state for a command: its sessions, and its limits in whichever store the settings name.

An unreadable database is moved aside, never deleted, and reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.core.errors import LopenError, StoreUnreachable, WrongUsage, did_you_mean
from lopen.core.events import AlertRaised, Recorded, Subscriber
from lopen.core.person import unkept
from lopen.limits.admin_actions import NoSuch
from lopen.limits.agents import AgentLimits, agent_limits
from lopen.limits.budget import BudgetState
from lopen.limits.circuits import CircuitState, RuleBook, cooled, rule_book
from lopen.limits.store import LimitsStore
from lopen.settings.schema import Settings
from lopen.specification.modules import find_modules
from lopen.store.database import Database, ForeignDatabase, UnreadableDatabase
from lopen.store.folder import (
    ARCHIVES_FOLDER,
    DATABASE,
    Locked,
    is_locked,
    quarantine_file,
    require_plain,
    state_folder,
)
from lopen.store.sessions import NoSuchSession, SessionStore
from lopen.workflow.session import Session

INITIAL_FILES = {".gitignore", "config.toml"}  # of `.lopen/` before the first session
NOWHERE = Path(":memory:")
ELSEWHERE = "or by you with another HOME or XDG_DATA_HOME"
HEADER_BYTES = 100  # of an SQLite file


def open_store(context: CommandContext, *, new: bool = False) -> SessionStore:
    """Open the project's sessions. Before the first session, files are created only with `new`.

    A database that came with the repository is moved aside and not used.
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
                f"your approval is not stored beyond this command: {why} (set XDG_DATA_HOME to another folder)"
            )
    except ForeignDatabase as error:
        if not new:  # it may be the person's own, with another HOME
            context.warn(f"{error.message} ({ELSEWHERE}); it is not used, and lopen run moves it aside")
            return SessionStore(Database(NOWHERE), archives=path.parent / ARCHIVES_FOLDER)
        _refuse_worked_on(context.root, error)
        kept = quarantine_file(path, path.parent).relative_to(context.root)
        context.warn(
            f"{error.message} ({ELSEWHERE}); it is not used and was moved to {kept}."
            f" To restore it: mv {kept} .lopen/{DATABASE}"
        )
        return SessionStore(Database(path))
    except UnreadableDatabase as error:
        _refuse_worked_on(context.root, error)
        kept = quarantine_file(path, path.parent)
        context.warn(f"{error.message}; moved to {kept.relative_to(context.root)}")
        store = SessionStore(Database(path))
    store.warn = context.warn
    _settle(context, store)
    return store


def _refuse_worked_on(root: Path, error: LopenError) -> None:
    """Raise `Locked` if a process works with the database that would be moved aside."""
    if is_locked(root):
        raise Locked(
            f"{error.message}; another lopen works with it",
            hint="wait until it ends, or stop it: lopen pause",
        ) from error


def created(context: CommandContext, store: SessionStore) -> SessionStore:
    """Return the project's sessions, creating the state if there is none."""
    return open_store(context, new=True) if store.database.path == NOWHERE else store


def _never_ran(root: Path) -> bool:
    """True without state and without traces of a lost one (a plan, a damaged database)."""
    try:
        found = set(os.listdir(root / ".lopen"))
    except FileNotFoundError:
        return True
    except OSError:  # opening it reports why
        return False
    return found <= INITIAL_FILES


def _refuse_emptied(path: Path) -> None:
    """Raise for a truncated database: SQLite would take it for a new one."""
    logged = path.with_name(path.name + "-wal")
    if not path.exists() or path.stat().st_size >= HEADER_BYTES or logged.exists():
        return
    if path.stat().st_size or any((path.parent / "modules").glob("*/plan.md")):
        raise UnreadableDatabase(f"{path}: the file is truncated to {path.stat().st_size} bytes")


def _settle(context: CommandContext, store: SessionStore) -> None:
    if cut_off := store.unfinished_reverts():
        from lopen.application.reverting import settle

        settle(context, store, cut_off)


def store_with(store: SessionStore, wanted: str) -> SessionStore:
    """Return the store with that session, or with that module's newest one: the project's, or the session's archive,
    read into memory (writes are lost).
    """
    from lopen.store.archives import archive_path, newest_archived, open_archive

    if wanted in store.ids() or store.ids(module=wanted):
        return store
    archived = newest_archived(store.database, wanted) or wanted
    there = archive_path(store.archives, archived) is not None
    return open_archive(store.archives, archived) if there else store


def newest_session(store: SessionStore, module: str) -> Session | None:
    """Return the module's newest session, archived or not; None before its first one."""
    return store_with(store, module).latest(module=module)


def one_session(context: CommandContext, store: SessionStore, wanted: str | None) -> Session:
    """Return the session with that id, or the module's newest; without a name the latest unfinished one.

    Raises:
        LopenError: there is none, or it is archived; `store_with` opens it to be looked at.
    """
    from lopen.store.archives import archive_path, newest_archived

    if wanted is None:
        found = store.latest(unfinished=True) or store.latest()
        if found is None:
            raise LopenError("no sessions yet", hint="to start one: lopen run MODULE")
        return found
    if wanted in store.ids():
        return store.load(wanted)
    if (found := store.latest(module=wanted)) is not None:
        return found
    archived = newest_archived(store.database, wanted) or wanted
    if archive_path(store.archives, archived) is not None:
        raise LopenError(
            f"{archived} is archived; it cannot be resumed or changed",
            hint=f"to show it: lopen status {archived}",
        )
    try:
        return store.load(wanted)  # which says of one that is set aside why
    except NoSuchSession:
        modules = find_modules(context.root)
        if wanted in modules:
            hint = f"to start one: lopen run {wanted}"
            raise NoSuch(f"{wanted} has no session yet", hint=hint) from None
        hint = did_you_mean(
            wanted, (*modules, *store.ids()), "to list them: lopen status, lopen session list"
        )
        raise NoSuchSession(f"there is no module and no session named {wanted}", hint=hint) from None


def shown_session(context: CommandContext, wanted: str | None) -> tuple[SessionStore, Session]:
    """Open the project's sessions; return the one to be looked at, archived or not, and the store that holds it."""
    store = open_store(context)
    if wanted is not None:
        store = store_with(store, wanted)
    return store, one_session(context, store, wanted)


STORE_HINT = "start it, or use the local store: lopen config set --user budget.store sqlite"
SEEN_ALERTS = ("protected_path", "secret")
PLURAL = {"waits": "wait", "is": "are"}
LISTED = {
    "budget": "lopen budget show",
    "circuit": "lopen circuit status",
    "session": "lopen status",
    "module": "lopen status",
}


@contextmanager
def opened_limits(context: CommandContext) -> Iterator[tuple[LimitsStore, Settings]]:
    """Open the store; yield it with the effective settings."""

    settings = context.load().settings
    sessions = open_store(context)
    try:
        with settled_limits(context, settings, sessions.database) as store:
            yield store, settings
    finally:
        sessions.database.close()


@contextmanager
def settled_limits(context: CommandContext, settings: Settings, database: Database) -> Iterator[LimitsStore]:
    """Open the store and count the debts of processes that ended."""
    from lopen.limits.charging import Debts
    from lopen.limits.opening import open_limits

    store = open_limits(settings, database)
    try:
        # of a process that ended while the store was unreachable
        Debts(store, resource_limits(settings)).pay(now())
        yield store
    except StoreUnreachable as error:
        if settings.budget.store == "sqlite":
            raise
        raise StoreUnreachable(error.message, hint=error.hint or STORE_HINT) from error
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class ProjectLimits:
    """Current budgets and circuits; `unknown` is the reason if they cannot be read."""

    budgets: tuple[BudgetState, ...] = ()
    circuits: tuple[CircuitState, ...] = ()
    unknown: str = ""
    book: RuleBook = field(default_factory=RuleBook)

    def of(self, owner: str) -> BudgetState | None:
        """Return the budget with that id, such as `session:ID`; None where it is not counted or cannot be read."""
        return next((budget for budget in self.budgets if budget.budget_id == owner), None)

    @property
    def lines(self) -> list[str]:
        """Return the reason for people, if the limits are unknown."""
        return [f"limits unknown: {self.unknown}"] if self.unknown else []


def looked_up(context: CommandContext, database: Database) -> ProjectLimits:
    """Return the limits for a command that also shows other things; an unreachable store does not fail it."""
    from lopen.limits.opening import open_limits

    settings = context.load().settings
    try:
        store = open_limits(settings, database)
        try:
            at = now().timestamp()
            circuits = tuple(cooled(circuit, at) for circuit in store.circuits())
            return ProjectLimits(tuple(store.budgets()), circuits, book=rules(settings))
        finally:
            store.close()
    except (StoreUnreachable, WrongUsage) as error:
        return ProjectLimits(unknown=f"{error.message}; {error.hint or STORE_HINT}")


def rules(settings: Settings) -> RuleBook:
    """Return the circuit rules of the settings."""
    return rule_book(settings.circuit.model_dump())


def resource_limits(settings: Settings) -> AgentLimits:
    """Return the limits on sub-agents and external calls."""
    return agent_limits(settings.resources.model_dump())


def the_one(kind: str, found: list[str], state: str = "waits for a person") -> str:
    """Return the only budget, circuit, session or module that is as `state` says; `WrongUsage` if there is none, or
    there are several.
    """
    if len(found) == 1:
        return found[0]
    if not found:
        raise WrongUsage(f"no {kind} {state}", hint=f"to list them: {LISTED[kind]}")
    verb, _, rest = state.partition(" ")
    those = f"several {kind}s {PLURAL[verb]} {rest}: {', '.join(found)}"
    raise WrongUsage(those, hint=f"name the {kind if kind != 'session' else 'module'}")


def no_such(kind: str, wanted: str) -> NoSuch:
    """Return the error for an unknown budget or circuit."""
    return NoSuch(f"there is no {kind} {wanted}", hint=f"to list them: {LISTED[kind]}")


def now() -> datetime:
    """Return the current time, UTC."""
    return datetime.now(UTC)


def kept_alerts(settings: Settings, database: Database, hide: Callable[[str], str]) -> Subscriber:
    """Return the subscriber that stores the alerts that no budget and no circuit raised."""
    from lopen.limits.opening import open_limits
    from lopen.limits.records import Alert, new_id

    limits = open_limits(settings, database)

    def keep(record: Recorded) -> None:
        event = record.event
        if isinstance(event, AlertRaised) and event.alert_type in SEEN_ALERTS:
            alert = Alert(
                new_id(), event.budget_id, event.alert_type, hide(event.message), timestamp=record.ts
            )
            with suppress(StoreUnreachable):  # it stays in the log
                limits.atomically(lambda rows: rows.add_alert(alert))

    return keep
