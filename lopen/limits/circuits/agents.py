"""Limits for sub-agents and for what they and external calls cost. Pure.

Five at once, ten a session, ten seconds between two starts; at the limit of five the oldest is ended.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from lopen.core.quick_stdlib import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OVERRIDE = "SUDO PARALLEL"


class AgentLimits(Value):
    """The settings' `resources` table. Cost 0 is off."""

    max_concurrent_agents: int = 5
    max_agents_per_session: int = 10
    agent_spawn_cooldown_s: float = 10.0
    api_session_max: int = 50
    cost_warn_usd: float = 1.0
    cost_block_usd: float = 5.0


class Agents(Value):
    """Who runs, how many were started (since a person last allowed more), and what they and external calls cost."""

    running: tuple[tuple[str, float], ...] = ()
    spawned: int = 0
    last_spawn: float = 0.0
    cost_usd: float = 0.0
    cost_warned: bool = False
    cost_forgiven: float = 0.0  # a person let it go on at this much


class Spawn(Value):
    """The answer to a start: allowed, and who had to end for it; or until when to wait; or never."""

    allowed: bool
    ended: str = ""
    until: float | None = None
    seen: str = ""


def spawn(
    state: Agents, agent_id: str, now: float, limits: AgentLimits, *, lifted: bool
) -> tuple[Agents, Spawn]:
    """Return True if `agent_id` may start now. `lifted`: the person's override stands, nothing is held back."""
    if not lifted:
        refused = _refused(state, now, limits)
        if refused:
            return state, refused
    running, ended = state.running, ""
    if not lifted and len(running) >= limits.max_concurrent_agents:
        ended = running[0][0]
        running = running[1:]
    started = state.replace(running=(*running, (agent_id, now))[-1_000:])
    if not lifted:  # what the override lets start is logged, and counts for nothing later
        started = started.replace(spawned=state.spawned + 1, last_spawn=now)
    return started, Spawn(True, ended)


def _refused(state: Agents, now: float, limits: AgentLimits) -> Spawn | None:
    if state.spawned >= limits.max_agents_per_session:
        return Spawn(
            False, seen=f"{state.spawned} sub-agents were started in this session, which is all it may"
        )
    free_at = state.last_spawn + limits.agent_spawn_cooldown_s
    if state.spawned and state.last_spawn <= now < free_at:
        return Spawn(False, until=free_at, seen="the last sub-agent was started a moment ago")
    return None


def ended(state: Agents, agent_id: str) -> Agents:
    """The agent is done, or was ended."""
    return state.replace(running=tuple(r for r in state.running if r[0] != agent_id))


def spent(state: Agents, cost_usd: float, limits: AgentLimits) -> tuple[Agents, bool]:
    """The state after a cost, and whether this is the moment to warn (once a session)."""
    state = state.replace(cost_usd=state.cost_usd + cost_usd)
    warn = 0 < limits.cost_warn_usd <= state.cost_usd and not state.cost_warned
    return (state.replace(cost_warned=True) if warn else state), warn


def too_dear(state: Agents, limits: AgentLimits) -> bool:
    """No further sub-agent or external call may be paid for until a person says so."""
    return 0 < limits.cost_block_usd <= state.cost_usd - state.cost_forgiven


def agent_limits(resources: Mapping[str, Any]) -> AgentLimits:
    """The limits of a settings table."""
    return AgentLimits(**{name: resources[name] for name in AgentLimits.names if name in resources})
