"""The meter: what the loop asks before it spends, and tells after. Budgets and cost here, calls in `gate`.

Checked before the call: input and longest answer are promised in every budget, and settled with what was
really used, so that a budget is overshot by no more than the estimate's error. Where the store is gone
everything is allowed, said once, and counted when it is back (docs/reference/budgets-and-circuits.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

from lopen.core.clock import Clock
from lopen.core.errors import StorageError, StoreUnreachable
from lopen.core.events import Event, Notice
from lopen.core.process_identity import is_gone, this_process
from lopen.guardrails.habits import HabitLimits
from lopen.limits.answers import Grant, cut_off, no_money, no_room, raised
from lopen.limits.budgets.budget import BudgetSpec, BudgetState, Charge
from lopen.limits.budgets.charging import open_all, promise, release, replace_promise
from lopen.limits.budgets.cost import (
    EXTERNAL_AGENTS,
    Quote,
    affordable,
    charge_external,
    charge_of,
    unheld,
    unpriced,
)
from lopen.limits.budgets.scopes import TASK, specs_for
from lopen.limits.circuits.agents import AgentLimits, agent_limits
from lopen.limits.circuits.call_events import lose_probe, put_agents, read_agents
from lopen.limits.circuits.call_gate import CallGate
from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.circuits.rules import rule_book
from lopen.limits.report import left_line, snapshot_line
from lopen.limits.stores.records import Alert, Reservation
from lopen.limits.stores.store import LimitsStore, Rows
from lopen.limits.texts import new_id
from lopen.limits.unsettled_charges import NO_LEDGER, Debt, Debts, Ledger, charge_left
from lopen.models import messages
from lopen.settings.schema import Settings

T = TypeVar("T")
log = logging.getLogger("lopen.limits")


class Meter:
    """One session's view of its budgets. Calls, agents and external calls are asked for at `gate`."""

    def __init__(
        self,
        store: LimitsStore,
        settings: Settings,
        clock: Clock,
        *,
        ledger: Ledger = NO_LEDGER,
        exempt: tuple[str, ...] = (),
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        """Open nothing yet. `ledger` keeps what a store that is gone is owed; `exempt` circuit rules do not hold; `warn` is told
        once when the store goes and once when it is back."""
        self._store = store
        self._budget = settings.budget
        self._clock = clock
        self._resources: AgentLimits = agent_limits(settings.resources.model_dump())
        self.max_cost = settings.budget.max_cost_usd  # 0 means no limit
        self._debts = Debts(ledger, self._resources, warn)
        self._cost = 0.0  # as the store said last
        self._known: dict[str, int] = {}
        self._latest: dict[str, BudgetState] = {}
        self._late: tuple[Event, ...] = ()  # of debts paid meanwhile, told with the next settlement
        self._specs: tuple[BudgetSpec, ...] = ()
        self._said: set[str] = set()  # limits on cost of which was told that they do not hold
        self._session = ""
        self._to_recover = ""  # the session in whose stead `recover` waits for the store
        self._agent = ""
        book = rule_book(
            settings.circuit.model_dump(),
            api_session_max=self._resources.api_session_max,
            exempt=exempt,
            history=settings.memory.tool_history_max,
        )
        self.gate = CallGate(
            store, self._tried, clock, book, self._resources, HabitLimits.of(settings.tool_discipline)
        )

    def open(
        self,
        session_id: str,
        module: str,
        task: str | None = None,
        task_type: str = "implement",
        agent: str = "builder",
        *,
        task_description: str = "",
    ) -> None:
        """Charge what follows to this module, session and task; called again where the task changes."""
        self._session, self._agent = session_id, agent
        self._specs = specs_for(
            self._budget,
            session_id=session_id,
            module=module,
            task=task,
            task_type=task_type,
            agent=agent,
            task_description=task_description,
        )
        self.gate.enter(f"session:{session_id}", task or "")
        now = self._clock.now()
        self._tried(
            lambda: self._store.atomically(lambda rows: open_all(rows, self._specs, now, self._known)), list
        )

    def recover(self, session_id: str) -> tuple[Event, ...]:
        """Count what dead processes left unsettled as spent, in every session of this module, and a probe as failed.

        To be called after `open` by whoever holds the module's lock, before anything is reserved. While the
        store is gone it waits until the store is back.
        """
        self._to_recover = session_id
        return self.settle_up()

    def _recovered(self) -> tuple[Event, ...]:
        session_id = self._to_recover
        modules = {spec.budget_id for spec in self._specs if spec.budget_type == "module"}

        def ours(left: Reservation) -> bool:
            return left.session == session_id or not modules.isdisjoint(left.budget_ids)

        def work(rows: Rows) -> tuple[Event, ...]:
            now = self._clock.now()
            dead = [left for left in rows.promised() if ours(left) and is_gone(left.owner)]
            alerts = [alert for left in dead for alert in charge_left(rows, left, self._resources, now)]
            circuit_id = f"session:{session_id}"
            lose_probe(rows, circuit_id, now, self.gate.book)
            agents = read_agents(rows, circuit_id)
            if agents.running:  # they went with their process
                put_agents(rows, circuit_id, agents.replace(running=()))
            return (*cut_off(dead), *raised(alerts))

        return self._store.atomically(work)

    def reserve(
        self, estimate_input: int, max_tokens: int, agent: str = "", quote: Quote = unpriced
    ) -> Grant:
        """Promise a request its input and answer in every budget; BudgetReached where there is no room.

        `estimate_input` in weighted tokens. The answer shrinks to what is left, not below 1,024.
        """
        max_tokens = self._affordable(quote, max_tokens)
        now = self._clock.now()
        agent = agent or self._agent
        # A task's budget stops further building, never the verdict on finished work.
        specs = tuple(s for s in self._specs if agent != "oracle" or s.budget_type != TASK)
        ids = tuple(spec.budget_id for spec in specs)
        told = self._unlimited_cost(quote, agent)
        wanted = Reservation(new_id(), self._session, this_process(), ids, max(0, estimate_input), agent, now)
        answer = self._tried(
            lambda: self._store.atomically(lambda rows: promise(rows, specs, wanted, max_tokens, now, quote)),
            lambda: None,
        )
        if answer is None:
            return Grant(max_tokens, specs, agent, wanted, sure=False, events=told)
        if isinstance(answer[0], BudgetState):
            alerts = answer[1] if isinstance(answer[1], tuple) else ()
            raise no_room(answer[0], wanted.tokens + max_tokens, alerts)
        kept, room = answer
        return Grant(room if isinstance(room, int) else max_tokens, specs, agent, kept, events=told)

    def _unlimited_cost(self, quote: Quote, agent: str) -> tuple[Event, ...]:
        """Said once: a limit in dollars that does not hold for this model."""
        what = unheld(quote, agent, self.max_cost, self._resources)
        if not what or what in self._said:
            return ()
        self._said.add(what)
        line = f"no price is known for the {agent}'s model: {what} does not hold for it"
        return (Notice("warning", line, "Budgets in tokens do: lopen budget show"),)

    def _affordable(self, quote: Quote, max_tokens: int) -> int:
        """The answer's length that `--max-cost` leaves money for; BudgetReached where it leaves none."""
        if self.max_cost <= 0:
            return max_tokens
        cost, whole = self.cost(), quote(max_tokens)
        room = affordable(quote, max_tokens, self.max_cost - cost) if cost < self.max_cost else 0
        if room:
            return room
        raise no_money(self._session, cost, self.max_cost, whole or 0.0)

    def settle(
        self, grant: Grant, usage: messages.Usage, cost_usd: float | None, model: str = ""
    ) -> tuple[Event, ...]:
        """Charge what the request really used. `cost_usd` None: the model has no known price."""
        charge = charge_of(usage, cost_usd, grant.agent, model, self._budget.cache_read_weight)
        now = self._clock.now()

        def work() -> tuple[Alert, ...]:
            charged = self._store.record(grant.specs, charge, now, grant.reservation, sure=grant.sure)
            self._seen(state for state, _ in charged)
            alerts = tuple(a for _, raised_here in charged for a in raised_here)
            return (*alerts, *self._external_cost(charge, now)) if charged else ()

        alerts = self._tried(work, lambda: self._owe(grant, charge))
        late, self._late = self._late, ()
        return (*late, *raised(alerts))

    def owe(self, grant: Grant, usage: messages.Usage, cost_usd: float | None, model: str) -> None:
        """Remember a charge that could not be recorded, until the store can be written."""
        charge = charge_of(usage, cost_usd, grant.agent, model, self._budget.cache_read_weight)
        with suppress(StorageError):  # kept in memory all the same
            self._owe(grant, charge)

    def _owe(self, grant: Grant, charge: Charge) -> tuple[Alert, ...]:
        self._debts.owe(Debt(grant.specs, charge, grant.reservation, grant.sure))
        return ()

    def settle_up(self) -> tuple[Event, ...]:
        """Pay what is still owed at the end of a run, without waiting for the next try."""
        self._debts.wake()
        self._tried(tuple, tuple)
        late, self._late = self._late, ()
        return late

    def streamed(self, grant: Grant, usage: messages.Usage, cost_usd: float | None) -> Grant:
        """Keep what a request that is under way has used so far, for the case that it is cut off."""
        tokens = usage.billed(self._budget.cache_read_weight)
        kept = grant.reservation.replace(estimate=tokens, estimate_usd=cost_usd)
        self._tried(lambda: self._store.atomically(lambda rows: replace_promise(rows, kept)), lambda: None)
        return grant.replace(reservation=kept)

    def cut_off(self, grant: Grant) -> tuple[Event, ...]:
        """Charge a request that was cut off in this process as what it has used so far, to no task."""
        left, limits, now = grant.reservation, self._resources, self._clock.now()
        alerts = self._tried(
            lambda: self._store.atomically(lambda rows: charge_left(rows, left, limits, now)), list[Alert]
        )
        return (*cut_off([left]), *raised(alerts))

    def _external_cost(self, charge: Charge, now: datetime) -> tuple[Alert, ...]:
        if charge.agent not in EXTERNAL_AGENTS:
            return ()
        circuit = self.gate.circuit_id
        work = partial(charge_external, circuit_id=circuit, charge=charge, limits=self._resources, now=now)
        return self._tried(lambda: self._store.atomically(work), tuple)

    def abandon(self, grant: Grant) -> None:
        """The request failed and nothing is billed: give the promise back."""
        work = partial(release, reservation=grant.reservation)
        self._tried(lambda: self._store.atomically(work), lambda: bool(self._owe(grant, Charge(0))))

    def states(self) -> list[BudgetState]:
        """Module, session and task as they stand (empty where the store is gone)."""

        def work(rows: Rows) -> list[BudgetState]:
            return [state for spec in self._specs if (state := rows.budget(spec.budget_id)) is not None]

        states = self._tried(lambda: self._store.atomically(work), lambda: list[BudgetState]())
        self._seen(states)
        return states

    def _seen(self, states: Iterable[BudgetState]) -> None:
        """Remember totals, for a store that goes away or forgets."""
        for state in states:
            self._known[state.budget_id] = state.tokens_used
            self._latest[state.budget_id] = state
            if state.budget_type == "session":
                self._cost = state.cost_usd

    def cost(self) -> float:
        """Return the cost of this session in USD, as the store said last and what was paid since, oracle and agents included."""
        self.states()
        return self._cost + self._debts.cost_usd(self._session)

    def left(self) -> str:
        """Return what is left of the budgets in one line, once half of one is used; as the store said last."""
        return left_line([s for spec in self._specs if (s := self._latest.get(spec.budget_id)) is not None])

    def snapshot(self) -> str:
        """Budgets and circuit in one line for the prompt, with guidance where a limit is near."""
        circuit = self.gate.circuit() or CircuitState(self.gate.circuit_id)
        return snapshot_line(self.states(), circuit, self.gate.book)

    def _tried(self, work: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """`work`, or `otherwise` where the store is gone; debts are paid first."""
        if self._debts.resting(self._clock.monotonic()):
            return otherwise()
        try:
            if self._debts.due:
                self._late += raised(self._debts.pay(self._store, self._known, self._clock.now()))
            if self._to_recover:
                self._late += self._recovered()
                self._to_recover = ""
            return work()
        except StoreUnreachable as error:
            self._debts.outage(error, self._clock.monotonic())
            return otherwise()
