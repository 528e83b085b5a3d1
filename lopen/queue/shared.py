"""The queue's tables, in SQLite or Postgres: orders with their state and lease, checkpoints, messages of people.

The database's clock alone says when a lease expires. An order gets the next fencing number each time it is queued, also
where its module was removed before: whoever holds an older one may not change anything. With its module it names one
execution of the engine (`lopen.queue.engine`), which claims, retries and orders by priority.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import sqlalchemy as sa

from lopen.core.errors import LopenError, StorageError
from lopen.models.retry import Bucket, SharedPace, Turn

P = ParamSpec("P")
T = TypeVar("T")
LEASE_S = 45.0
AWAY_S = 120.0  # a database that restarts is waited for
LAST_S = 3.0  # by a process that is to end
RETRY_S = 1.0
HEARTBEAT_S = 10.0
BUCKET = "endpoint"  # beside the groups' budgets
UNDER_WAY = "state IN ('queued', 'running')"
EXPIRED = "state = 'running' AND expires < NOW()"
SILENCE_S = 20.0  # within a transaction, until Postgres ends it
_TABLES = """
CREATE TABLE IF NOT EXISTS lopen_orders (
    project TEXT NOT NULL, module TEXT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL,
    told TEXT NOT NULL DEFAULT '{}', priority INTEGER NOT NULL, worker TEXT NOT NULL DEFAULT '', fence BIGINT NOT NULL,
    expires DOUBLE PRECISION NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (project, module));
CREATE TABLE IF NOT EXISTS lopen_checkpoints (
    project TEXT NOT NULL, module TEXT NOT NULL, kind TEXT NOT NULL, row_key TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (project, module, kind, row_key));
CREATE TABLE IF NOT EXISTS lopen_messages (
    project TEXT NOT NULL, module TEXT NOT NULL, number BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (project, module, number));
CREATE TABLE IF NOT EXISTS lopen_budgets (
    project TEXT NOT NULL, budget TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (project, budget));
"""
_FORGET = "DELETE FROM lopen_checkpoints WHERE project = :project AND module = :module AND kind = :kind AND row_key = :key"
_KEEP = "INSERT INTO lopen_checkpoints VALUES (:project, :module, :kind, :key, :body)"


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """A module to build as a person asked for it: the approved documents, and where the branch starts.

    `approval`: the fields of the person's approval. `documents`: path → text. `options`: of the command line. `earlier`:
    the ids of the module's sessions before this order.
    """

    module: str
    spec_hash: str
    approval: Mapping[str, Any]
    documents: Mapping[str, str]
    commit: str
    branch: str  # the person's, for the merge
    after: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    earlier: Sequence[str] = ()

    @property
    def group(self) -> str:
        """The builds that share its budget."""
        return str(self.options.get("group", ""))


@dataclass(frozen=True, slots=True)
class Placed:
    """An order in the queue. States: waiting (for earlier modules), queued, running, complete, waits, failed.

    `told`: the ending's reason, the command to enter next, tasks and cost. `left_s`: until its lease expires.
    """

    order: BuildOrder
    state: str
    told: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    worker: str = ""
    fence: int = 0
    left_s: float = 0.0
    lost: int = 0  # leases that expired


class Fenced(LopenError):
    """Another worker has taken the build over; this process may change nothing any more."""

    def __init__(self, module: str) -> None:
        super().__init__(
            f"another worker has taken {module} over, or it was removed from the queue: this process drops its work",
            hint="lopen queue list",
        )


class DatabaseAway(StorageError):
    """The database does not answer, or has cut the connection; nothing is known to be wrong."""


def driver_address(url: str) -> str:
    """Return the address of a database with the driver that reads it."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def patient(method: Callable[P, T]) -> Callable[P, T]:
    """Call again a method that may be called twice, while the database is away for no longer than `AWAY_S`, or until its queue gives up."""

    @wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        queue: Any = getattr(arguments[0], "shared", arguments[0])  # of the method's owner
        began, warn = time.monotonic(), queue.warn
        while True:
            try:
                return method(*arguments, **named)
            except DatabaseAway as error:
                if time.monotonic() > min(began + AWAY_S, queue.give_up_at):
                    raise
                if warn is not None:
                    warn(f"{error.message}; it is asked again for {AWAY_S:.0f} s")
                    warn = None
                time.sleep(RETRY_S)

    return call


class SharedQueue(SharedPace):
    """The tables of one project in the queue's database."""

    warn: Callable[[str], None] | None = None  # is told that the database is away
    give_up_at = math.inf  # from then on a database that is away is asked once

    def __init__(self, url: str, project: str) -> None:
        """Connect, and make the tables if there are none. Raises `StorageError`."""
        self.url, self.project = url, project
        address = driver_address(url)
        postgres = address.startswith("postgresql")
        alive = {"connect_timeout": 10, "keepalives_idle": 10, "tcp_user_timeout": 30_000} if postgres else {}
        self._engine = sa.create_engine(address, pool_pre_ping=True, connect_args=alive)
        of_sqlite = "((julianday('now') - 2440587.5) * 86400.0)"
        self._now = "extract(epoch FROM clock_timestamp())" if postgres else of_sqlite
        if postgres:  # a process that is stopped within a transaction must hold no lease by its lock
            silence = f"SET idle_in_transaction_session_timeout = {round(1000 * SILENCE_S)}"
            sa.event.listen(self._engine, "connect", lambda own, _: own.execute(silence) and own.commit())
        with self._changing() as connection:
            if postgres:  # two that begin at the same time
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(20261124)"))
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(sa.text(statement))

    @contextmanager
    def _changing(self) -> Iterator[sa.Connection]:
        """Yield a connection in a transaction. Raises `StorageError` for every failure of the database."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
            away = isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or getattr(
                error, "connection_invalidated", False
            )
            raise (DatabaseAway if away else StorageError)(
                f"the queue's database {self.address}: {reason}",
                hint="see the address: lopen config show queue",
            ) from error

    @property
    def address(self) -> str:
        """The address without its password."""
        return self._engine.url.render_as_string().replace("+psycopg", "", 1)

    def _run(self, connection: sa.Connection, sql: str, **values: Any) -> sa.CursorResult[Any]:
        text = sql.replace("NOW()", self._now)
        return connection.execute(sa.text(text), {"project": self.project, **values})

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    # orders

    def place(self, order: BuildOrder, priority: int) -> None:
        """Add an order, or replace one that does not run.

        Raises:
            LopenError: the module is being built.
        """
        body = json.dumps(asdict(order))
        with self._changing() as connection:
            changed = self._run(
                connection,
                "INSERT INTO lopen_orders (project, module, body, state, priority, fence)"
                " VALUES (:project, :module, :body, 'waiting', :priority, CAST(1000 * NOW() AS BIGINT))"
                " ON CONFLICT (project, module) DO UPDATE SET body = excluded.body, state = 'waiting', told = '{}',"
                " priority = excluded.priority, expires = 0"
                " WHERE lopen_orders.state <> 'running' OR lopen_orders.expires < NOW()",
                module=order.module,
                body=body,
                priority=priority,
            )
            if not changed.rowcount:
                raise LopenError(f"{order.module} is being built", hint="lopen queue list")

    @patient
    def placed(self, module: str | None = None, only: str = "TRUE") -> list[Placed]:
        """Return one order, those that fulfil a condition, or all, by module."""
        sql = (
            "SELECT body, state, told, priority, worker, fence, lost, expires - NOW() AS left_s FROM lopen_orders"  # noqa: S608 - fixed words only
            f" WHERE project = :project AND module = coalesce(CAST(:module AS TEXT), module) AND {only} ORDER BY module"
        )
        with self._changing() as connection:
            return [_placed(row) for row in self._run(connection, sql, module=module).mappings()]

    def remove(self, module: str) -> Placed | None:
        """Take an order out, with its checkpoint and messages; a worker that builds it finds itself fenced."""
        found = next(iter(self.placed(module)), None)
        with self._changing() as connection:
            for table in ("lopen_orders", "lopen_checkpoints", "lopen_messages"):
                sql = f"DELETE FROM {table} WHERE project = :project AND module = :module"  # noqa: S608 - fixed words only
                self._run(connection, sql, module=module)
        return found

    def ready(self) -> list[Placed]:
        """Queue the orders whose earlier modules are complete, and return them: each to one caller."""
        waiting = self.placed(only="state = 'waiting'")
        states = {p.order.module: p.state for p in self.placed()} if waiting else {}
        due = (p for p in waiting if all(states.get(n, "complete") == "complete" for n in p.order.after))
        return [queued for placed in due if (queued := self.queue(placed)) is not None]

    @patient
    def queue(self, placed: Placed) -> Placed | None:
        """Queue a waiting order, or a build whose worker is dead; return None where another process did it."""
        changed = self._change(
            "state = 'queued', told = '{}', worker = '', fence = fence + 1, expires = NOW(),"
            " lost = lost + CASE state WHEN 'waiting' THEN 0 ELSE 1 END",
            placed.order.module,
            "fence = :fence AND state = :state AND expires < NOW()",
            fence=placed.fence,
            state=placed.state,
        )
        return replace(placed, state="queued", worker="", fence=placed.fence + 1) if changed else None

    @patient
    def wait_again(self, module: str) -> None:
        """Put an order that has ended back among those that wait for their turn."""
        self._change("state = 'waiting'", module, f"NOT {UNDER_WAY}")

    # leases

    @patient
    def take(self, module: str, fence: int, worker: str) -> bool:
        """Take the lease of a queued module; return False where it was queued anew or removed since."""
        changes = "state = 'running', worker = :worker, expires = NOW() + :lease"
        only_if = "fence = :fence AND state = 'queued'"
        return self._change(changes, module, only_if, fence=fence, worker=worker, lease=LEASE_S)

    @patient
    def renew(self, module: str, fence: int, reason: str = "") -> None:
        """Extend a lease from now; `reason`: why the build does not go on. Raises `Fenced` if the lease is another's by now."""
        told = {"told": json.dumps({"reason": reason})} if reason else {}
        changes = "expires = NOW() + :lease" + (", told = :told" if told else "")
        with self.holding(module, fence, changes, lease=LEASE_S, **told):
            pass

    @patient
    def release(self, module: str, fence: int, state: str, told: Mapping[str, Any]) -> None:
        """Give a build back with its state, where it has begun or not. Raises `Fenced`, also if it was given back before."""
        sql = "expires = 0, worker = '', state = :state, told = :told"
        with self.holding(module, fence, sql, state=state, told=json.dumps(told)):
            pass

    def _change(self, changes: str, module: str, only_if: str, **values: Any) -> bool:
        """Change a module's order if it fulfils a condition; return False if it does not."""
        sql = f"UPDATE lopen_orders SET {changes} WHERE project = :project AND module = :module AND {only_if}"  # noqa: S608 - fixed words only
        with self._changing() as connection:
            return self._run(connection, sql, module=module, **values).rowcount > 0

    @contextmanager
    def holding(
        self, module: str, fence: int, changes: str = "fence = fence", **values: Any
    ) -> Iterator[sa.Connection]:
        """Yield a transaction that changes a build's row as the lease's holder. Raises `Fenced`, and changes nothing then."""
        mine = f"project = :project AND module = :module AND fence = :fence AND {UNDER_WAY}"
        sql = f"UPDATE lopen_orders SET {changes} WHERE {mine}"  # noqa: S608 - fixed words only
        with self._changing() as connection:
            if not self._run(connection, sql, module=module, fence=fence, **values).rowcount:
                raise Fenced(module)
            yield connection

    @contextmanager
    def spending(self, group: str, module: str, fence: int) -> Iterator[dict[str, Any]]:
        """Yield the group's budget to change, as the lease's holder; without a module: as the person. Raises `Fenced`."""
        with self.holding(module, fence) if module else self._changing() as connection:
            body, _ = self._locked(connection, group)
            sql = f"SELECT module FROM lopen_orders WHERE project = :project AND {UNDER_WAY}"  # noqa: S608 - fixed words only
            kept = {"promised": {}} | body | {"going": list(self._run(connection, sql).scalars())}
            yield kept
            self._keep(connection, group, kept)

    @patient
    def change_bucket(self, change: Callable[[Bucket, float], tuple[Bucket, Turn]]) -> Turn:
        """Change the bucket of all builds of the project, by the database's clock."""
        with self._changing() as connection:
            body, now = self._locked(connection, BUCKET)
            changed, turn = change(Bucket(**body), now)
            if changed != Bucket(**body):
                self._keep(connection, BUCKET, asdict(changed))
        return turn

    def _locked(self, connection: sa.Connection, name: str) -> tuple[dict[str, Any], float]:
        """Return what is kept by this name, which nobody else changes until the transaction ends, and the time."""
        row = self._run(
            connection,
            "INSERT INTO lopen_budgets VALUES (:project, :id, '{}') ON CONFLICT (project, budget)"
            " DO UPDATE SET body = lopen_budgets.body RETURNING body, NOW() AS now",
            id=name,
        ).one()
        return json.loads(row.body), float(row.now)

    def _keep(self, connection: sa.Connection, name: str, body: Mapping[str, Any]) -> None:
        sql = "UPDATE lopen_budgets SET body = :body WHERE project = :project AND budget = :id"
        self._run(connection, sql, id=name, body=json.dumps(body))

    # checkpoints

    @patient
    def checkpoint(self, module: str, fence: int, rows: Iterable[tuple[str, str, str | None]]) -> None:
        """Keep changed rows (kind, key, body; None: deleted) with the lease's holder. Raises `Fenced`, and keeps nothing."""
        with self.holding(module, fence) as connection:
            own: dict[str, str | None] = {"project": self.project, "module": module}
            changed = [own | {"kind": kind, "key": key, "body": body} for kind, key, body in rows]
            for sql, values in ((_FORGET, changed), (_KEEP, [v for v in changed if v["body"] is not None])):
                if values:
                    connection.execute(sa.text(sql), values)

    @patient
    def checkpointed(self, module: str) -> list[tuple[str, str]]:
        """Return the kept rows of a module as kind and body."""
        sql = "SELECT kind, body FROM lopen_checkpoints WHERE project = :project AND module = :module"
        with self._changing() as connection:
            rows = self._run(connection, sql, module=module).all()
        return [(str(row.kind), str(row.body)) for row in rows]

    # messages

    def send(self, module: str, command: str, given: Mapping[str, Any]) -> None:
        """Leave a person's command with its options for the worker that builds the module, or that takes it up next."""
        with self._changing() as connection:
            self._run(
                connection,
                "INSERT INTO lopen_messages SELECT :project, :module, coalesce(max(number), 0) + 1, :body"
                " FROM lopen_messages WHERE project = :project AND module = :module",
                module=module,
                body=json.dumps([command, dict(given)]),
            )

    @patient
    def messages(self, module: str) -> list[tuple[int, str, dict[str, Any]]]:
        """Return the messages that are not taken up yet, in order: number, command and options."""
        sql = "SELECT number, body FROM lopen_messages WHERE project = :project AND module = :module ORDER BY number"
        with self._changing() as connection:
            rows = self._run(connection, sql, module=module).all()
        return [(int(row.number), *json.loads(row.body)) for row in rows]

    @patient
    def taken_up(self, module: str, number: int) -> None:
        """Forget a message that has had its effect."""
        sql = "DELETE FROM lopen_messages WHERE project = :project AND module = :module AND number = :number"
        with self._changing() as connection:
            self._run(connection, sql, module=module, number=number)


def _placed(row: sa.RowMapping) -> Placed:
    body = json.loads(row["body"])
    order = BuildOrder(**body | {"after": tuple(body["after"])})
    known = {name: row[name] for name in ("state", "priority", "worker", "fence", "left_s", "lost")}
    return Placed(order, told=json.loads(row["told"]), **known)
