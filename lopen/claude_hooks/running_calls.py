"""Calls and sub-agents under way in a Claude Code session: begun by one event, ended by another, kept between."""

from __future__ import annotations

from dataclasses import replace

from lopen.claude_hooks.event import AGENT_TOOLS, HookEvent
from lopen.limits.agents import Agents, ended, put_agents, read_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lopen.limits.store import Rows

KEPT = 64  # calls under way, and sub-agents that ended, that are remembered
_KEY = "pending"


class Pending:
    """The calls by name: Claude Code's id of a call, or its signature where an event names none."""

    def __init__(self, memo: dict[str, Any]) -> None:
        self._memo = memo

    @property
    def _calls(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self._memo.get(_KEY, {})
        return found

    def clear(self) -> None:
        """A session starts: nothing is under way."""
        self._memo[_KEY] = {}

    def begin(self, name: str, tool: str, signature: str, agent: str) -> None:
        """A call was let through."""
        self._memo[_KEY] = dict([*self._calls.items(), (name, [tool, signature, agent])][-KEPT:])

    def end(self, name: str) -> tuple[str, str, str] | None:
        """Tool, signature and agent of a call that has ended; None where it was not known."""
        calls = self._calls
        found = calls.pop(name, None)
        self._memo[_KEY] = calls
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

    def call_ended(self, name: str, event: HookEvent, now: float) -> None:
        """The call that started one ended; one in the background goes on."""
        if event.in_background:
            stopped = event.launched in self._memo.get("agent_ids", ())
            if not stopped and event.launched:
                self.put(ended(self.state, name))
                self.started(event.launched, now)
            return
        self.put(ended(ended(self.state, name), event.launched))

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
