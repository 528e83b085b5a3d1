"""A Claude Code session as one event finds it: its memo, budgets, calls and sub-agents, inside one transaction.

Budgets are charged from transcripts. What a request costs stands in a table that `scripts/write_hook_prices.py`
writes.
"""

from __future__ import annotations

import os

from lopen.claude_hooks import pending_usage
from lopen.claude_hooks.config import AGENT, session_spec, table, task_spec
from lopen.claude_hooks.event import HookEvent, Malformed
from lopen.claude_hooks.running_calls import Pending, SubAgents
from lopen.claude_hooks.transcript import BilledRequest, TranscriptPosition, beyond, files_of, higher, read
from lopen.core.quick_stdlib import loads, timedelta
from lopen.limits.agents import add_cost, agent_limits
from lopen.limits.budget import BudgetState, BudgetUsage, Charge, cleared, opened
from lopen.limits.circuit import CircuitState, cooled
from lopen.limits.rules import rule_book

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any

    from lopen.limits.agents import AgentLimits
    from lopen.limits.budget import BudgetSpec
    from lopen.limits.records import Alert
    from lopen.limits.store import Rows

FILES_KEPT = 200
LAST_PARTS = 8  # of each transcript, read when a session ends: no later event reads the rest
TABLE = os.path.join(os.path.dirname(__file__), "prices.json")
_AROUND = r"^.*?(?=claude-)|\[.*\]$|@.*$|-latest$|-v\d+:\d+$|-\d{8}(?=$|-v\d)"
_table: dict[str, list[tuple[int, list[float]]]] = {}  # of prices, once it is read


class HookSession:
    """The session's state, which the guards of events and of calls share."""

    def __init__(
        self,
        rows: Rows,
        event: HookEvent,
        settings: dict[str, Any],
        now: datetime,
        event_id: str,
        *,
        verifiable: bool,
    ) -> None:
        """`event_id`: the event's own, by which its tokens are counted once. `verifiable`: there are verify commands."""
        self.rows = rows
        self.event = event
        self.settings = settings
        self.now = now
        self.event_id = event_id
        self.id = f"session:{event.session}"
        self.memo: dict[str, Any] = rows.memo(f"hooks:{event.session}") or {}
        self.limits = agent_limits(table(settings, "resources"))
        self.spending = Spending(rows, event, settings, self.memo, self.limits, now)
        self.pending = Pending(self.memo)
        self.agents = SubAgents(rows, self.id, self.memo)
        self.book = rule_book(
            table(settings, "circuit"),
            api_session_max=self.limits.api_session_max,
            history=settings["memory.tool_history_max"],
            verifiable=verifiable,
        )

    def circuit(self) -> CircuitState:
        """The circuit as it stands at this moment."""
        return cooled(self.rows.circuit(self.id) or CircuitState(self.id), self.now.timestamp())

    def count_usage(self) -> None:
        """Charge the tokens that the event itself carries; a transcript tells them otherwise, and all of them."""
        usage = self.event.usage
        if usage is None or self.event.transcript:
            return
        counts = usage.counts
        self.spending.charge(self.event.model, usage, sum(counts) - usage.output_tokens)
        pending_usage.note(self.memo, self.event_id)


class Spending:
    """The budgets of one session, inside one transaction."""

    def __init__(
        self,
        rows: Rows,
        event: HookEvent,
        settings: dict[str, Any],
        memo: dict[str, Any],
        limits: AgentLimits,
        now: datetime,
    ) -> None:
        """`memo`: what is remembered of the session, kept by the caller."""
        self._rows = rows
        self._event = event
        self._settings = settings
        self._memo = memo
        self._limits = limits
        self._now = now
        self.alerts: list[Alert] = []
        self.failed: list[str] = []  # calls that a transcript shows as answered with an error
        self._specs: list[BudgetSpec] = []
        self.budgets: dict[str, BudgetState] = {}
        self._open(session_spec(settings, event.session))
        if kind := memo.get("task_type", settings["hooks.task_type"]):
            self._open(task_spec(settings, event.session, kind))

    def _open(self, spec: BudgetSpec, *, anew: bool = False) -> None:
        earlier = self._rows.budget(spec.budget_id)
        if earlier is not None and earlier.spec.agent != AGENT:
            raise Malformed(f"the event names {self._event.session}, which is a session of lopen's own")
        forgotten = earlier is not None and self._now - earlier.last_updated > self._kept
        known = cleared(earlier, self._now) if earlier is not None and (anew or forgotten) else earlier
        state = opened(spec, self._now, known)
        if state != earlier:
            self._rows.put_budget(state)
        self._specs = [*(s for s in self._specs if s.budget_id != spec.budget_id), spec]
        self.budgets[spec.budget_id] = state

    @property
    def _kept(self) -> timedelta:
        return timedelta(seconds=self._settings["budget.ttl_s"])

    def begin_task(self, kind: str) -> BudgetState:
        """Count what follows for a task of this type, too."""
        self._memo["task_type"] = kind
        self._open(task_spec(self._settings, self._event.session, kind), anew=True)
        return self.budgets[f"task:{self._event.session}"]

    @property
    def paused(self) -> BudgetState | None:
        """The budget that holds everything back."""
        return next((state for state in self.budgets.values() if state.stopped), None)

    @property
    def session(self) -> BudgetState:
        """The session's own budget."""
        return self.budgets[f"session:{self._event.session}"]

    def catch_up(self, parts: int = 1) -> None:
        """Charge every request that the transcripts show and that is not charged yet.

        `parts`: so much of each file is read at most, in the units of `transcript.MOST_AT_ONCE`.
        """
        if not self._event.transcript:
            return
        places: dict[str, list[Any]] = self._memo.get("files", {})
        for agent, path, size in files_of(self._event.transcript, self._event.agent_transcript):
            place = TranscriptPosition(*places[agent]) if agent in places else TranscriptPosition()
            begun = -1
            for _ in range(parts):
                if place.offset in (size, begun):  # a last line that is not whole yet is not read
                    break
                begun = place.offset
                place = self._read(path, agent, place)
                places.pop(agent, None)
                places[agent] = list(place.fields().values())
        self._memo["files"] = dict(list(places.items())[-FILES_KEPT:])

    def _read(self, path: str, agent: str, place: TranscriptPosition) -> TranscriptPosition:
        """Charge what one file says beyond `place`; where to go on."""
        news = read(path, self._event.session, agent, place)
        for request in news.requests:
            self._charge_once(request)
        self.failed += news.failed
        return news.place

    def place(self, agent: str) -> TranscriptPosition:
        """Where an agent's transcript was read to."""
        found = self._memo.get("files", {}).get(agent)
        return TranscriptPosition(*found) if found else TranscriptPosition()

    def _charge_once(self, request: BilledRequest) -> None:
        """Each request once, in whichever transcript it stands; what is older than counts are kept is not charged."""
        if request.at and request.at < (self._now - self._kept).strftime("%Y-%m-%dT%H:%M:%S"):
            return
        key = f"request:{request.key}"
        known = self._rows.memo(key)
        charged = BudgetUsage(*known["counts"]) if known else BudgetUsage()
        new = beyond(request.usage, charged)
        if not any(new.counts):
            return
        counts = list(higher(request.usage, charged).counts)
        self._rows.put_memo(key, {"counts": counts, "at": self._now.isoformat(timespec="seconds")})
        prompt = sum(counts) - counts[1]
        self.charge(request.model, new, prompt, requests=0 if known else 1, agent=request.agent)

    def charge(
        self, model: str, usage: BudgetUsage, prompt: int, *, requests: int = 1, agent: str = ""
    ) -> None:
        """Charge a part of one request. `prompt`: tokens of its whole prompt, which its price may depend on."""
        cost = cost_usd(model, usage.counts, prompt)
        from lopen.limits.charging import charge_all  # only where something is charged

        tokens = usage.billed(self._settings["budget.cache_read_weight"])
        charge = Charge(tokens, usage, requests, cost, AGENT, model)
        for state, alerts in charge_all(self._rows, self._specs, charge, self._now):
            self.budgets[state.budget_id] = state
            self.alerts += alerts
        if agent and cost:
            circuit_id = f"session:{self._event.session}"
            self.alerts += add_cost(self._rows, circuit_id, cost, self._limits, self._now)


def cost_usd(model: str, counts: Iterable[int], prompt: int) -> float | None:
    """US dollars for tokens of each kind, by a prompt of this size; None for a model without a known price."""
    tiers = _prices().get(plain_name(model), ())
    rates = [rates for above, rates in tiers if prompt > above or not above]
    if not rates:
        return None
    return sum(rate * count for rate, count in zip(rates[-1], counts, strict=True)) / 1e6


def plain_name(model: str) -> str:
    """The model's name without provider, date and variant."""
    import re  # only where something is charged

    return re.sub(_AROUND, "", model)


def _prices() -> dict[str, list[tuple[int, list[float]]]]:
    if not _table:
        with open(TABLE, "rb") as file:
            _table.update(loads(file.read()))
    return _table
