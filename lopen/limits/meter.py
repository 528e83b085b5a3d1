"""The meter: the loop asks it before it spends, and reports to it after. Budgets and cost here, calls in `gate`.

The check comes before the call: input and longest answer are promised in every budget, then settled with the real
use. So a budget is overshot by no more than the estimate's error. Where the store is gone everything is allowed, said
once, and counted when it is back (docs/reference/budgets-and-circuits.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from lopen.core.clock import Clock
from lopen.core.errors import PersonNeeded, StorageError, StoreUnreachable
from lopen.core.events import Event, Notice
from lopen.core.money import apart, cents_above, dollars
from lopen.core.process_identity import is_elsewhere, is_gone, this_process
from lopen.guardrails.guard import BudgetFacts
from lopen.limits.admin_actions import confirm_budget
from lopen.limits.agents import EXTERNAL_AGENTS, agent_limits, put_agents, read_agents
from lopen.limits.budget import (
    CONFIRMATION,
    GROUP,
    PAUSE,
    SMALLEST_ANSWER,
    TASK,
    WARNING,
    BudgetSpec,
    BudgetState,
    Charge,
    Crossing,
    extend_command,
    group_spec,
    opened,
    specs_for,
    standing_text,
)
from lopen.limits.call_gate import CallGate, drop_probe
from lopen.limits.charging import (
    BudgetRefusal,
    Debt,
    Debts,
    Quote,
    affordable,
    charge_cut_off,
    promise,
    release,
    replace_promise,
    settle,
)
from lopen.limits.circuits import CircuitState, rule_book
from lopen.limits.records import Alert, Reservation, decoded, field_values, new_id, raised
from lopen.limits.report import left_line, near_limit, snapshot_line
from lopen.limits.store import LimitsStore, Rows
from lopen.models import messages
from lopen.models.retry import Bucket, SharedPace, Turn
from lopen.settings.schema import Settings

T = TypeVar("T")
log = logging.getLogger("lopen.limits")
BUCKET = "endpoint:bucket"
PROMISED_S = 0.5  # until requests under way may have left some of their promises


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to make one request with an answer of at most `max_tokens`.

    `sure` is false if the store was gone at the request: the use is then counted when the store is back. `events`:
    news for a person.
    """

    max_tokens: int
    specs: tuple[BudgetSpec, ...]
    reservation: Reservation
    sure: bool = True
    events: tuple[Event, ...] = ()


class BudgetReached(PersonNeeded):
    """A budget lets no further request be made: it has no room (PAUSE), or a person has to confirm (CONFIRMATION).

    `events` hold the alerts of thresholds that were announced by this refusal.
    """

    def __init__(
        self, crossing: Crossing, message: str, command: str, events: tuple[Event, ...] = ()
    ) -> None:
        super().__init__(message, command=command)
        self.crossing = crossing
        self.events = events


def unpriced(answer_tokens: int) -> float | None:
    """The quote for a model without a known price."""
    return None


class Meter(SharedPace):
    """One session's view of its budgets. Calls, agents and external calls are asked for at `gate`."""

    def __init__(
        self,
        store: LimitsStore,
        settings: Settings,
        clock: Clock,
        *,
        exempt: tuple[str, ...] = (),
        group: str = "",
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        """Open nothing yet. `exempt` names circuit rules that do not hold, `group` the modules that share one budget.

        `warn` is told once when the store is out of reach and once when it is back.
        """
        self._store = store
        self._budget = settings.budget
        self._clock = clock
        self._group = (group_spec(settings.budget, group),) if group else ()
        self._limits = agent_limits(settings.resources.model_dump())
        self.max_cost = settings.budget.max_cost_usd  # 0 means no limit
        self._debts = Debts(store, self._limits, warn)
        self._latest: dict[str, BudgetState] = {}  # as the store said last
        self._late: tuple[Event, ...] = ()  # of debts paid meanwhile, told with the next settlement
        self._specs: tuple[BudgetSpec, ...] = ()
        self._unpriced_told = False
        self._session = ""
        self._to_recover = ""  # the session in whose stead `recover` waits for the store
        self._agent = ""
        book = rule_book(
            settings.circuit.model_dump(),
            api_session_max=self._limits.api_session_max,
            exempt=exempt,
            history=settings.memory.tool_history_max,
        )
        self.gate = CallGate(store, self._tried, clock, book, self._limits, settings.tool_discipline)

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
        """Charge later requests to this module, session and task; called again where the task changes."""
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
        self._specs += self._group
        self.gate.enter(f"session:{session_id}", task or "")
        now = self._clock.now()

        def work(rows: Rows) -> None:
            for spec in self._specs:
                rows.put_budget(opened(spec, now, rows.budget(spec.budget_id)))

        self._atomically(work, lambda: None)

    def recover(self, session_id: str) -> tuple[Event, ...]:
        """Count what dead processes left unsettled as spent, in every session of this module and of its group; their probe is nobody's failure.

        The holder of the module's lock calls it after `open`, before anything is reserved. While the
        store is gone it waits until the store is back.
        """
        self._to_recover = session_id
        return self.settle_up()

    def _recovered(self) -> tuple[Event, ...]:
        session_id = self._to_recover
        modules = {spec.budget_id for spec in self._specs if spec.budget_type == "module"}

        shared = {spec.budget_id for spec in self._group}

        def ours(left: Reservation) -> bool:
            if left.session == session_id or not modules.isdisjoint(left.budget_ids):
                return True
            return not shared.isdisjoint(left.budget_ids) and not is_elsewhere(left.owner)

        def work(rows: Rows) -> tuple[Event, ...]:
            now = self._clock.now()
            dead = [left for left in rows.reservations() if ours(left) and is_gone(left.owner)]
            alerts = [alert for left in dead for alert in charge_cut_off(rows, left, self._limits, now)]
            circuit_id = f"session:{session_id}"
            drop_probe(rows, circuit_id)
            agents = read_agents(rows, circuit_id)
            if agents.running:  # they went with their process
                put_agents(rows, circuit_id, replace(agents, running=()))
            return (*_cut_off_notice(dead), *raised(alerts))

        return self._store.atomically(work)

    def reserve(
        self, estimate_input: int, max_tokens: int, agent: str = "", quote: Quote = unpriced
    ) -> Grant:
        """Promise a request its input and answer in every budget; BudgetReached where one refuses.

        `estimate_input` in weighted tokens. The answer shrinks to the rest of the budget, not below 1,024.
        """
        max_tokens = self._affordable(quote, max_tokens)
        now = self._clock.now()
        agent = agent or self._agent
        # A task's budget stops further building, never the verdict on finished work.
        specs = tuple(s for s in self._specs if agent != "oracle" or s.budget_type != TASK)
        ids = tuple(spec.budget_id for spec in specs)
        told = self._unpriced_notice(quote, agent)
        wanted = Reservation(new_id(), self._session, this_process(), ids, max(0, estimate_input), agent, now)

        def ask() -> tuple[Reservation, int] | BudgetRefusal | None:
            return self._atomically(
                lambda rows: promise(rows, specs, wanted, max_tokens, now, quote), lambda: None
            )

        while isinstance(answer := ask(), BudgetRefusal) and not answer.crossing:
            self._clock.sleep(PROMISED_S)
        if answer is None:
            return Grant(max_tokens, specs, wanted, sure=False, events=told)
        if isinstance(answer, BudgetRefusal):
            standing = self._refused(answer.state, answer.crossing, wanted.tokens + max_tokens)
            raise BudgetReached(standing.crossing, standing.message, standing.command, raised(answer.alerts))
        kept, room = answer
        return Grant(room, specs, kept, events=told)

    def standing(self) -> BudgetFacts:
        """The answer that the budgets of module and session give to any request now; "" while the store is gone.

        A task's budget is asked for each of its requests alone: the next task has its own.
        """
        states = [state for state in self.states() if state.budget_type != TASK]
        order: tuple[Crossing, ...] = (PAUSE, CONFIRMATION)
        for crossing in order:
            for state in states:
                if state.refusal == crossing:
                    return self._refused(state, crossing)
        near = [state for state in states if state.utilization >= state.spec.alert_threshold]
        if not near:
            return BudgetFacts()
        return BudgetFacts(WARNING, standing_text(max(near, key=lambda s: s.utilization), WARNING))

    def confirm(self) -> None:
        """A person said that the module goes on past the confirmation threshold."""
        modules = [spec.budget_id for spec in self._specs if spec.budget_type == "module"]
        self._tried(lambda: [confirm_budget(self._store, each) for each in modules], list)

    def _refused(self, state: BudgetState, crossing: Crossing, need: int = SMALLEST_ANSWER) -> BudgetFacts:
        confirm = f"lopen confirm {self._session}"
        command = confirm if crossing == CONFIRMATION else extend_command(state, need)
        return BudgetFacts(crossing, standing_text(state, crossing), command)

    def _unpriced_notice(self, quote: Quote, agent: str) -> tuple[Event, ...]:
        """Say once that the limit on the cost of external calls does not hold; `--max-cost` refuses such a model."""
        block = self._limits.cost_block_usd
        if quote(0) is not None or not block or self._unpriced_told or agent not in EXTERNAL_AGENTS:
            return ()
        self._unpriced_told = True
        limit = f"resources.cost_block_usd ({dollars(block)})"
        line = f"no price is known for the {agent}'s model: {limit} does not hold for it"
        return (Notice("warning", line, "Budgets in tokens do: lopen budget show"),)

    def _affordable(self, quote: Quote, max_tokens: int) -> int:
        """The answer's length that `--max-cost` leaves money for; BudgetReached where it leaves none.

        A group's budget holds the money of all its modules.
        """
        if self.max_cost <= 0 or self._group:
            return max_tokens
        cost = self.cost()
        room = affordable(quote, max_tokens, self.max_cost - cost) if cost < self.max_cost else 0
        if room:
            return room
        own = self._latest.get(f"session:{self._session}")
        usual = cost / own.requests_used if own and own.requests_used else 0.0
        request = max(usual, quote(SMALLEST_ANSWER) or 0.0)
        spent, most = apart(cost, self.max_cost)
        message = f"this session has cost {spent} of the {most} it may"
        message += f", and another request may cost {dollars(request)}"
        command = f"lopen resume {self._session} --max-cost {cents_above(cost + request)}"
        raise BudgetReached(PAUSE, message, command)

    def _charge(self, grant: Grant, usage: messages.Usage, cost_usd: float | None, model: str) -> Charge:
        agent = grant.reservation.agent
        return Charge(usage.billed(), usage, 1, cost_usd, agent, model, usage.estimated)

    def settle(
        self, grant: Grant, usage: messages.Usage, cost_usd: float | None, model: str = ""
    ) -> tuple[Event, ...]:
        """Charge the real use of the request. `cost_usd` None: the model has no known price."""
        charge, now = self._charge(grant, usage, cost_usd, model), self._clock.now()

        def work(rows: Rows) -> list[Alert]:
            return settle(rows, grant.specs, charge, now, grant.reservation, self._limits, sure=grant.sure)

        def owe() -> list[Alert]:
            self._debts.owe(Debt(grant.specs, charge, grant.reservation, grant.sure))
            return []

        alerts = self._atomically(work, owe)
        self.states()  # for the case that the store goes before the next request
        late, self._late = self._late, ()
        return (*late, *raised(alerts))

    def settle_up(self) -> tuple[Event, ...]:
        """Pay the remaining debts at the end of a run, without waiting for the next try."""
        self._debts.wake()
        self._tried(tuple, tuple)
        late, self._late = self._late, ()
        return late

    def streamed(self, grant: Grant, usage: messages.Usage, cost_usd: float | None) -> Grant:
        """Keep the use so far of a request under way, for the case that it is cut off."""
        tokens = self._charge(grant, usage, cost_usd, "").tokens
        kept = replace(grant.reservation, estimate=tokens, estimate_usd=cost_usd)
        self._atomically(lambda rows: replace_promise(rows, kept), lambda: None)
        return replace(grant, reservation=kept)

    def cut_off(self, grant: Grant) -> tuple[Event, ...]:
        """Charge the use so far of a request that was cut off in this process, to no task."""
        left, now = grant.reservation, self._clock.now()
        alerts = self._atomically(lambda rows: charge_cut_off(rows, left, self._limits, now), list[Alert])
        return (*_cut_off_notice([left]), *raised(alerts))

    def abandon(self, grant: Grant) -> None:
        """The request failed and nothing is billed: give the promise back."""
        left = grant.reservation

        def owe() -> bool:
            with suppress(StorageError):  # else the next process charges the promise, as after a crash
                self._debts.owe(Debt(grant.specs, Charge(0), left, grant.sure))
            return False

        self._atomically(lambda rows: release(rows, left), owe)

    def change_bucket(self, change: Callable[[Bucket, float], tuple[Bucket, Turn]]) -> Turn:
        """Change the bucket of all processes that share the store; without it, each waits by itself alone."""

        def work(rows: Rows) -> Turn:
            kept = decoded(Bucket, rows.memo(BUCKET) or {})
            changed, turn = change(kept, self._clock.now().timestamp())
            if changed != kept:
                rows.put_memo(BUCKET, field_values(changed))
            return turn

        return self._atomically(work, Turn)

    def states(self) -> list[BudgetState]:
        """Module, session and task as they stand (empty where the store is gone)."""

        def work(rows: Rows) -> list[BudgetState]:
            return [state for spec in self._specs if (state := rows.budget(spec.budget_id)) is not None]

        states = self._atomically(work, list[BudgetState])
        self._latest |= {state.budget_id: state for state in states}
        return states

    def cost(self) -> float:
        """Return the cost of this session in USD, judge and agents included."""
        return self.spent()[1]

    def spent(self) -> tuple[int, float, int]:
        """Return this session's tokens, its cost in USD and its tokens without a price.

        As the store said last, with the charges that wait for it.
        """
        self.states()
        tokens, cost, unpriced = 0, 0.0, 0
        if known := self._latest.get(f"session:{self._session}"):
            tokens, cost, unpriced = known.tokens_used, known.cost_usd, known.unpriced_tokens
        for charge in self._debts.charges(self._session):
            tokens += charge.tokens
            cost += charge.cost_usd or 0.0
            unpriced += charge.unpriced_tokens
        return tokens, cost, unpriced

    def spent_in_words(self) -> str:
        """Return the cost of the task in progress, or of the session."""
        last = next((state for state in reversed(self.states()) if state.budget_type != GROUP), None)
        return f"{last.budget_id.replace(':', ' ')} has cost {dollars(last.cost_usd)} so far" if last else ""

    @property
    def knows_spent(self) -> bool:
        """False where the store has been gone since this process began: what earlier ones spent is unknown."""
        return f"session:{self._session}" in self._latest

    def left(self) -> str:
        """Return the rest of the budgets in one line, once half of one is used; as the store said last."""
        return left_line([s for spec in self._specs if (s := self._latest.get(spec.budget_id)) is not None])

    def snapshot(self, *, near_only: bool = False) -> str:
        """Budgets and circuit in one line for the model; with `near_only` empty while no limit is near."""
        circuit, states = self.gate.circuit() or CircuitState(self.gate.circuit_id), self.states()
        near = near_limit(states, circuit)
        return snapshot_line(states, circuit, self.gate.book, near=near) if near or not near_only else ""

    def _atomically(self, work: Callable[[Rows], T], otherwise: Callable[[], T]) -> T:
        return self._tried(lambda: self._store.atomically(work), otherwise)

    def _tried(self, work: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """`work`, or `otherwise` where the store is gone; debts are paid first."""
        if self._debts.resting(self._clock.monotonic()):
            return otherwise()
        try:
            if self._debts.due:
                self._late += raised(self._debts.pay(self._clock.now()))
            if self._to_recover:
                self._late += self._recovered()
                self._to_recover = ""
            return work()
        except (StoreUnreachable, StorageError) as error:
            self._debts.outage(error, self._clock.monotonic())
            return otherwise()


def _cut_off_notice(dead: Sequence[Reservation]) -> tuple[Event, ...]:
    """Tell what requests count as that were cut off: their input, and their answers as far as they came."""
    if not dead:
        return ()
    one = "a request that was cut off counts"
    what = one if len(dead) == 1 else f"{len(dead)} requests that were cut off count"
    tokens = sum(left.used_at_most for left in dead)
    return (Notice("detail", f"{what} as ≤ {tokens:,} tokens: the input, and the answer as far as it came"),)
