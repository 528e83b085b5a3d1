"""The tool calls of a Claude Code session: whether one may be made, what its end means, when the loop must end."""

from __future__ import annotations

from lopen.claude_hooks import hook_output
from lopen.claude_hooks.config import table
from lopen.claude_hooks.event import AGENT_TOOLS, command_of, edited, kind_of, polls
from lopen.claude_hooks.hook_output import Answer
from lopen.claude_hooks.verify_commands import passed, runs_one, verify_commands
from lopen.guardrails.call_history import CallEnd, signature
from lopen.limits.agents import OVERRIDE, Agents, spawn
from lopen.limits.breaker import announce_call, end_call, trip, trip_on_cost
from lopen.limits.circuit import ALLOW, LATER, WAIT, CallDecision, CircuitCall
from lopen.limits.records import Alert, Incident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lopen.claude_hooks.session import HookSession

REFUSALS = 2  # of one circuit in a row end the loop
LATER_REFUSALS = 5  # of calls that only come too soon
OUTPUTS_KEPT = 20


class CallGuard:
    """The calls' part of `SessionGuard`."""

    def __init__(self, session: HookSession, root: str, nested_in: str | None) -> None:
        self._session = session
        self._root = root
        self._nested_in = nested_in
        self._event = session.event
        self._memo = session.memo
        self._rows = session.rows
        self._now = session.now
        self._id = session.id
        self._pending = session.pending

    # the events

    def before(self) -> Answer:
        """A call is about to be made."""
        if paused := self._session.spending.paused:
            return self._ends(hook_output.exhausted(paused))
        decision = self._asked(self._call())
        if not decision.allowed:
            return self._refused(decision)
        self._memo.get("refused", {}).pop(self._event.agent, None)
        name = self._event.call_id or self._signature
        self._pending.begin(name, self._event.tool, self._signature, self._event.agent)
        return Answer()

    def after(self) -> Answer:
        """A call ended, well or not."""
        session, event = self._session, self._event
        self._memo["posted"] = True
        name = event.call_id or self._pending.name_of(self._signature)
        self._pending.end(name)
        if event.tool in AGENT_TOOLS:
            session.agents.call_ended(name, event, self._now.timestamp())
        end = CallEnd(
            event.tool,
            self._signature,
            event.ok,
            tree="" if event.ok or not command_of(event) else self._tree(),
            nonce=name,
            edited=edited(event),
            agent=event.agent,
            progressed=self._progressed(),
        )
        decision = self._ended(end, verified=passed(event, self._root))
        session.count_usage()
        if paused := session.spending.paused:
            return self._ends(hook_output.exhausted(paused))
        return self._refused(decision) if decision is not None else Answer()

    def batch_ended(self) -> Answer:
        """All calls of a message are answered, and the model would be asked again."""
        agent = self._event.agent
        refusal = self._memo.get("batch", {}).pop(agent, None)
        rows = self._memo.setdefault("refused_batches", {})
        if paused := self._session.spending.paused:
            return Answer(stop=hook_output.exhausted(paused))
        if refusal is None:
            rows.pop(agent, None)
            return Answer()
        rule, kind, needs_ack, text = refusal
        before = rows.get(agent, [rule, 0])
        count = before[1] + 1 if before[0] == rule else 1
        rows[agent] = [rule, count]
        most = LATER_REFUSALS if kind == LATER else REFUSALS
        return Answer(stop=text) if needs_ack or count >= most else Answer()

    def failures_in_transcript(self) -> str:
        """Take note of calls that no other event told of; the reason to hold the next one, where they trip the circuit."""
        found = ""
        for call_id in self._session.spending.failed:
            if call_id == self._event.call_id or (call := self._pending.end(call_id)) is None:
                continue
            tool, sign, agent = call
            if tool in AGENT_TOOLS:  # refused by the person, or failed
                self._session.agents.ended(call_id)
            decision = self._ended(CallEnd(tool, sign, False, nonce=call_id, agent=agent))
            if decision is not None:
                found = self._trip_text(decision, short=True)
        return found

    # answers

    def _ends(self, reason: str) -> Answer:
        return Answer(reason, stop=reason)

    def _refused(self, decision: CallDecision) -> Answer:
        """The refusal; the one that only a person lifts, and the second in a row of one circuit, end the loop."""
        text = self._reason(decision)
        agent = self._event.agent
        rows = self._memo.setdefault("refused", {})
        again = rows.get(agent) == decision.rule and decision.kind != LATER
        rows[agent] = decision.rule
        batch = self._memo.setdefault("batch", {})
        batch[agent] = [decision.rule, decision.kind, decision.needs_ack, text]
        return Answer(text, stop=text if decision.needs_ack or again else "")

    def _reason(self, decision: CallDecision) -> str:
        """Why a call is held back; one beside a probe waits for that one's end, not for a time."""
        circuit = self._rows.circuit(self._id) if decision.kind == WAIT else None
        if circuit is None or circuit.state != "half_open":
            return self._trip_text(decision, short=True)
        return hook_output.beside_probe(
            circuit.rule, self._pending.tool_of(circuit.probe[0] if circuit.probe else "")
        )

    def _trip_text(self, decision: CallDecision, *, short: bool = False) -> str:
        from lopen.limits.wording import trip_text  # only for a refusal

        return trip_text(decision, self._now, short=short)

    # calls

    @property
    def _signature(self) -> str:
        if "signature" not in self.__dict__:
            self.__dict__["signature"] = signature(self._event.tool, self._event.arguments)
        found: str = self.__dict__["signature"]
        return found

    def _call(self) -> CircuitCall:
        """The call as circuits see it. A person's prompt begins a task, from which `max_iterations` counts."""
        kind = kind_of(self._event, table(self._session.settings, "hooks")["external_commands"])
        command = command_of(self._event)
        return CircuitCall(
            self._event.tool,
            self._signature,
            self._turn(),
            "hook" if self._nested_in is not None else kind,
            f"prompt/{self._memo.get('prompts', 0)}",
            self._in_probe(),
            self._event.call_id,
            self._event.agent,
            bool(command)
            and self._session.book.verifiable
            and runs_one(command, verify_commands(self._root)),
        )

    def _in_probe(self) -> bool:
        """The call is made by a sub-agent that is the probe; while it runs, every call is, where nothing tells."""
        if self._event.agent:
            self._memo["tells_agents"] = True
        elif self._memo.get("tells_agents"):
            return False
        agents = self._pending.agent_marks()
        circuit = self._rows.circuit(self._id) if agents else None
        return (
            circuit is not None
            and circuit.state == "half_open"
            and bool(circuit.probe and circuit.probe[0] in agents)
        )

    def _turn(self) -> str:
        """The message before the call's own; without a transcript, a call after a finished call is a new turn."""
        if found := self._session.spending.place(self._event.agent).turn_of(self._event.call_id):
            return found
        if self._memo.pop("posted", False):
            self._memo["turn"] = int(self._memo.get("turn", 0)) + 1
        return f"turn/{self._memo.get('turn', 0)}"

    def _asked(self, call: CircuitCall) -> CallDecision:
        session, agents = self._session, None
        if call.kind in ("agent", "external"):
            dear = trip_on_cost(self._rows, self._id, session.limits, self._now, session.book)
            if dear is not None:
                session.spending.alerts += dear[1]
                return dear[0]
        if call.kind == "agent":
            lifted = bool(self._memo.get("lifted"))
            agents, refused = self._spawned(lifted)
            if refused is not None:
                return refused
            if lifted:
                session.agents.put(agents)
                started = f"{OVERRIDE}: a sub-agent was started beyond the limits"
                self._rows.add_incident(Incident(self._id, "override", started, self._now))
                return CallDecision(ALLOW)
        circuit_id = f"session:{self._nested_in}" if self._nested_in else self._id
        decision, alerts = announce_call(self._rows, circuit_id, call, self._now, session.book)
        session.spending.alerts += alerts
        if agents is not None and decision.allowed:
            session.agents.put(agents)
        return decision

    def _spawned(self, lifted: bool) -> tuple[Agents, CallDecision | None]:
        """The agents with this one; Claude Code's own cannot be ended, so a sixth at once is held back."""
        session, agents = self._session, self._session.agents.state
        name = self._event.call_id or self._signature
        after, answer = spawn(agents, name, self._now.timestamp(), session.limits, lifted=lifted)
        if answer.allowed and answer.ended:
            seen = (
                f"{len(agents.running)} sub-agents run, which is all that may at once;"
                " the next may start when one of them ends"
            )
            decision = CallDecision(LATER, self._id, "agent_spawn", seen)
            self._alert_once(decision)
            return agents, decision
        if answer.allowed:
            self._memo.pop("crowded", None)
            return after, None
        if answer.until is not None:
            return agents, CallDecision(LATER, self._id, "agent_spawn", answer.seen, answer.until)
        decision, alerts = trip(self._rows, self._id, "agent_spawn", answer.seen, self._now, session.book)
        session.spending.alerts += alerts
        return agents, decision

    def _alert_once(self, decision: CallDecision) -> None:
        """For the first start of several that find no room."""
        if self._memo.get("crowded"):
            return
        self._memo["crowded"] = True
        from lopen.limits.wording import new_id

        text = self._trip_text(decision)
        self._rows.add_alert(Alert(new_id(), self._id, "circuit_tripped", text, timestamp=self._now))

    def _ended(self, end: CallEnd, *, verified: bool = False) -> CallDecision | None:
        session = self._session
        counted = end_call(self._rows, self._id, end, self._now, session.book, passed_verify=verified)
        session.spending.alerts += counted.alerts
        return counted.decision

    def _progressed(self) -> bool:
        """The call polls, and gave something else than the last time."""
        event = self._event
        if not event.ok or not polls(event):
            return False
        outputs: dict[str, str] = self._memo.get("outputs", {})
        before = outputs.pop(self._signature, "")
        self._memo["outputs"] = dict([*outputs.items(), (self._signature, event.output)][-OUTPUTS_KEPT:])
        return before != event.output

    def _tree(self) -> str:
        from lopen.claude_hooks.work_tree import tree_mark  # only for a command that failed

        return tree_mark(self._root, self._session.settings["hooks.timeout_s"] / 4)
