"""The meter: what the loop asks before it spends, and tells after. Budgets and cost here, calls in `gate`.

Checked before the call: input and longest answer are promised in every budget, and settled with what was
really used, so that a budget is overshot by no more than the estimate's error. Where the store is gone
everything is allowed, said once, and counted when it is back (contract §4, §7).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TypeVar

from lopen.clock import Clock
from lopen.events import Event
from lopen.limits.agents import AgentLimits, agent_limits, spent
from lopen.limits.answers import BudgetReached, Grant, ModuleCheck, raised
from lopen.limits.budget import BudgetSpec, BudgetState, Charge, Usage, format_usage, opened
from lopen.limits.charging import charge_all, open_all, promise, release
from lopen.limits.circuit import CircuitState
from lopen.limits.debts import Charged, Debt, Debts, settle
from lopen.limits.gate import Gate
from lopen.limits.guarding import lose_probe, put_agents, read_agents
from lopen.limits.outage import StoreUnreachable
from lopen.limits.owner import is_gone, this_process
from lopen.limits.records import Alert, Reservation
from lopen.limits.report import snapshot_line
from lopen.limits.rules import rule_book
from lopen.limits.specs import specs_for
from lopen.limits.store import LimitsStore, Rows
from lopen.limits.texts import new_id
from lopen.llm import messages
from lopen.settings.schema import Settings

EXTERNAL_AGENTS = ("oracle", "research")  # whose cost falls under `resources.cost_*`

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
        exempt: tuple[str, ...] = (),
        max_cost_usd: float | None = None,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        """`exempt`: circuit rules that do not hold (rapid_fire, external_api for a model on loopback).

        `max_cost_usd` is `--max-cost`; None takes the setting, 0 is no limit. `warn` is told once when the
        store goes and once when it is back.
        """
        self._store = store
        self._budget = settings.budget
        self._clock = clock
        self._resources: AgentLimits = agent_limits(settings.resources.model_dump())
        self._max_cost = settings.budget.max_cost_usd if max_cost_usd is None else max_cost_usd
        self._debts = Debts(warn)
        self._known: dict[str, int] = {}
        self._late: tuple[Alert, ...] = ()  # raised when debts were paid, told with the next settlement
        self._specs: tuple[BudgetSpec, ...] = ()
        self._session = ""
        self._agent = ""
        book = rule_book(
            settings.circuit.model_dump(),
            api_session_max=self._resources.api_session_max,
            exempt=exempt,
            history=settings.memory.tool_history_max,
        )
        self.gate = Gate(store, self._tried, clock, book, self._resources)

    # opening

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
        self.gate.enter(f"session:{session_id}", agent, task or "")
        self._opened()

    def _opened(self) -> list[BudgetState]:
        now = self._clock.now()
        return self._tried(
            lambda: self._store.atomically(lambda rows: open_all(rows, self._specs, now, self._known)),
            lambda: [opened(spec, now) for spec in self._specs],
        )

    def recover(self, session_id: str) -> tuple[Event, ...]:
        """What dead processes left unsettled in this session counts as spent; their probe as failed.

        To be called by whoever holds the session's lock, before anything is reserved.
        """

        def work(rows: Rows) -> tuple[Alert, ...]:
            alerts: list[Alert] = []
            for left in rows.reservations(session_id):
                if is_gone(left.owner):
                    release(rows, left)
                    alerts += self._charged_as_left(rows, left)
            lose_probe(rows, f"session:{session_id}", self._clock.now(), self.gate.book)
            return tuple(alerts)

        return raised(self._tried(lambda: self._store.atomically(work), tuple))

    def _charged_as_left(self, rows: Rows, left: Reservation) -> list[Alert]:
        states = [rows.budget(budget_id) for budget_id in left.budget_ids]
        specs = [spec_of(state) for state in states if state is not None]
        charge = Charge(left.tokens, requests=1, agent=left.agent)
        return [a for _, alerts in charge_all(rows, specs, charge, self._clock.now()) for a in alerts]

    # requests

    def reserve(self, estimate_input: int, max_tokens: int, agent: str = "") -> Grant:
        """Promise a request its input and answer in every budget; BudgetReached where there is no room.

        `estimate_input` in weighted tokens. The answer shrinks to what is left, not below 1,024.
        """
        self._hold_cost()
        now = self._clock.now()
        ids = tuple(spec.budget_id for spec in self._specs)
        agent = agent or self._agent
        wanted = Reservation(new_id(), self._session, this_process(), ids, max(0, estimate_input), agent, now)
        specs = self._specs
        answer = self._tried(
            lambda: self._store.atomically(lambda rows: promise(rows, specs, wanted, max_tokens, now)),
            lambda: None,
        )
        if answer is None:
            return Grant(max_tokens, specs, agent, wanted, sure=False)
        if isinstance(answer[0], BudgetState):
            state, alerts = answer[0], answer[1]
            raise BudgetReached(state, events=raised(alerts if isinstance(alerts, tuple) else ()))
        kept, room = answer
        return Grant(room if isinstance(room, int) else max_tokens, specs, agent, kept)

    def _hold_cost(self) -> None:
        if self._max_cost <= 0:
            return
        state = self._session_state()
        if state is not None and state.cost_usd >= self._max_cost:
            message = f"this session has cost ${state.cost_usd:.2f} of the ${self._max_cost:.2f} it may"
            cents = math.ceil(round(100 * (state.cost_usd + self._max_cost), 4))  # as much again
            command = f"lopen resume {self._session} --max-cost {cents / 100:g}"
            raise BudgetReached(state, message=message, command=command)

    def settle(
        self, grant: Grant, usage: messages.Usage, cost_usd: float | None, model: str = ""
    ) -> tuple[Event, ...]:
        """Charge what the request really used. `cost_usd` None: the model has no known price."""
        counts = Usage(
            usage.input_tokens, usage.output_tokens, usage.cache_write_tokens, usage.cache_read_tokens
        )
        tokens = counts.billed(self._budget.cache_read_weight)
        charge = Charge(tokens, counts, 1, cost_usd, grant.agent, model)
        debt = Debt(grant.specs, charge, grant.reservation, grant.sure)
        now = self._clock.now()

        def work(rows: Rows) -> tuple[Charged, tuple[Alert, ...]]:
            charged = settle(rows, debt, now)
            return charged, self._external_cost(rows, charge) if charged else ()

        def later() -> tuple[Charged, tuple[Alert, ...]]:
            self._debts.owe(debt)
            return [], ()

        charged, dear = self._tried(lambda: self._store.atomically(work), later)
        for state, _ in charged:
            self._known[state.budget_id] = state.tokens_used
        late, self._late = self._late, ()
        return raised((*late, *(a for _, alerts in charged for a in alerts), *dear))

    def _external_cost(self, rows: Rows, charge: Charge) -> tuple[Alert, ...]:
        """Keep what sub-agents and external calls cost; the alert on the one charge that reaches the warning."""
        if charge.agent not in EXTERNAL_AGENTS or not charge.cost_usd:
            return ()
        limits, circuit_id = self._resources, self.gate.circuit_id
        agents, warn = spent(read_agents(rows, circuit_id), charge.cost_usd, limits)
        put_agents(rows, circuit_id, agents)
        if not warn:
            return ()
        message = (
            f"sub-agents and external calls have cost ${agents.cost_usd:.2f} in this session"
            f" and stop at ${limits.cost_block_usd:.2f}"
        )
        alert = Alert(new_id(), circuit_id, "warning_threshold", message, timestamp=self._clock.now())
        rows.add_alert(alert)
        return (alert,)

    def abandon(self, grant: Grant) -> None:
        """The request failed and nothing is billed: give the promise back."""
        self._tried(
            lambda: self._store.atomically(lambda rows: release(rows, grant.reservation)), lambda: False
        )

    # looking

    def states(self) -> list[BudgetState]:
        """Module, session and task as they stand (empty where the store is gone)."""
        wanted = [spec.budget_id for spec in self._specs]
        unknown: list[BudgetState | None] = []
        found = self._tried(
            lambda: self._store.atomically(lambda rows: [rows.budget(i) for i in wanted]), lambda: unknown
        )
        states = [state for state in found if state is not None]
        self._known.update({state.budget_id: state.tokens_used for state in states})
        return states

    def _session_state(self) -> BudgetState | None:
        return next((s for s in self.states() if s.budget_type == "session"), None)

    def cost(self) -> float:
        """What this session has cost in USD, oracle and sub-agents included; unknown models cost nothing."""
        state = self._session_state()
        return state.cost_usd if state else 0.0

    def module_check(self) -> ModuleCheck | None:
        """The module's budget for the guardrail; None where the store is gone."""
        state = next((s for s in self.states() if s.budget_type == "module"), None)
        if state is None:
            return None
        return ModuleCheck(
            state.budget_id,
            state.token_utilization,
            state.request_utilization,
            state.status,
            state.announced,
            state.confirmed,
            format_usage(state.tokens_used, state.max_tokens),
        )

    def confirm_module(self) -> None:
        """A person said to go on past the confirmation threshold; asked again only after an extension."""

        def work(rows: Rows) -> None:
            state = rows.budget(self._specs[0].budget_id)
            if state is not None:
                rows.put_budget(state.replace(confirmed=True))

        self._tried(lambda: self._store.atomically(work), lambda: None)

    def snapshot(self) -> str:
        """Budgets and circuit in one line for the prompt, with guidance where a limit is near."""
        circuit = self.gate.circuit() or CircuitState(self.gate.circuit_id)
        return snapshot_line(self.states(), circuit, self.gate.book)

    # the store

    def _tried(self, work: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """`work`, or `otherwise` where the store is gone; debts are paid first."""
        if self._debts.resting(self._clock.monotonic()):
            return otherwise()
        try:
            if self._debts.tokens() or self._debts.gone:
                self._late += self._debts.pay(self._store, self._known, self._clock.now())
            return work()
        except StoreUnreachable as error:
            self._debts.outage(error, self._clock.monotonic())
            return otherwise()


def spec_of(state: BudgetState) -> BudgetSpec:
    """The spec that opens this budget again as it is."""
    return BudgetSpec(**{name: getattr(state, name) for name in BudgetSpec.names})
