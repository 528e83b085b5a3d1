"""The gate: asked before every tool call, sub-agent and external call of a session, told after each.

Waiting out a cooldown is the caller's; the gate says until when, and what to tell the model and the person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from lopen.base.clock import Clock
from lopen.base.events import CircuitChanged, Event, Notice
from lopen.base.money import dollars
from lopen.limits.answers import ToolPass, ToolTrip, raised
from lopen.limits.circuits.agents import OVERRIDE, AgentLimits, ended, spawn, too_dear
from lopen.limits.circuits.call_events import announce_call, end_call, put_agents, read_agents, trip
from lopen.limits.circuits.circuit import (
    ALLOW,
    LATER,
    TRIP,
    CallDecision,
    CallOutcome,
    CircuitCall,
    CircuitState,
)
from lopen.limits.circuits.rules import RuleBook
from lopen.limits.circuits.signature import signature
from lopen.limits.stores.records import Alert, Incident
from lopen.limits.stores.store import LimitsStore, Rows
from lopen.limits.texts import new_id, trip_text

T = TypeVar("T")
EXTERNAL = "external_api"


class Try(Protocol):
    """Runs the first; the second where the store is gone."""

    def __call__(self, work: Callable[[], T], otherwise: Callable[[], T]) -> T: ...


class Gate:
    """One session's circuit and agents."""

    def __init__(
        self, store: LimitsStore, tried: Try, clock: Clock, book: RuleBook, limits: AgentLimits
    ) -> None:
        self._store = store
        self._tried = tried
        self._clock = clock
        self._limits = limits
        self._task = ""
        self._lifted = False
        self._inside = ""  # the sub-agent whose calls these are
        self._here = new_id()  # turn labels of two processes never mean one turn
        self.book = book
        self.circuit_id = ""

    def enter(self, circuit_id: str, task: str) -> None:
        """What follows belongs to this circuit and task."""
        self.circuit_id, self._task = circuit_id, task

    def plan_known(self, tasks: int) -> None:
        """External calls of a session: 3 for each planned task, where that is more than the limit."""
        most = max(self._limits.api_session_max, 3 * tasks)
        self.book = self.book.replace(api_session_max=most)

    def circuit(self) -> CircuitState | None:
        """The circuit as it stands; None where nothing is known of it."""
        return self._atomically(lambda rows: rows.circuit(self.circuit_id), None)

    # tools

    def before_tool(self, tool: str, arguments: Mapping[str, Any], turn: int) -> ToolPass | ToolTrip:
        """Whether the call may be made."""
        return self._asked(self._call(tool, signature(tool, arguments), turn, "tool"))

    def after_tool(
        self,
        passed: ToolPass,
        ok: bool,
        *,
        exit_code: int | None = None,
        tree: str = "",
        passed_verify: bool = False,
    ) -> ToolTrip | None:
        """The call ended. A failure is `ok` false, or the same command failing again over the same `tree`.

        `passed_verify`: it was a verify command and it passed, so that calls are counted from here.
        """
        if not passed.counted:
            return None
        outcome = CallOutcome(passed.tool, passed.signature, ok, exit_code, tree, passed.nonce)
        now = self._clock.now()
        unknown: tuple[CallDecision | None, tuple[Alert, ...]] = (None, ())
        decision, alerts = self._atomically(
            lambda rows: end_call(
                rows, self.circuit_id, outcome, now, self.book, passed_verify=passed_verify
            ),
            unknown,
        )
        return self._tripped(decision, alerts, now) if decision else None

    # external calls

    def external_call(self, turn: int, name: str = "oracle") -> ToolPass | ToolTrip:
        """Leave for one of lopen's own calls to another model; a full window is answered with `until`."""
        now = self._clock.now()
        call = self._call(name, f"external:{name}", turn, "oracle", inner=True)

        def work(rows: Rows) -> tuple[CallDecision, tuple[Alert, ...]]:
            if dear := self._too_dear(rows, now):
                return dear
            return announce_call(rows, self.circuit_id, call, now, self.book)

        return self._answered(work, call, now)

    def external_done(self, passed: ToolPass, ok: bool) -> ToolTrip | None:
        """The external call ended."""
        return self.after_tool(passed, ok)

    def spending(self) -> ToolTrip | None:
        """What stops a sub-agent's next request: what such calls may cost is used up."""
        now = self._clock.now()
        answer = self._atomically(lambda rows: self._too_dear(rows, now), None)
        return self._tripped(*answer, now) if answer else None

    def _too_dear(self, rows: Rows, now: datetime) -> tuple[CallDecision, tuple[Alert, ...]] | None:
        if not self.book[EXTERNAL].enabled or not too_dear(read_agents(rows, self.circuit_id), self._limits):
            return None
        seen = f"sub-agents and external calls have cost {dollars(self._limits.cost_block_usd)} or more"
        return trip(rows, self.circuit_id, EXTERNAL, seen, now, self.book)

    # sub-agents

    @contextmanager
    def inside(self, agent_id: str) -> Iterator[None]:
        """Calls made meanwhile are a sub-agent's: they belong to the call that started it, its turns are its own."""
        self._inside = f"/{agent_id}"
        try:
            yield
        finally:
            self._inside = ""

    def lift_spawn_limits(self, prompt: str) -> tuple[Event, ...]:
        """The person's `SUDO PARALLEL` in the prompt lifts the spawn limits for this run; it is logged."""
        if OVERRIDE not in prompt:
            return ()
        self._lifted = True
        incident = Incident(self.circuit_id, "override", f"{OVERRIDE} in the prompt", self._clock.now())
        self._atomically(lambda rows: rows.add_incident(incident), None)
        return (Notice("warning", f"{OVERRIDE}: the limits on starting sub-agents are lifted for this run"),)

    def spawn_agent(self, agent_id: str, turn: int) -> ToolPass | ToolTrip:
        """Whether the sub-agent may start; `ended` in the pass names the one that has to end for it."""
        now = self._clock.now()
        call = self._call("agent", f"agent:{agent_id}", turn, "agent", inner=True).replace(nonce="")
        oldest: list[str] = []
        no_alerts: tuple[Alert, ...] = ()

        def work(rows: Rows) -> tuple[CallDecision, tuple[Alert, ...]]:
            oldest.clear()
            if dear := self._too_dear(rows, now):
                return dear
            agents = read_agents(rows, self.circuit_id)
            agents, answer = spawn(agents, agent_id, now.timestamp(), self._limits, lifted=self._lifted)
            if not answer.allowed and answer.until is None:
                return trip(rows, self.circuit_id, "agent_spawn", answer.seen, now, self.book)
            if not answer.allowed:
                return CallDecision(LATER, self.circuit_id, "agent_spawn", answer.seen, answer.until), ()
            decision, alerts = CallDecision(ALLOW), no_alerts
            if not self._lifted:
                decision, alerts = announce_call(rows, self.circuit_id, call, now, self.book)
            if decision.allowed:
                put_agents(rows, self.circuit_id, agents)
                oldest.extend([answer.ended] if answer.ended else [])
            return decision, alerts

        answer = self._answered(work, call, now)
        return answer.replace(ended=oldest[0]) if oldest and isinstance(answer, ToolPass) else answer

    def agent_done(self, agent_id: str, ok: bool = True) -> ToolTrip | None:
        """The sub-agent ended."""

        def work(rows: Rows) -> None:
            put_agents(rows, self.circuit_id, ended(read_agents(rows, self.circuit_id), agent_id))

        self._atomically(work, None)
        return self.after_tool(ToolPass("agent", f"agent:{agent_id}"), ok)

    # inside

    def _call(self, tool: str, sign: str, turn: int, kind: str, *, inner: bool = False) -> CircuitCall:
        label = f"{self._here}{self._inside}/{turn}"
        return CircuitCall(tool, sign, label, kind, self._task, inner or bool(self._inside), new_id())

    def _asked(self, call: CircuitCall) -> ToolPass | ToolTrip:
        now = self._clock.now()
        return self._answered(
            lambda rows: announce_call(rows, self.circuit_id, call, now, self.book), call, now
        )

    def _answered(
        self, work: Callable[[Rows], tuple[CallDecision, tuple[Alert, ...]]], call: CircuitCall, now: datetime
    ) -> ToolPass | ToolTrip:
        answer = self._atomically(work, None)
        if answer is None:
            return ToolPass(call.tool, call.signature, counted=False)
        decision, alerts = answer
        return (
            ToolPass(call.tool, call.signature, nonce=call.nonce)
            if decision.allowed
            else self._tripped(decision, alerts, now)
        )

    def _atomically(self, work: Callable[[Rows], T], otherwise: T) -> T:
        return self._tried(lambda: self._store.atomically(work), lambda: otherwise)

    def _tripped(self, decision: CallDecision, alerts: tuple[Alert, ...], now: datetime) -> ToolTrip:
        until = None if decision.until is None else datetime.fromtimestamp(decision.until, UTC)
        changed: tuple[Event, ...] = ()
        if decision.kind == TRIP:
            when = until.isoformat(timespec="seconds") if until else ""
            changed = (CircuitChanged(self.circuit_id, decision.rule, "open", decision.seen, when),)
        return ToolTrip(
            decision.rule,
            trip_text(decision, now),
            until,
            decision.needs_ack,
            f"lopen circuit ack {self.circuit_id}" if decision.needs_ack else "",
            (*changed, *raised(alerts)),
            decision.kind == LATER,
        )
