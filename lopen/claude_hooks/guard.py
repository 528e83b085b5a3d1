"""The effects of each event of a Claude Code session on its budgets and circuits: calls made or held back, the loop's end.

All changes of an event, its place in the transcripts included, are one transaction. If it cannot be stored, the same
part is read again with the next event. So nothing is lost and nothing counted twice.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any

from lopen.claude_hooks import answers
from lopen.claude_hooks.answers import Answer
from lopen.claude_hooks.event import (
    AGENT_TOOLS,
    HookEvent,
    edited,
    kind_of,
    passes_verify,
    polls,
    runs_verify,
)
from lopen.claude_hooks.session import LAST_PARTS, PendingCalls, Spending, SubAgents
from lopen.claude_hooks.settings import HookSettings
from lopen.guardrails.call_history import CallEnd, signature, subject_of
from lopen.limits.agents import OVERRIDE, Agents, agent_limits, spawn
from lopen.limits.budget import NEAR_LIMIT
from lopen.limits.call_gate import announce_call, end_call, trip, trip_on_cost
from lopen.limits.circuits import (
    ALLOW,
    LATER,
    WAIT,
    CallDecision,
    CircuitCall,
    CircuitState,
    cooled,
    rule_book,
)
from lopen.limits.records import Alert, Incident, new_id
from lopen.limits.store import Rows

NOT_A_PERSON = "<task-notification>"  # the client submits these by itself
REFUSALS = 2  # of one circuit in a row end the loop
LATER_REFUSALS = 5  # of calls that only come too soon
OUTPUTS_KEPT = 20
MOST_CHANGED_FILES = 2_000


class SessionGuard:
    """One event of one session, inside one transaction."""

    def __init__(
        self,
        rows: Rows,
        event: HookEvent,
        settings: HookSettings,
        now: datetime,
        root: str,
        nested_in: str | None,
    ) -> None:
        """`nested_in`: the session inside whose hook this process runs; None outside of every hook."""
        self.rows = rows
        self.event = event
        self.call = event.call
        self.settings = settings
        self.now = now
        self.id = f"session:{event.session}"
        self.memo: dict[str, Any] = rows.memo(f"hooks:{event.session}") or {}
        self.limits = agent_limits(settings["resources"])
        self.spending = Spending(rows, event, settings, self.memo, self.limits, now)
        self.pending = PendingCalls(self.memo)
        self.agents = SubAgents(rows, self.id, self.memo)
        self.book = rule_book(
            settings["circuit"],
            api_session_max=self.limits.api_session_max,
            history=settings["memory"]["tool_history_max"],
        )
        self._root = root
        self._nested_in = nested_in

    def circuit(self) -> CircuitState:
        """Return the circuit as it stands at this moment."""
        return cooled(self.rows.circuit(self.id) or CircuitState(self.id), self.now.timestamp())

    def run(self, name: str) -> Answer:
        """Return the answer to the event `name`."""
        self.spending.catch_up(LAST_PARTS if name == "session-end" else 1)
        tripped = self.failures_in_transcript()
        answer = {
            "pre-tool-use": self.before,
            "post-tool-use": self.after,
            "post-tool-use-failure": self.after,
            "post-tool-batch": self.batch_ended,
            "user-prompt-submit": self.prompted,
            "session-start": self.started,
            "session-end": self.ended,
            "stop": self.stopping,
            "subagent-start": self.agent_started,
            "subagent-stop": self.agent_stopped,
            "pre-compact": Answer,
        }[name]()
        if tripped and not answer.block:
            answer = replace(answer, block=tripped)
        self.rows.put_memo(f"hooks:{self.event.session}", self.memo)
        warned = [
            alert
            for alert in self.spending.alerts
            if alert.alert_type == "warning_threshold" and not (alert.utilization and self.spending.paused)
        ]
        for_model = (answers.warning(alert, self.spending.session) for alert in warned)
        for_person = (f"lopen: {alert.message}" for alert in warned)
        return replace(
            answer,
            context=(*for_model, *answer.context),
            tell=(*answer.tell, *for_person),
        )

    # the session's own events

    def prompted(self) -> Answer:
        """A person asks for something, or the client tells of a task in the background that ended."""
        words = self.event.prompt.split()
        if words[:1] != [NOT_A_PERSON] and not self.event.prompt.startswith(NOT_A_PERSON):
            self.memo["prompts"] = int(self.memo.get("prompts", 0)) + 1
            self.memo["lifted"] = OVERRIDE in self.event.prompt
        elif self.memo.get("lifted"):
            words = []
        if paused := self.spending.paused:
            return Answer(answers.exhausted(paused))
        circuit = self.circuit()
        if circuit.tripped and circuit.needs_ack and circuit.holds_all:
            return Answer(answers.waits_for_ack(circuit))
        tell: tuple[str, ...] = ()
        if self.memo.get("lifted") and OVERRIDE in self.event.prompt and words:
            self.rows.add_incident(Incident(self.id, "override", f"{OVERRIDE} in the prompt", self.now))
            tell = (f"{OVERRIDE}: the limits on starting sub-agents are lifted until the next prompt",)
        session = self.spending.session
        lines = [
            f"## Budget Status\n{answers.budget_line(session)}\n{answers.circuit_line(circuit, self.book)}"
        ]
        if session.utilization >= session.spec.alert_threshold or circuit.state != "closed":
            lines.append(NEAR_LIMIT)
        return Answer(context=tuple(lines), tell=tell)

    def started(self) -> Answer:
        """A session starts, goes on, or is compacted."""
        self.pending.clear()
        if self.event.source != "compact":
            self.agents.clear()
        session = self.spending.session
        text = (
            "lopen guards this session: token budget, circuit breaker, limits on sub-agents and external calls."
            f" {NEAR_LIMIT}\n{answers.budget_line(session)}"
        )
        tell = answers.guarded(session, self.circuit(), self.limits)
        held = (f"lopen: {answers.exhausted(paused)}",) if (paused := self.spending.paused) else ()
        return Answer(context=(text,), tell=(tell, *held))

    def ended(self) -> Answer:
        """End a session; the rest of its transcripts is counted by now."""
        self.agents.clear()
        return Answer()

    def stopping(self) -> Answer:
        """A turn ends, in which no sub-agent but those in the background goes on."""
        if self.event.background is not None:
            self.agents.only(self.event.background)
        return Answer()

    def agent_started(self) -> Answer:
        """A sub-agent begins."""
        if self.event.agent:
            self.agents.started(self.event.agent, self.now.timestamp())
        return Answer()

    def agent_stopped(self) -> Answer:
        """A sub-agent is done."""
        if self.event.agent:
            self.agents.ended(self.event.agent)
        return Answer()

    # calls

    def before(self) -> Answer:
        """A call is about to be made."""
        if paused := self.spending.paused:
            return Answer(answers.exhausted(paused), stop=answers.exhausted(paused))
        decision = self._asked(self._call())
        if not decision.allowed:
            return self._refused(decision)
        self.memo.get("refused", {}).pop(self.event.agent, None)
        name = self.call.id or self._signature
        self.pending.begin(name, self.call.tool, self._signature, self.event.agent)
        return Answer()

    def after(self) -> Answer:
        """A call ended, well or not."""
        call = self.call
        self.memo["posted"] = True
        name = call.id or self.pending.name_of(self._signature)
        self.pending.end(name)
        if call.tool in AGENT_TOOLS:
            self.agents.call_ended(name, call, self.now.timestamp())
        end = CallEnd(
            call.tool,
            self._signature,
            call.ok,
            tree="" if call.ok or not call.command else self._tree(),
            nonce=name,
            edited=edited(call),
            agent=self.event.agent,
            progressed=self._progressed(),
        )
        decision = self._ended(end, verified=passes_verify(call, self.settings.verify_commands))
        self.spending.count_call(call)
        if paused := self.spending.paused:
            return Answer(answers.exhausted(paused), stop=answers.exhausted(paused))
        return self._refused(decision) if decision is not None else Answer()

    def batch_ended(self) -> Answer:
        """All calls of a message are answered, and the model would be asked again."""
        agent = self.event.agent
        refusal = self.memo.get("batch", {}).pop(agent, None)
        rows = self.memo.setdefault("refused_batches", {})
        if paused := self.spending.paused:
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
        for call_id in self.spending.failed:
            if call_id == self.call.id or (call := self.pending.end(call_id)) is None:
                continue
            tool, sign, agent = call
            if tool in AGENT_TOOLS:  # refused by the person, or failed
                self.agents.ended(call_id)
            decision = self._ended(CallEnd(tool, sign, False, nonce=call_id, agent=agent))
            if decision is not None:
                found = decision.text(self.now, short=True)
        return found

    # how a call is held back

    def _refused(self, decision: CallDecision) -> Answer:
        """The refusal; a pause that only a person lifts, and a circuit's second pause in a row, end the loop."""
        text = self._reason(decision)
        agent = self.event.agent
        rows = self.memo.setdefault("refused", {})
        again = rows.get(agent) == decision.rule and decision.kind != LATER
        rows[agent] = decision.rule
        batch = self.memo.setdefault("batch", {})
        batch[agent] = [decision.rule, decision.kind, decision.needs_ack, text]
        return Answer(text, stop=text if decision.needs_ack or again else "")

    def _reason(self, decision: CallDecision) -> str:
        """Why a call is held back; one beside a probe waits for that one's end, not for a time."""
        circuit = self.rows.circuit(self.id) if decision.kind == WAIT else None
        if circuit is None or circuit.state != "half_open":
            return decision.text(self.now, short=True)
        return answers.beside_probe(
            circuit.rule, self.pending.tool_of(circuit.probe[0] if circuit.probe else "")
        )

    # a call as circuits see it

    @cached_property
    def _signature(self) -> str:
        return signature(self.call.tool, self.call.arguments)

    def _call(self) -> CircuitCall:
        """Return the call as circuits see it. A person's prompt begins a task, from which `max_iterations` counts."""
        call = self.call
        kind = kind_of(call, self.settings["hooks"]["external_commands"])
        return CircuitCall(
            call.tool,
            self._signature,
            self._turn(),
            "hook" if self._nested_in is not None else kind,
            f"prompt/{self.memo.get('prompts', 0)}",
            self._in_probe(),
            call.id,
            self.event.agent,
            runs_verify(call, self.settings.verify_commands),
            subject_of(call.tool, "".join(edited(call)), call.arguments),
        )

    def _in_probe(self) -> bool:
        """The call is made by a sub-agent that is the probe; while it runs, every call is, where nothing tells."""
        if self.event.agent:
            self.memo["tells_agents"] = True
        elif self.memo.get("tells_agents"):
            return False
        agents = self.pending.agent_marks()
        circuit = self.rows.circuit(self.id) if agents else None
        if circuit is None or circuit.state != "half_open" or circuit.probe is None:
            return False
        return circuit.probe[0] in agents

    def _turn(self) -> str:
        """The message before the call's own; without a transcript, a call after a finished call is a new turn."""
        if found := self.spending.place(self.event.agent).turn_of(self.call.id):
            return found
        if self.memo.pop("posted", False):
            self.memo["turn"] = int(self.memo.get("turn", 0)) + 1
        return f"turn/{self.memo.get('turn', 0)}"

    def _asked(self, call: CircuitCall) -> CallDecision:
        agents: Agents | None = None
        if call.kind in ("agent", "external"):
            dear = trip_on_cost(self.rows, self.id, self.limits, self.now, self.book)
            if dear is not None:
                self.spending.alerts += dear.alerts
                return dear
        if call.kind == "agent":
            lifted = bool(self.memo.get("lifted"))
            agents, refused = self._spawned(lifted)
            if refused is not None:
                return refused
            if lifted:
                self.agents.put(agents)
                started = f"{OVERRIDE}: a sub-agent was started beyond the limits"
                self.rows.add_incident(Incident(self.id, "override", started, self.now))
                return CallDecision(ALLOW)
        circuit_id = f"session:{self._nested_in}" if self._nested_in else self.id
        decision = announce_call(self.rows, circuit_id, call, self.now, self.book)
        self.spending.alerts += decision.alerts
        if agents is not None and decision.allowed:
            self.agents.put(agents)
        return decision

    def _spawned(self, lifted: bool) -> tuple[Agents, CallDecision | None]:
        """The agents with this one; Claude Code's own cannot be ended, so a sixth at once is held back."""
        agents = self.agents.state
        name = self.call.id or self._signature
        after, answer = spawn(agents, name, self.now.timestamp(), self.limits, lifted=lifted)
        if answer.allowed and answer.ended:
            seen = (
                f"{len(agents.running)} sub-agents run, which is all that may at once;"
                " the next may start when one of them ends"
            )
            decision = CallDecision(LATER, self.id, "agent_spawn", seen)
            self._alert_once(decision)
            return agents, decision
        if answer.allowed:
            self.memo.pop("crowded", None)
            return after, None
        if answer.until is not None:
            return agents, CallDecision(LATER, self.id, "agent_spawn", answer.seen, answer.until)
        decision = trip(self.rows, self.id, "agent_spawn", answer.seen, self.now, self.book)
        self.spending.alerts += decision.alerts
        return agents, decision

    def _alert_once(self, decision: CallDecision) -> None:
        """For the first start of several that find no room."""
        if self.memo.get("crowded"):
            return
        self.memo["crowded"] = True
        text = decision.text(self.now)
        self.rows.add_alert(Alert(new_id(), self.id, "circuit_tripped", text, timestamp=self.now))

    def _ended(self, end: CallEnd, *, verified: bool = False) -> CallDecision | None:
        counted = end_call(self.rows, self.id, end, self.now, self.book, passed_verify=verified)
        if counted.decision is not None:
            self.spending.alerts += counted.decision.alerts
        return counted.decision

    def _progressed(self) -> bool:
        """Tell whether the call polls, and gave something else than the last time."""
        call = self.call
        if not call.ok or not polls(call):
            return False
        outputs: dict[str, str] = self.memo.get("outputs", {})
        before = outputs.pop(self._signature, "")
        self.memo["outputs"] = dict([*outputs.items(), (self._signature, call.output)][-OUTPUTS_KEPT:])
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
        within_s = self.settings["hooks"]["timeout_s"] / 4
        try:
            done = subprocess.run(argv, capture_output=True, env=environ, timeout=within_s, check=True)
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        return done.stdout.decode("utf-8", "surrogateescape")
