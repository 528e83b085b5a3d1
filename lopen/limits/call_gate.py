"""The gate that each tool call, sub-agent and external call of a session passes before it runs and after it ends.

The gate counts the call and applies the rules of circuits and habits. It returns the end of a cooldown and
the texts for the model and the person; the caller waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

from lopen.core.clock import Clock
from lopen.core.events import CircuitChanged, Event, Notice
from lopen.guardrails.call_history import RUN, CallEnd, CallHistory, WastefulHabit, signature, subject_of
from lopen.guardrails.habits import HabitLimits, after_turn, untested_edits
from lopen.limits.agents import OVERRIDE, AgentLimits, ended, put_agents, read_agents, spawn
from lopen.limits.call_counting import Answer, CountedEnd, announce_call, end_call, trip, trip_on_cost
from lopen.limits.circuits import (
    ALLOW,
    LATER,
    TRIP,
    CallDecision,
    CircuitCall,
    CircuitState,
    RuleBook,
    cut_off,
    trip_text,
)
from lopen.limits.records import Alert, Incident, new_id, raised
from lopen.limits.store import LimitsStore, Rows
from lopen.settings.schema import ToolDiscipline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolPass:
    """Leave to make one call. Hand it back to `CallGate.after_tool` when the call ended.

    `ended`: the sub-agent that had to end to make room.
    """

    tool: str
    signature: str
    counted: bool = True
    ended: str = ""
    nonce: str = ""  # this call's, which no other with the same signature has


@dataclass(frozen=True, slots=True)
class ToolTrip:
    """A call that is not made. `text` is for the model and the person.

    Either `until` says when calls may go on, which the caller waits for (clock.sleep), or `needs_ack` says
    that only `command`, a person's, lets them. `later`: nothing is wrong with the call, it only comes too soon.
    """

    rule: str
    text: str
    until: datetime | None
    needs_ack: bool
    command: str
    events: tuple[Event, ...] = ()
    later: bool = False


class Try(Protocol):
    """Run `work`, or `otherwise` where the store is gone."""

    def __call__(self, work: Callable[[], T], otherwise: Callable[[], T]) -> T: ...


class CallGate:
    """The circuit, the history of calls and the sub-agents of one session."""

    def __init__(
        self,
        store: LimitsStore,
        tried: Try,
        clock: Clock,
        book: RuleBook,
        limits: AgentLimits,
        discipline: ToolDiscipline,
    ) -> None:
        self._store = store
        self._tried = tried
        self._clock = clock
        self._limits = limits
        self._habits = HabitLimits.of(discipline)
        self._calls = CallHistory()  # the latest known
        self._task = ""
        self._lifted = False
        self._inside = ""  # the sub-agent whose calls these are
        self._running = ""  # the mark of the model's call that began last
        self._asked = 0  # external calls made inside it
        self._here = new_id()  # turn labels of two processes never mean one turn
        self.book = book
        self.circuit_id = ""

    def enter(self, circuit_id: str, task: str) -> None:
        """Count later calls for this circuit and task."""
        self.circuit_id, self._task = circuit_id, task

    def plan_known(self, tasks: int) -> None:
        """Allow 3 external calls for each planned task, where that is more than the limit."""
        most = max(self._limits.api_session_max, 3 * tasks)
        self.book = replace(self.book, api_session_max=most)

    def circuit(self) -> CircuitState | None:
        """Return the circuit; None where it is unknown."""
        return self._atomically(lambda rows: rows.circuit(self.circuit_id), None)

    def calls(self) -> CallHistory:
        """Return the history of calls, with the calls of earlier processes."""
        circuit = self.circuit()
        if circuit is not None:
            self._calls = circuit.calls
        return self._calls

    def begin_conversation(self, subject: str, shown: Collection[str] = ()) -> None:
        """Begin a conversation about a task's id or a planning step; `shown` as in `CallHistory.conversation`."""

        def work(rows: Rows) -> CallHistory:
            state = rows.circuit(self.circuit_id) or CircuitState(self.circuit_id)
            state = replace(state, calls=state.calls.conversation(subject, shown))
            rows.put_circuit(state)
            return state.calls

        self._calls = self._atomically(work, self._calls.conversation(subject, shown))

    # tools

    def before_tool(
        self, tool: str, arguments: Mapping[str, Any], turn: int, call_id: str = "", *, writes: str = ""
    ) -> ToolPass | ToolTrip:
        """Decide whether the call may be made. `call_id` is the model's, `writes` the file that the call writes.

        A call that a kill cut off and lopen runs again has the same turn and id: it counts once.
        """
        call = self._call(tool, signature(tool, arguments), turn, "tool", self._mark(turn, call_id))
        call = replace(call, subject=subject_of(tool, writes))
        now = self._clock.now()
        answer = self._answered(
            lambda rows: announce_call(rows, self.circuit_id, call, now, self.book), call, now
        )
        self._running, self._asked = call.nonce, 0
        return answer

    def cut_off(self, turn: int, call_id: str) -> None:
        """Take back a call that is answered as interrupted: it is held against nobody."""

        def work(rows: Rows) -> None:
            state = rows.circuit(self.circuit_id)
            if state is not None:
                rows.put_circuit(cut_off(state, self._mark(turn, call_id), of_task=bool(self._task)))

        self._atomically(work, None)

    def failed_before(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether the call runs a command that failed when it last ran."""
        call = signature(tool, arguments)
        return CallEnd(tool, call).is_run and self.calls().failures_in_row(call) > 0

    def after_tool(
        self, passed: ToolPass, end: CallEnd, *, passed_verify: bool = False
    ) -> tuple[ToolTrip | None, tuple[WastefulHabit, ...]]:
        """Count the end of a call; return the trip that it caused, and the wasteful habits that it shows.

        `passed_verify`: a verify command passed, so the calls of the task are counted from here.
        """
        end = replace(end, signature=passed.signature, nonce=passed.nonce, agent=self._inside)
        now = self._clock.now()
        counted = CountedEnd(self._calls)  # where the store is gone, habits are not looked for
        if passed.counted:
            counted = self._atomically(
                lambda rows: end_call(
                    rows,
                    self.circuit_id,
                    end,
                    now,
                    self.book,
                    passed_verify=passed_verify,
                    habits=self._habits,
                ),
                counted,
            )
        self._calls = counted.calls
        if counted.decision is None:
            return None, counted.habits
        return self._tripped(counted.decision, counted.alerts, now), counted.habits

    def end_turn(self, tests_exist: Callable[[], bool]) -> tuple[WastefulHabit, ...]:
        """Return the habit that shows only when all calls of a turn have ended."""
        here = after_turn(self._calls, tests_exist)
        if here is self._calls and untested_edits(here, self._habits) is None:
            return ()

        def work(rows: Rows) -> tuple[CallHistory, tuple[WastefulHabit, ...]]:
            state = rows.circuit(self.circuit_id) or CircuitState(self.circuit_id, calls=self._calls)
            calls = after_turn(state.calls, lambda: here.tests_known)
            habit = untested_edits(calls, self._habits)
            found = () if habit is None else (habit,)
            rows.put_circuit(replace(state, calls=calls.found(found)))
            return calls.found(found), found

        unknown: tuple[WastefulHabit, ...] = ()
        self._calls, found = self._atomically(work, (here, unknown))
        return found

    # external calls

    def external_call(self, turn: int, name: str = "oracle") -> ToolPass | ToolTrip:
        """Ask for one of lopen's own calls to another model; where the window is full, the trip has `until`."""
        now = self._clock.now()
        mark = f"{self._running}/{self._asked}" if self._running else new_id()
        call = self._call(name, f"external:{name}", turn, "oracle", mark, inner=True)

        def work(rows: Rows) -> Answer:
            if spent := trip_on_cost(rows, self.circuit_id, self._limits, now, self.book):
                return spent
            return announce_call(rows, self.circuit_id, call, now, self.book)

        answer = self._answered(work, call, now)
        self._asked += isinstance(answer, ToolPass)
        return answer

    def external_done(self, passed: ToolPass, ok: bool) -> ToolTrip | None:
        """Count the end of an external call."""
        return self.after_tool(passed, CallEnd(passed.tool, passed.signature, ok))[0]

    def spending(self) -> ToolTrip | None:
        """Return a trip where sub-agents and external calls have cost all that they may."""
        now = self._clock.now()
        answer = self._atomically(
            lambda rows: trip_on_cost(rows, self.circuit_id, self._limits, now, self.book), None
        )
        return self._tripped(*answer, now) if answer else None

    # sub-agents

    def name_agent(self, question: str) -> str:
        """Name a sub-agent by the call that starts it, so that one that is cut off and starts again counts once."""
        about = f"{self._running or new_id()} {question}"
        return f"research-{blake2b(about.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"

    @contextmanager
    def inside(self, agent_id: str) -> Iterator[None]:
        """Count the calls of this context for a sub-agent: inside the call that started it, in turns of its own."""
        self._inside = f"/{agent_id}"
        try:
            yield
        finally:
            self._inside = ""

    def lift_spawn_limits(self, prompt: str) -> tuple[Event, ...]:
        """Lift the limits on starting sub-agents where the person's prompt says so, and log it."""
        if OVERRIDE not in prompt:
            return ()
        self._lifted = True
        incident = Incident(self.circuit_id, "override", f"{OVERRIDE} in the prompt", self._clock.now())
        self._atomically(lambda rows: rows.add_incident(incident), None)
        return (Notice("warning", f"{OVERRIDE}: the limits on starting sub-agents are lifted for this run"),)

    def spawn_agent(self, agent_id: str, turn: int) -> ToolPass | ToolTrip:
        """Decide whether the sub-agent may start; `ended` in the pass names the agent that has to end for it."""
        now = self._clock.now()
        mark = f"agent:{agent_id}"
        call = self._call("agent", mark, turn, "agent", mark, inner=True)
        oldest: list[str] = []
        no_alerts: tuple[Alert, ...] = ()

        def work(rows: Rows) -> Answer:
            oldest.clear()
            if spent := trip_on_cost(rows, self.circuit_id, self._limits, now, self.book):
                return spent
            circuit = rows.circuit(self.circuit_id)
            again = circuit is not None and circuit.calls.call(mark) is not None
            agents, lifted = read_agents(rows, self.circuit_id), self._lifted or again
            agents, answer = spawn(agents, agent_id, now.timestamp(), self._limits, lifted=lifted)
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
        return replace(answer, ended=oldest[0]) if oldest and isinstance(answer, ToolPass) else answer

    def agent_done(self, agent_id: str, ok: bool = True) -> ToolTrip | None:
        """Count the end of a sub-agent."""

        def work(rows: Rows) -> None:
            put_agents(rows, self.circuit_id, ended(read_agents(rows, self.circuit_id), agent_id))

        self._atomically(work, None)
        passed = ToolPass("agent", f"agent:{agent_id}")
        return self.after_tool(passed, CallEnd(passed.tool, passed.signature, ok))[0]

    # inside

    def _call(
        self, tool: str, sign: str, turn: int, kind: str, mark: str, *, inner: bool = False
    ) -> CircuitCall:
        label = f"{self._here}{self._inside}/{turn}"
        verifies = CallEnd(tool, sign).is_run and tool != RUN
        inner = inner or bool(self._inside)
        return CircuitCall(tool, sign, label, kind, self._task, inner, mark, self._inside, verifies)

    def _mark(self, turn: int, call_id: str) -> str:
        """Return the mark of a call of the model: some endpoints give each turn's calls the same ids."""
        return f"{turn}{self._inside}/{call_id}" if call_id else new_id()

    def _answered(
        self, work: Callable[[Rows], Answer], call: CircuitCall, now: datetime
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
