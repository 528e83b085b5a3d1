"""The tool calls of a Claude Code session: whether one may be made, what its end means, when the loop must end."""

from __future__ import annotations

import os
from functools import cached_property
from hashlib import blake2b

from lopen.claude_hooks import answers
from lopen.claude_hooks.answers import Answer
from lopen.claude_hooks.event import AGENT_TOOLS, edited, kind_of, passes_verify, polls, runs_verify
from lopen.claude_hooks.session import HookSession
from lopen.guardrails.call_history import CallEnd, signature, subject_of
from lopen.limits.agents import OVERRIDE, Agents, spawn
from lopen.limits.call_counting import announce_call, end_call, trip, trip_on_cost
from lopen.limits.circuits import ALLOW, LATER, WAIT, CallDecision, CircuitCall, trip_text
from lopen.limits.records import Alert, Incident, new_id

REFUSALS = 2  # of one circuit in a row end the loop
LATER_REFUSALS = 5  # of calls that only come too soon
OUTPUTS_KEPT = 20
MOST_CHANGED_FILES = 2_000


class CallGuard:
    """The calls' part of `SessionGuard`."""

    def __init__(self, session: HookSession, root: str, nested_in: str | None) -> None:
        self._session = session
        self._root = root
        self._nested_in = nested_in
        self._event = session.event
        self._tool_call = session.event.call
        self._memo = session.memo
        self._rows = session.rows
        self._now = session.now
        self._id = session.id
        self._pending = session.pending

    # the events

    def before(self) -> Answer:
        """A call is about to be made."""
        if paused := self._session.spending.paused:
            return self._ends(answers.exhausted(paused))
        decision = self._asked(self._call())
        if not decision.allowed:
            return self._refused(decision)
        self._memo.get("refused", {}).pop(self._event.agent, None)
        name = self._tool_call.id or self._signature
        self._pending.begin(name, self._tool_call.tool, self._signature, self._event.agent)
        return Answer()

    def after(self) -> Answer:
        """A call ended, well or not."""
        session, call = self._session, self._tool_call
        self._memo["posted"] = True
        name = call.id or self._pending.name_of(self._signature)
        self._pending.end(name)
        if call.tool in AGENT_TOOLS:
            session.agents.call_ended(name, call, self._now.timestamp())
        end = CallEnd(
            call.tool,
            self._signature,
            call.ok,
            tree="" if call.ok or not call.command else self._tree(),
            nonce=name,
            edited=edited(call),
            agent=self._event.agent,
            progressed=self._progressed(),
        )
        decision = self._ended(end, verified=passes_verify(call, session.settings.verify_commands))
        session.spending.count_call(call)
        if paused := session.spending.paused:
            return self._ends(answers.exhausted(paused))
        return self._refused(decision) if decision is not None else Answer()

    def batch_ended(self) -> Answer:
        """All calls of a message are answered, and the model would be asked again."""
        agent = self._event.agent
        refusal = self._memo.get("batch", {}).pop(agent, None)
        rows = self._memo.setdefault("refused_batches", {})
        if paused := self._session.spending.paused:
            return Answer(stop=answers.exhausted(paused))
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
            if call_id == self._tool_call.id or (call := self._pending.end(call_id)) is None:
                continue
            tool, sign, agent = call
            if tool in AGENT_TOOLS:  # refused by the person, or failed
                self._session.agents.ended(call_id)
            decision = self._ended(CallEnd(tool, sign, False, nonce=call_id, agent=agent))
            if decision is not None:
                found = trip_text(decision, self._now, short=True)
        return found

    # answers

    def _ends(self, reason: str) -> Answer:
        return Answer(reason, stop=reason)

    def _refused(self, decision: CallDecision) -> Answer:
        """The refusal; a pause that only a person lifts, and a circuit's second pause in a row, end the loop."""
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
            return trip_text(decision, self._now, short=True)
        return answers.beside_probe(
            circuit.rule, self._pending.tool_of(circuit.probe[0] if circuit.probe else "")
        )

    # calls

    @cached_property
    def _signature(self) -> str:
        return signature(self._tool_call.tool, self._tool_call.arguments)

    def _call(self) -> CircuitCall:
        """Return the call as circuits see it. A person's prompt begins a task, from which `max_iterations` counts."""
        call = self._tool_call
        kind = kind_of(call, self._session.settings["hooks"]["external_commands"])
        return CircuitCall(
            call.tool,
            self._signature,
            self._turn(),
            "hook" if self._nested_in is not None else kind,
            f"prompt/{self._memo.get('prompts', 0)}",
            self._in_probe(),
            call.id,
            self._event.agent,
            runs_verify(call, self._session.settings.verify_commands),
            subject_of(call.tool, "".join(edited(call))),
        )

    def _in_probe(self) -> bool:
        """The call is made by a sub-agent that is the probe; while it runs, every call is, where nothing tells."""
        if self._event.agent:
            self._memo["tells_agents"] = True
        elif self._memo.get("tells_agents"):
            return False
        agents = self._pending.agent_marks()
        circuit = self._rows.circuit(self._id) if agents else None
        if circuit is None or circuit.state != "half_open" or circuit.probe is None:
            return False
        return circuit.probe[0] in agents

    def _turn(self) -> str:
        """The message before the call's own; without a transcript, a call after a finished call is a new turn."""
        if found := self._session.spending.place(self._event.agent).turn_of(self._tool_call.id):
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
        name = self._tool_call.id or self._signature
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
        text = trip_text(decision, self._now)
        self._rows.add_alert(Alert(new_id(), self._id, "circuit_tripped", text, timestamp=self._now))

    def _ended(self, end: CallEnd, *, verified: bool = False) -> CallDecision | None:
        session = self._session
        counted = end_call(self._rows, self._id, end, self._now, session.book, passed_verify=verified)
        session.spending.alerts += counted.alerts
        return counted.decision

    def _progressed(self) -> bool:
        """Tell whether the call polls, and gave something else than the last time."""
        call = self._tool_call
        if not call.ok or not polls(call):
            return False
        outputs: dict[str, str] = self._memo.get("outputs", {})
        before = outputs.pop(self._signature, "")
        self._memo["outputs"] = dict([*outputs.items(), (self._signature, call.output)][-OUTPUTS_KEPT:])
        return before != call.output

    def _tree(self) -> str:
        """Return a digest of the commit and of the tracked files that differ from it; "" where git does not tell.

        It tells a repeated failure of a command from a new one. A test run writes files that git does not
        track, so they are left out.
        """
        head = self._git("rev-parse", "--verify", "-q", "HEAD")
        changed = self._git("ls-files", "-m", "-z")
        if changed is None:
            return ""
        told = [head or "none"]
        for name in changed.split("\0")[:MOST_CHANGED_FILES]:
            try:
                status = os.lstat(os.path.join(self._root, name))
            except OSError:
                told.append(f"{name} gone")
            else:
                told.append(f"{name} {status.st_size} {status.st_mtime_ns}")
        return blake2b("\n".join(told).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def _git(self, *arguments: str) -> str | None:
        """Return the output of git; None where it fails."""
        import subprocess  # late: few events start git

        argv = ["git", "-C", self._root, "-c", "core.fsmonitor=false", *arguments]
        environ = os.environ | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        within_s = self._session.settings["hooks"]["timeout_s"] / 4
        try:
            done = subprocess.run(argv, capture_output=True, env=environ, timeout=within_s, check=True)
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        return done.stdout.decode("utf-8", "surrogateescape")
