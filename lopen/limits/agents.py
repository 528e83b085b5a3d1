"""Limits for sub-agents, and for the cost of sub-agents and external calls.

Five at once, ten a session, ten seconds between two starts; at the limit of five the oldest is ended.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from lopen.core.money import dollars
from lopen.limits.records import Alert, decoded, field_values, new_id
from lopen.limits.store import Rows

OVERRIDE = "SUDO PARALLEL"
EXTERNAL_AGENTS = ("oracle", "research")  # whose cost falls under `resources.cost_*`


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The settings' `resources` table. Cost 0 is off."""

    max_concurrent_agents: int = 5
    max_agents_per_session: int = 10
    agent_spawn_cooldown_s: float = 10.0
    api_session_max: int = 50
    cost_warn_usd: float = 1.0
    cost_block_usd: float = 5.0


@dataclass(frozen=True, slots=True)
class Agents:
    """The running agents, the number started since a person last allowed more, and the cost of agents and external
    calls.
    """

    running: tuple[tuple[str, float], ...] = ()
    spawned: int = 0
    last_spawn: float = 0.0
    cost_usd: float = 0.0
    cost_warned: bool = False
    cost_forgiven: float = 0.0  # a person let it go on at this much


@dataclass(frozen=True, slots=True)
class Spawn:
    """The answer to a start: allowed, and who had to end for it; or until when to wait; or never."""

    allowed: bool
    ended: str = ""
    until: float | None = None
    seen: str = ""


def spawn(
    state: Agents, agent_id: str, now: float, limits: AgentLimits, *, lifted: bool
) -> tuple[Agents, Spawn]:
    """Decide whether `agent_id` may start now. `lifted`: the person's override stands, nothing is held back."""
    if lifted:  # a start under the override is logged, and counts for nothing later
        return replace(state, running=(*state.running, (agent_id, now))[-1_000:]), Spawn(True)
    if state.spawned >= limits.max_agents_per_session:
        seen = f"{state.spawned} sub-agents were started in this session, which is all it may"
        return state, Spawn(False, seen=seen)
    free_at = state.last_spawn + limits.agent_spawn_cooldown_s
    if state.spawned and state.last_spawn <= now < free_at:
        return state, Spawn(False, until=free_at, seen="the last sub-agent was started a moment ago")
    running, oldest = state.running, ""
    if len(running) >= limits.max_concurrent_agents:
        oldest, running = running[0][0], running[1:]
    running = (*running, (agent_id, now))
    return replace(state, running=running, spawned=state.spawned + 1, last_spawn=now), Spawn(True, oldest)


def ended(state: Agents, agent_id: str) -> Agents:
    """The agent is done, or was ended."""
    return replace(state, running=tuple(r for r in state.running if r[0] != agent_id))


def is_spent(state: Agents, limits: AgentLimits) -> bool:
    """No further sub-agent or external call may be paid for until a person says so."""
    return 0 < limits.cost_block_usd <= state.cost_usd - state.cost_forgiven


def agent_limits(resources: Mapping[str, Any]) -> AgentLimits:
    """The limits of a settings table."""
    names = {field.name for field in fields(AgentLimits)}
    return AgentLimits(**{name: value for name, value in resources.items() if name in names})


def read_agents(rows: Rows, circuit_id: str) -> Agents:
    """Return a session's agents; an empty record where the store has none."""
    return decoded(Agents, rows.memo(f"agents:{circuit_id}") or {})


def put_agents(rows: Rows, circuit_id: str, agents: Agents) -> None:
    """Store a session's agents."""
    rows.put_memo(f"agents:{circuit_id}", field_values(agents))


def add_cost(rows: Rows, circuit_id: str, cost_usd: float, limits: AgentLimits, now: datetime) -> list[Alert]:
    """Add to the cost of a session's sub-agents and external calls; the alert on the sum that reaches the warning."""
    agents = read_agents(rows, circuit_id)
    agents = replace(agents, cost_usd=agents.cost_usd + cost_usd)
    warn = 0 < limits.cost_warn_usd <= agents.cost_usd and not agents.cost_warned
    put_agents(rows, circuit_id, replace(agents, cost_warned=agents.cost_warned or warn))
    if not warn:
        return []
    message = (
        f"sub-agents and external calls have cost {dollars(agents.cost_usd)} in this session"
        f" and stop at {dollars(limits.cost_block_usd)}"
    )
    alert = Alert(new_id(), circuit_id, "warning_threshold", message, timestamp=now)
    rows.add_alert(alert)
    return [alert]
