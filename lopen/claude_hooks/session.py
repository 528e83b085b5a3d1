"""The records of a Claude Code session that an event changes: spending from transcripts, pending calls, sub-agents."""

from __future__ import annotations

from dataclasses import astuple, replace
from datetime import datetime, timedelta
from typing import Any

from lopen.claude_hooks.event import AGENT_TOOLS, HookEvent, Malformed, ToolCall
from lopen.claude_hooks.settings import AGENT, HookSettings
from lopen.claude_hooks.transcript import (
    BilledRequest,
    TranscriptPosition,
    beyond,
    files_of,
    higher,
    read,
)
from lopen.limits.agents import AgentLimits, Agents, add_cost, ended, put_agents, read_agents
from lopen.limits.budget import BudgetSpec, BudgetState, Charge, cleared, opened
from lopen.limits.charging import charge_all
from lopen.limits.records import Alert
from lopen.limits.store import Rows
from lopen.models.messages import Usage

FILES_KEPT = 200
LAST_PARTS = 8  # of each transcript, read when a session ends: no later event reads the rest
KEPT = 64  # calls under way, and sub-agents that ended, that are remembered


class Spending:
    """The budget of one session, inside one transaction."""

    def __init__(
        self,
        rows: Rows,
        event: HookEvent,
        settings: HookSettings,
        memo: dict[str, Any],
        limits: AgentLimits,
        now: datetime,
    ) -> None:
        """`memo` is remembered of the session, and kept by the caller."""
        self._rows = rows
        self._event = event
        self._settings = settings
        self._memo = memo
        self._limits = limits
        self._now = now
        self.alerts: list[Alert] = []
        self.failed: list[str] = []  # calls that a transcript shows as answered with an error
        self.session = self._opened(settings.session_spec(event.session))

    def _opened(self, spec: BudgetSpec) -> BudgetState:
        """Return the session's budget; one that nobody changed for long starts anew."""
        earlier = self._rows.budget(spec.budget_id)
        if earlier is not None and earlier.spec.agent != AGENT:
            raise Malformed(f"the event names {self._event.session}, which is a session of lopen's own")
        forgotten = earlier is not None and self._now - earlier.last_updated > self._kept
        known = cleared(earlier, self._now) if earlier is not None and forgotten else earlier
        state = opened(spec, self._now, known)
        if state != earlier:
            self._rows.put_budget(state)
        return state

    @property
    def _kept(self) -> timedelta:
        return timedelta(seconds=self._settings["budget"]["ttl_s"])

    @property
    def paused(self) -> BudgetState | None:
        """The session's budget where it holds everything back."""
        return self.session if self.session.stopped else None

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
                places[agent] = list(astuple(place))
        self._memo["files"] = dict(list(places.items())[-FILES_KEPT:])

    def _read(self, path: str, agent: str, place: TranscriptPosition) -> TranscriptPosition:
        """Charge the requests in one file beyond `place`; where to go on."""
        news = read(path, self._event.session, agent, place)
        for request in news.requests:
            self._charge_once(request)
        self.failed += news.failed
        return news.place

    def place(self, agent: str) -> TranscriptPosition:
        """Where an agent's transcript was read to."""
        found = self._memo.get("files", {}).get(agent)
        return TranscriptPosition(*found) if found else TranscriptPosition()

    def count_call(self, call: ToolCall) -> None:
        """Charge the tokens that a call's end carries; a transcript tells all of them."""
        if call.usage is not None and not self._event.transcript:
            self.charge(call.model, call.usage, call.usage.whole_input)

    def _charge_once(self, request: BilledRequest) -> None:
        """Each request once, in whichever transcript it stands; requests older than the kept counts are not charged."""
        if request.at and request.at < (self._now - self._kept).strftime("%Y-%m-%dT%H:%M:%S"):
            return
        key = f"request:{request.key}"
        known = self._rows.memo(key)
        charged = Usage(*known["counts"]) if known else Usage()
        new = beyond(request.usage, charged)
        if not any(new.counts):
            return
        whole = higher(request.usage, charged)
        self._rows.put_memo(key, {"counts": whole.counts, "at": self._now.isoformat(timespec="seconds")})
        requests = 0 if known else 1
        self.charge(request.model, new, whole.whole_input, requests=requests, agent=request.agent)

    def charge(self, model: str, usage: Usage, prompt: int, *, requests: int = 1, agent: str = "") -> None:
        """Charge a part of one request. `prompt`: tokens of its whole prompt, which its price may depend on."""
        cost = self._settings.cost_usd(model, usage, prompt)
        tokens = usage.billed()
        charge = Charge(tokens, usage, requests, cost, AGENT, model)
        self.alerts += charge_all(self._rows, [self.session.spec], charge, self._now)
        self.session = self._rows.budget(self.session.budget_id) or self.session
        if agent and cost:
            circuit_id = f"session:{self._event.session}"
            self.alerts += add_cost(self._rows, circuit_id, cost, self._limits, self._now)


class PendingCalls:
    """The calls by name: Claude Code's id of a call, or its signature where an event names none."""

    def __init__(self, memo: dict[str, Any]) -> None:
        self._memo = memo

    @property
    def _calls(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self._memo.get("pending", {})
        return found

    def clear(self) -> None:
        """A session starts: nothing is under way."""
        self._memo["pending"] = {}

    def begin(self, name: str, tool: str, signature: str, agent: str) -> None:
        """A call was let through."""
        calls = [*self._calls.items(), (name, [tool, signature, agent])]
        self._memo["pending"] = dict(calls[-KEPT:])

    def end(self, name: str) -> tuple[str, str, str] | None:
        """Tool, signature and agent of a call that has ended; None where it was not known."""
        calls = self._calls
        found = calls.pop(name, None)
        self._memo["pending"] = calls
        return (found[0], found[1], "".join(found[2:])) if found else None

    def name_of(self, signature: str) -> str:
        """The oldest call of this signature, for an event that does not say which one ended."""
        return next((name for name, call in self._calls.items() if call[1] == signature), signature)

    def tool_of(self, mark: str) -> str:
        """The tool of the call that a circuit knows by `mark`."""
        tool: str = self._calls.get(mark, [mark.partition(":")[0]])[0]
        return tool

    def agent_marks(self) -> frozenset[str]:
        """The marks by which a circuit may know the sub-agents under way."""
        agents = [(name, call[1]) for name, call in self._calls.items() if call[0] in AGENT_TOOLS]
        return frozenset(mark for pair in agents for mark in pair)


class SubAgents:
    """The sub-agents that run, in the foreground or the background: by their own id once they have one.

    A start is known by the call that asks for it until the sub-agent's first event names its id.
    """

    def __init__(self, rows: Rows, circuit_id: str, memo: dict[str, Any]) -> None:
        self._rows = rows
        self._circuit_id = circuit_id
        self._memo = memo

    @property
    def state(self) -> Agents:
        """The sub-agents as the store holds them."""
        return read_agents(self._rows, self._circuit_id)

    def put(self, agents: Agents) -> None:
        """Store them."""
        put_agents(self._rows, self._circuit_id, agents)

    def started(self, agent_id: str, now: float) -> None:
        """A sub-agent begins: the oldest start without an id is its own, or nobody asked for it."""
        agents, known = self.state, self._memo.setdefault("agent_ids", [])
        if agent_id in known:
            return
        self._memo["agent_ids"] = [*known, agent_id][-KEPT:]
        unnamed = next((r for r in agents.running if r[0] not in known), None)
        others = tuple(r for r in agents.running if r is not unnamed)
        self.put(replace(agents, running=(*others, (agent_id, unnamed[1] if unnamed else now))))

    def call_ended(self, name: str, call: ToolCall, now: float) -> None:
        """The call that started one ended; one in the background goes on."""
        if call.in_background:
            stopped = call.launched in self._memo.get("agent_ids", ())
            if not stopped and call.launched:
                self.put(ended(self.state, name))
                self.started(call.launched, now)
            return
        self.put(ended(ended(self.state, name), call.launched))

    def ended(self, agent_id: str) -> None:
        """It is done."""
        known = self._memo.get("agent_ids", [])
        self._memo["agent_ids"] = [*(k for k in known if k != agent_id), agent_id][-KEPT:]
        self.put(ended(self.state, agent_id))

    def only(self, running: tuple[str, ...]) -> None:
        """The client says which ones run; none in the foreground does when a turn ends."""
        agents = self.state
        kept = tuple(r for r in agents.running if r[0] in running)
        if kept != agents.running:
            self.put(replace(agents, running=kept))

    def clear(self) -> None:
        """They went with the process that ran them."""
        self.only(())
