"""The gate that each tool call, sub-agent and external call of a session passes before it runs and after it ends.

The rules of circuits and habits are pure; here they are applied to a store, within one transaction, with the incident
and the alert of a trip. Claude Code's hooks apply them without a gate. The gate returns a pass or a decision with the end
of a cooldown; the caller waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lopen.core.money import dollars
from lopen.guardrails.call_history import RUN, CallEnd, CallHistory, WastefulHabit, signature, subject_of
from lopen.guardrails.habits import after_turn, find_habits, untested_edits
from lopen.limits.agents import OVERRIDE, AgentLimits, ended, is_spent, put_agents, read_agents, spawn
from lopen.limits.circuits import (
    ALLOW,
    LATER,
    TRIP,
    CallDecision,
    CircuitCall,
    CircuitState,
    RuleBook,
    after_call,
    before_call,
    cut_off,
    refusal,
    tripped,
    verified,
)
from lopen.limits.records import Alert, Incident, new_id
from lopen.limits.store import LimitsStore, Rows

if TYPE_CHECKING:  # late: hooks import this module
    from lopen.core.clock import Clock
    from lopen.core.events import Event
    from lopen.settings.schema import ToolDiscipline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolPass:
    """Leave to make one call. Hand it back to `CallGate.after_tool` when the call ended."""

    tool: str
    signature: str
    counted: bool = True
    nonce: str = ""  # this call's, which no other with the same signature has


@dataclass(frozen=True, slots=True)
class CountedEnd:
    """The history after a call ended, the habits found, and a decision where the end tripped the circuit."""

    calls: CallHistory
    habits: tuple[WastefulHabit, ...] = ()
    decision: CallDecision | None = None


# the rules, applied within a transaction


def announce_call(
    rows: Rows, circuit_id: str, call: CircuitCall, now: datetime, book: RuleBook
) -> CallDecision:
    """Count a call that is about to be made, and decide about it."""
    before = rows.circuit(circuit_id) or CircuitState(circuit_id)
    after, decision = before_call(before, call, now.timestamp(), book)
    if after != before:
        rows.put_circuit(after)
    return _logged(rows, decision, now)


def end_call(
    rows: Rows,
    circuit_id: str,
    end: CallEnd,
    now: datetime,
    book: RuleBook,
    *,
    passed_verify: bool = False,
    habits: ToolDiscipline | None = None,
) -> CountedEnd:
    """Count the end of a call, and look for habits where limits are given: hooks apply the rules of circuits only."""
    before = rows.circuit(circuit_id) or CircuitState(circuit_id)
    after, decision = after_call(before, end, now.timestamp(), book)
    found = find_habits(after.calls, end, habits) if habits else ()
    after = replace(after, calls=after.calls.found(found))
    if passed_verify:
        after = verified(after)
    rows.put_circuit(after)
    return CountedEnd(after.calls, found, _logged(rows, decision, now) if decision else None)


def trip(rows: Rows, circuit_id: str, rule: str, seen: str, now: datetime, book: RuleBook) -> CallDecision:
    """Open the circuit for a reason outside its windows; a person closes it. An open circuit stays open."""
    state = rows.circuit(circuit_id) or CircuitState(circuit_id)
    if state.tripped and state.needs_ack:
        return refusal(state, book)
    after, decision = tripped(state, book[rule], seen, now.timestamp(), book, ack=True)
    rows.put_circuit(after)
    return _logged(rows, decision, now)


def trip_on_cost(
    rows: Rows, circuit_id: str, limits: AgentLimits, now: datetime, book: RuleBook
) -> CallDecision | None:
    """Open the circuit where sub-agents and external calls have cost all that they may; None where they may go on."""
    if not book.enabled or not is_spent(read_agents(rows, circuit_id), limits):
        return None
    seen = f"sub-agents and external calls have cost {dollars(limits.cost_block_usd)} or more"
    return trip(rows, circuit_id, "external_api", seen, now, book)


def drop_probe(rows: Rows, circuit_id: str) -> None:
    """Let the next call be the probe: the process of the one that ran is gone."""
    before = rows.circuit(circuit_id)
    if before is not None and before.probe is not None:
        rows.put_circuit(replace(before, probe=None))


def _logged(rows: Rows, decision: CallDecision, now: datetime) -> CallDecision:
    """Store the incident of a trip, and an alert where the circuit needs a person; return the decision with it."""
    if decision.kind != TRIP:
        return decision
    circuit_id = decision.circuit_id
    rows.add_incident(
        Incident(circuit_id, decision.rule, decision.seen, now, decision.until, decision.needs_ack)
    )
    if not decision.needs_ack:
        return decision
    alert = Alert(new_id(), circuit_id, "circuit_tripped", decision.seen, timestamp=now)
    rows.add_alert(alert)
    return replace(decision, alerts=(alert,))


# the gate


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
        self._habits = discipline
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
    ) -> ToolPass | CallDecision:
        """Decide whether the call may be made. `call_id` is the model's, `writes` the file that the call writes.

        A call that a kill cut off and lopen runs again has the same turn and id: it counts once.
        """
        call = self._call(tool, signature(tool, arguments), turn, "tool", self._mark(turn, call_id))
        call = replace(call, subject=subject_of(tool, writes, arguments))
        now = self._clock.now()
        answer = self._answered(lambda rows: announce_call(rows, self.circuit_id, call, now, self.book), call)
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
    ) -> tuple[CallDecision | None, tuple[WastefulHabit, ...]]:
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
        return counted.decision, counted.habits

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

    def external_call(self, turn: int, name: str = "oracle") -> ToolPass | CallDecision:
        """Ask for one of lopen's own calls to another model; where the window is full, the answer has `until`."""
        if not self.book[
            "external_api"
        ].enabled:  # a recording, or a model on this machine: nothing is counted
            return self.spending() or ToolPass(name, "", counted=False)
        now = self._clock.now()
        mark = f"{self._running}/{self._asked}" if self._running else new_id()
        call = self._call(name, f"external:{name}", turn, "oracle", mark, inner=True)

        def work(rows: Rows) -> CallDecision:
            if spent := trip_on_cost(rows, self.circuit_id, self._limits, now, self.book):
                return spent
            return announce_call(rows, self.circuit_id, call, now, self.book)

        answer = self._answered(work, call)
        self._asked += isinstance(answer, ToolPass)
        return answer

    def external_done(self, passed: ToolPass) -> None:
        """Count the end of an external call."""
        self.after_tool(passed, CallEnd(passed.tool, passed.signature))

    def spending(self) -> CallDecision | None:
        """Return a trip where sub-agents and external calls have cost all that they may."""
        now = self._clock.now()
        return self._atomically(
            lambda rows: trip_on_cost(rows, self.circuit_id, self._limits, now, self.book), None
        )

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
        from lopen.core.events import Notice  # late: a hook raises none

        return (Notice("warning", f"{OVERRIDE}: the limits on starting sub-agents are lifted for this run"),)

    def spawn_agent(self, agent_id: str, turn: int) -> ToolPass | CallDecision:
        """Decide whether the sub-agent may start; of too many at once the oldest counts as ended."""
        now = self._clock.now()
        mark = f"agent:{agent_id}"
        call = self._call("agent", mark, turn, "agent", mark, inner=True)

        def work(rows: Rows) -> CallDecision:
            if spent := trip_on_cost(rows, self.circuit_id, self._limits, now, self.book):
                return spent
            circuit = rows.circuit(self.circuit_id)
            again = circuit is not None and circuit.calls.call(mark) is not None
            agents, lifted = read_agents(rows, self.circuit_id), self._lifted or again
            agents, answer = spawn(agents, agent_id, now.timestamp(), self._limits, lifted=lifted)
            if not answer.allowed and answer.until is None:
                return trip(rows, self.circuit_id, "agent_spawn", answer.seen, now, self.book)
            if not answer.allowed:
                return CallDecision(LATER, self.circuit_id, "agent_spawn", answer.seen, answer.until)
            decision = CallDecision(ALLOW)
            if not self._lifted:
                decision = announce_call(rows, self.circuit_id, call, now, self.book)
            if decision.allowed:
                put_agents(rows, self.circuit_id, agents)
            return decision

        return self._answered(work, call)

    def agent_done(self, agent_id: str) -> None:
        """Count the end of a sub-agent."""

        def work(rows: Rows) -> None:
            put_agents(rows, self.circuit_id, ended(read_agents(rows, self.circuit_id), agent_id))

        self._atomically(work, None)
        self.external_done(ToolPass("agent", f"agent:{agent_id}"))

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

    def _answered(self, work: Callable[[Rows], CallDecision], call: CircuitCall) -> ToolPass | CallDecision:
        decision = self._atomically(work, None)
        if decision is None:
            return ToolPass(call.tool, call.signature, counted=False)
        return ToolPass(call.tool, call.signature, nonce=call.nonce) if decision.allowed else decision

    def _atomically(self, work: Callable[[Rows], T], otherwise: T) -> T:
        return self._tried(lambda: self._store.atomically(work), lambda: otherwise)
