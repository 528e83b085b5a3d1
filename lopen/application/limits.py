"""Access to the project's limits, in whichever store the settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lopen.application.command_context import CommandContext
from lopen.core.errors import StoreUnreachable, WrongUsage
from lopen.core.events import AlertRaised, Recorded, Subscriber
from lopen.limits.admin_actions import NoSuch
from lopen.limits.agents import AgentLimits, agent_limits
from lopen.limits.budget import BudgetState
from lopen.limits.circuits import CircuitState, RuleBook, cooled, rule_book
from lopen.limits.store import LimitsStore
from lopen.settings.schema import Settings
from lopen.store.database import Database

STORE_HINT = "start it, or use the local store: lopen config set --user budget.store sqlite"
SEEN_ALERTS = ("protected_path", "secret")
LISTED = {"budget": "lopen budget show", "circuit": "lopen circuit status"}


@contextmanager
def opened_limits(context: CommandContext) -> Iterator[tuple[LimitsStore, Settings]]:
    """Open the store; yield it with the effective settings."""
    from lopen.application.open_store import open_store

    settings = context.load().settings
    sessions = open_store(context)
    try:
        with settled_limits(context, settings, sessions.database) as store:
            yield store, settings
    finally:
        sessions.database.close()


@contextmanager
def settled_limits(context: CommandContext, settings: Settings, database: Database) -> Iterator[LimitsStore]:
    """Open the store and count what it is owed: by processes that ended."""
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


def the_one(kind: str, waiting: list[str]) -> str:
    """Return the only budget or circuit that waits for a person; `WrongUsage` if there is none, or there are several."""
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        raise WrongUsage(f"no {kind} waits for a person", hint=f"to list them: {LISTED[kind]}")
    raise WrongUsage(f"several {kind}s wait for a person: {', '.join(waiting)}", hint=f"name the {kind}")


def no_such(kind: str, wanted: str) -> NoSuch:
    """Return the error for an unknown budget or circuit."""
    return NoSuch(f"there is no {kind} {wanted}", hint=f"to list them: {LISTED[kind]}")


def now() -> datetime:
    """Return the current time, UTC."""
    return datetime.now(UTC)


def tell(context: CommandContext, lines: list[str]) -> None:
    """Print lines for people; nothing with `--json`, where each object has its own line."""
    if not context.json:
        context.say("\n".join(lines))


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
