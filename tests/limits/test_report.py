from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lopen.guardrails.call_history import CallHistory, LoggedCall
from lopen.limits import report
from lopen.limits.agents import AgentLimits, Agents
from lopen.limits.budget import BudgetSpec, BudgetState
from lopen.limits.circuits import BY_NAME, CircuitState, RuleBook, opened
from lopen.limits.records import Incident

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATE = BudgetState(
    BudgetSpec("session:s", "session", 100_000),
    NOW,
    NOW,
    82_000,
    cost_usd=0.421,
    unpriced_tokens=500,
)


def test_a_budget_object_has_the_documented_fields() -> None:
    shown = report.budget_object(STATE)
    expected = {
        "budget_id": "session:s",
        "budget_type": "session",
        "max_tokens": 100_000,
        "tokens_used": 82_000,
        "utilization": 0.82,
        "remaining": 18_000,
        "status": "warning",
        "alert_threshold": 0.8,
        "agent": "",
        "task_description": "",
        "started_at": "2026-01-01T12:00:00Z",
        "last_updated": "2026-01-01T12:00:00Z",
    }
    assert {name: shown[name] for name in expected} == expected


def test_a_circuit_object_has_the_documented_fields() -> None:
    tripped = opened(CircuitState("session:s"), BY_NAME["tool_failure"], "pytest failed", NOW.timestamp())
    shown = report.circuit_object(tripped, RuleBook())
    assert (shown["circuit_id"], shown["state"], shown["trip_reason"]) == (
        "session:s",
        "open",
        "pytest failed",
    )
    assert (shown["tripped_at"], shown["cooldown_until"]) == ("2026-01-01T12:00:00Z", "2026-01-01T12:00:05Z")
    assert {"iteration_count", "max_iterations", "duplicate_call_count", "last_updated"} <= shown.keys()
    assert report.circuit_object(CircuitState("x"), RuleBook())["tripped_at"] is None


def test_budgets_are_shown_in_lines() -> None:
    lines = report.budget_lines(
        [
            STATE,
            BudgetState(BudgetSpec("module:m", "module", 0, max_requests=10), tokens_used=5, requests_used=2),
        ]
    )
    assert lines == [
        "session:s  [========--]  82,000/100,000 (82%) tokens  warning  $0.42 and 500 tokens without a known price",
        "module:m   5 (unlimited) tokens  2/10 (20%) requests  active  $0.00",
    ]
    assert report.budget_lines([]) == ["No budgets yet."]


def test_an_open_circuit_says_until_when_and_how_to_go_on() -> None:
    tripped = opened(
        CircuitState("session:s"), BY_NAME["tool_failure"], "pytest failed 4 times", NOW.timestamp()
    )
    lines = report.circuit_lines(tripped, RuleBook(), NOW + timedelta(seconds=2))
    assert lines[0] == "session:s: tool_failure PAUSED (cooldown: 3s remaining)"
    assert "pytest failed 4 times" in lines[1]
    waits = opened(CircuitState("session:s"), BY_NAME["duplicate_call"], "x", NOW.timestamp())
    assert "lopen circuit ack session:s" in report.circuit_lines(waits, RuleBook(), NOW)[0]
    assert report.circuit_lines(
        CircuitState("session:s", calls=CallHistory(iteration_count=12)), RuleBook(), NOW
    ) == ["session:s: all limits OK (12/50 calls)"]


def external(*ages: float) -> CallHistory:
    """External calls so many seconds ago."""
    times = (NOW.timestamp() - age for age in ages)
    return CallHistory(log=tuple(LoggedCall("m", "external:x", "external", at=at) for at in times))


def test_resources_and_incidents_are_shown_against_their_limits() -> None:
    agents = Agents((("a", 0.0), ("b", 0.0)), 3, cost_usd=0.34)
    circuit = CircuitState("s", calls=external(70, 5), external_total=7)
    resources = report.resource_object(agents, circuit, AgentLimits(), NOW)
    said = "\n".join(report.resource_lines(resources, 10))
    for part in (
        "2/5 at once (40% capacity)",
        "3/10 this session",
        "1/10 this minute (10% rate)",
        "7/50 this session",
        "$0.34 / $1.00 warn / $5.00 block",
    ):
        assert part in said
    old = Incident("s", "rapid_fire", "", NOW - timedelta(hours=25))
    new = Incident("s", "tool_failure", "", NOW - timedelta(hours=1))
    counts = report.incident_counts([old, new, new], NOW)
    assert (
        report.incident_line(counts)
        == "Incidents in the last 24 h (lopen circuit incidents): tool_failure x2"
    )
