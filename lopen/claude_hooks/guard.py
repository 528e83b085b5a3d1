"""What each of the four events does to the budgets and circuits of its Claude Code session.

Everything an event changes, its place in the transcript included, changes in one transaction: what could
not be stored is read again with the next event, so that nothing is lost and nothing counted twice.
"""

from __future__ import annotations

from datetime import datetime

from lopen.base.value import Value
from lopen.claude_hooks import pending_usage
from lopen.claude_hooks.config import AGENT, session_spec, table
from lopen.claude_hooks.event import AGENT_TOOLS, HookEvent, Malformed, kind_of
from lopen.claude_hooks.running_calls import Pending
from lopen.claude_hooks.texts import budget_line, circuit_line, exhausted, warning
from lopen.claude_hooks.verify_commands import passed, verify_commands
from lopen.guardrails.call_history import CallEnd
from lopen.guardrails.signature import signature
from lopen.limits.budgets.budget import BudgetState, BudgetUsage, Charge, opened
from lopen.limits.budgets.charging import charge_all
from lopen.limits.circuits.agents import OVERRIDE, Agents, agent_limits, ended, spawn
from lopen.limits.circuits.call_events import announce_call, end_call, put_agents, read_agents, trip
from lopen.limits.circuits.circuit import ALLOW, LATER, WAIT, CallDecision, CircuitCall, CircuitState
from lopen.limits.circuits.rules import rule_book
from lopen.limits.stores.records import Alert, Incident
from lopen.limits.texts import NEAR_LIMIT, trip_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lopen.limits.stores.store import Rows

EVENTS = ("pre-tool-use", "post-tool-use", "user-prompt-submit", "session-start")


class Answer(Value):
    """Why the call is blocked, what to give into the context, what to log."""

    block: str = ""
    context: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


class SessionGuard:
    """One event of one session, inside one transaction."""

    def __init__(
        self,
        rows: Rows,
        event: HookEvent,
        settings: dict[str, Any],
        now: datetime,
        root: str,
        event_id: str,
        faults: tuple[str, ...] = (),
    ) -> None:
        """`event_id`: the event's own, by which its tokens are counted once. `faults`: of the settings."""
        self.event_id = event_id
        self.faults = faults
        self.rows = rows
        self.root = root
        self.event = event
        self.now = now
        self.settings = settings
        self.limits = agent_limits(table(settings, "resources"))
        verifiable = next(verify_commands(root), None) is not None
        self.book = rule_book(
            table(settings, "circuit"),
            api_session_max=self.limits.api_session_max,
            exempt=() if verifiable else ("max_iterations",),  # nothing could ever set the count back
            history=settings["memory.tool_history_max"],
        )
        self.id = f"session:{event.session}"
        self.memo: dict[str, Any] = rows.memo(f"hooks:{event.session}") or {}
        self.pending = Pending(self.memo)
        self.alerts: list[Alert] = []
        self.budget = self._opened()

    def _opened(self) -> BudgetState:
        spec = session_spec(self.settings, self.event.session)
        earlier = self.rows.budget(self.id)
        if earlier is not None and earlier.agent != AGENT:
            raise Malformed(f"the event names {self.event.session}, which is a session of lopen's own")
        state = opened(spec, self.now, earlier)
        if state != earlier:
            self.rows.put_budget(state)
        self.spec = spec
        return state

    def run(self, name: str, alerts: tuple[Alert, ...] = ()) -> Answer:
        """What to answer the event `name`. `alerts`: of what was counted late for this session."""
        self.alerts += alerts
        answer = {
            "pre-tool-use": self.before_tool,
            "post-tool-use": self.after_tool,
            "user-prompt-submit": self.prompted,
            "session-start": self.started,
        }[name]()
        if self.memo.get("faults", []) != list(self.faults):  # once a session, and when they change
            self.memo["faults"] = list(self.faults)
            answer = answer.replace(log=(*self.faults, *answer.log))
        self.rows.put_memo(f"hooks:{self.event.session}", self.memo)
        warnings = tuple(warning(self.budget, a) for a in self.alerts if a.alert_type == "warning_threshold")
        if answer.block:  # then nothing is given into the context, and the warning comes but once
            return answer.replace(block="\n\n".join((answer.block, *warnings)))
        return answer.replace(context=(*warnings, *answer.context))

    # the four events

    def before_tool(self) -> Answer:
        failed = self._catch_up()
        if failed:
            return failed
        if self.budget.stopped:
            return Answer(exhausted(self.budget))
        decision = self._asked(self._call())
        if not decision.allowed:
            return Answer(self._refusal(decision))
        self.pending.begin(self.event.call_id or self._signature, self.event.tool, self._signature)
        return Answer()

    def _refusal(self, decision: CallDecision) -> str:
        """Why a call is held back; one beside a probe waits for that one's end, not for a time."""
        circuit = self.rows.circuit(self.id) if decision.kind == WAIT else None
        if circuit is None or circuit.state != "half_open":
            return trip_text(decision, self.now)
        tool = self.pending.tool_of(circuit.probe)
        return (
            f"Circuit breaker half-open after {circuit.rule}: one call ({tool}) is being tried, and no other is"
            " let through before it ends. Make this call again then."
        )

    def after_tool(self) -> Answer:
        self.memo["posted"] = True
        name = self.event.call_id or self.pending.name_of(self._signature)
        self.pending.end(name)
        if self.event.tool in AGENT_TOOLS:
            self._agent_done(name)
        outcome = CallEnd(self.event.tool, self._signature, self.event.ok, nonce=name)
        decision = self._ended(outcome, verified=passed(self.event, self.root))
        failed: Answer | None = None
        if self.event.usage:
            self._charged({self.event.model: self.event.usage})
            pending_usage.note(self.memo, self.event_id)
        else:
            failed = self._catch_up()
        if self.budget.stopped:
            return Answer(exhausted(self.budget))
        if decision is not None:
            return Answer(trip_text(decision, self.now))
        return failed or Answer()

    def prompted(self) -> Answer:
        self._catch_up()
        log: tuple[str, ...] = ()
        self.memo["prompts"] = int(self.memo.get("prompts", 0)) + 1
        self.memo["lifted"] = OVERRIDE in self.event.prompt
        if self.memo["lifted"]:
            self.rows.add_incident(Incident(self.id, "override", f"{OVERRIDE} in the prompt", self.now))
            log = (f"{OVERRIDE}: the limits on starting sub-agents are lifted until the next prompt",)
        circuit = self.rows.circuit(self.id) or CircuitState(
            self.id, max_iterations=self.book["max_iterations"].threshold
        )
        lines = [f"## Budget Status\n{budget_line(self.budget)}\n{circuit_line(circuit, self.book)}"]
        if self.budget.stopped:
            lines.append(exhausted(self.budget))
        elif self.budget.utilization >= self.budget.alert_threshold or circuit.state != "closed":
            lines.append(NEAR_LIMIT)
        return Answer(context=tuple(lines), log=log)

    def started(self) -> Answer:
        self.pending.clear()
        agents = read_agents(self.rows, self.id)
        if agents.running and self.event.source != "compact":  # they went with the process that ran them
            put_agents(self.rows, self.id, agents.replace(running=()))
        text = (
            "lopen guards this session: token budget, circuit breaker, limits on sub-agents and external calls."
            f" {NEAR_LIMIT}\n{budget_line(self.budget)}"
        )
        wrong = "\n".join(("Settings that are wrong and do not hold (tell the person):", *self.faults))
        return Answer(context=(text, *((wrong,) if self.faults else ())))

    # calls

    @property
    def _signature(self) -> str:
        if "signature" not in self.__dict__:
            self.__dict__["signature"] = signature(self.event.tool, self.event.arguments)
        found: str = self.__dict__["signature"]
        return found

    def _call(self) -> CircuitCall:
        """What a person asks for in one prompt is one task: `max_iterations` counts from there."""
        task = f"prompt/{self.memo.get('prompts', 0)}"
        mark, inside = self.event.call_id, self._in_probe()
        return CircuitCall(self.event.tool, self._signature, self._turn(), self._kind(), task, inside, mark)

    def _in_probe(self) -> bool:
        """The call is made by a sub-agent that is the probe; while it runs, every call is, where nothing tells."""
        if self.event.agent:
            self.memo["tells_agents"] = True
        elif self.memo.get("tells_agents"):
            return False
        agents = self.pending.agent_marks()
        circuit = self.rows.circuit(self.id) if agents else None
        return circuit is not None and circuit.state == "half_open" and circuit.probe in agents

    def _turn(self) -> str:
        """The transcript's newest message; without one, a call after a finished call is a new turn."""
        if self.memo.get("message"):
            return str(self.memo["message"])
        if self.memo.pop("posted", False):
            self.memo["turn"] = int(self.memo.get("turn", 0)) + 1
        return f"turn/{self.memo.get('turn', 0)}"

    def _kind(self) -> str:
        return kind_of(self.event, table(self.settings, "hooks")["external_commands"])

    def _asked(self, call: CircuitCall) -> CallDecision:
        agents: Agents | None = None
        lifted = bool(self.memo.get("lifted"))
        if call.kind == "agent":
            agents, refused = self._spawned(lifted)
            if refused is not None:
                return refused
            if lifted:
                put_agents(self.rows, self.id, agents)
                return CallDecision(ALLOW)
        decision, alerts = announce_call(self.rows, self.id, call, self.now, self.book)
        self.alerts += alerts
        if agents is not None and decision.allowed:
            put_agents(self.rows, self.id, agents)
        return decision

    def _spawned(self, lifted: bool) -> tuple[Agents, CallDecision | None]:
        """The agents with this one; Claude Code's own cannot be ended, so a sixth at once is held back."""
        agents = read_agents(self.rows, self.id)
        name = self.event.call_id or self._signature
        after, answer = spawn(agents, name, self.now.timestamp(), self.limits, lifted=lifted)
        if answer.allowed and answer.ended:
            seen = f"{len(agents.running)} sub-agents run at once, which is all that may"
            until = self.now.timestamp() + self.limits.agent_spawn_cooldown_s
            return agents, CallDecision(LATER, self.id, "agent_spawn", seen, until)
        if answer.allowed:
            return after, None
        if answer.until is not None:
            return agents, CallDecision(LATER, self.id, "agent_spawn", answer.seen, answer.until)
        decision, alerts = trip(self.rows, self.id, "agent_spawn", answer.seen, self.now, self.book)
        self.alerts += alerts
        return agents, decision

    def _agent_done(self, name: str) -> None:
        put_agents(self.rows, self.id, ended(read_agents(self.rows, self.id), name))

    def _ended(self, outcome: CallEnd, *, verified: bool = False) -> CallDecision | None:
        counted = end_call(self.rows, self.id, outcome, self.now, self.book, passed_verify=verified)
        self.alerts += counted.alerts
        return counted.decision

    # tokens

    def _catch_up(self) -> Answer | None:
        """Charge what the transcript shows since the last event, and take note of calls that failed.

        Gives an answer where one of those failures tripped the circuit.
        """
        if not self.event.transcript:
            return None
        from lopen.claude_hooks.transcript import read  # only where there is one

        offset, seen = int(self.memo.get("offset", 0)), self.memo.get("seen", {})
        reading = read(self.event.transcript, self.event.session, offset, seen)
        self.memo["offset"], self.memo["seen"] = reading.offset, reading.seen
        if reading.last_id:
            self.memo["message"] = reading.last_id
        self._charged(dict(reading.usage))
        for call_id in reading.failed:
            call = self.pending.end(call_id)
            if call and call[0] in AGENT_TOOLS:  # refused by the person, or failed: no other event tells
                self._agent_done(call_id)
            decision = self._ended(CallEnd(call[0], call[1], False, nonce=call_id)) if call else None
            if decision is not None:
                return Answer(trip_text(decision, self.now))
        return None

    def _charged(self, usage: dict[str, BudgetUsage]) -> None:
        weight = self.settings["budget.cache_read_weight"]
        for model, counts in usage.items():
            charge = Charge(counts.billed(weight), counts, 1, None, AGENT, model)
            [(self.budget, alerts)] = charge_all(self.rows, [self.spec], charge, self.now)
            self.alerts += alerts
