"""Metrics for Prometheus, under the names of docs/reference/server.md: counts of each project, added up."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse, Response

from lopen.core.errors import StoreUnreachable
from lopen.core.events import IterationStarted, ToolEnded, TurnEnded, VerificationRan
from lopen.limits.budget import ALERT_TYPES, PAUSE, BudgetState
from lopen.limits.circuits import RULES
from lopen.limits.records import field_values
from lopen.limits.store import LimitsStore
from lopen.server.served import OpenProject, ServedProject, ServedProjects
from lopen.store.sessions import SessionStore
from lopen.workflow.steps import Step, phase_of

BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
MOST_NAMES = 100  # of tools; a model invents names, and each is a time series
OTHER = "other"
PERSONLESS = "builder"  # the agent of what names none
STATES = {"closed": 0, "half_open": 1, "open": 2}
COUNTED = (IterationStarted.name, TurnEnded.name, ToolEnded.name, VerificationRan.name)
PAGE = 5_000


@dataclass
class Durations:
    """A histogram: observations up to each bound, beyond the last one, and their sum in seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Add one observation."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """Yield each upper bound with the number of observations up to it."""
        seen = 0
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), self.counts, strict=True):
            seen += count
            yield bound, seen


Histogram = defaultdict[str, Durations]
Values = defaultdict[tuple[str, ...], float]  # by labels


@dataclass
class ProjectCounts:
    """The counters of one project. Counters grow while the server runs; events are read once."""

    turns: Histogram = field(default_factory=lambda: defaultdict(Durations))  # by agent
    tools: Histogram = field(default_factory=lambda: defaultdict(Durations))  # by tool
    verifications: Histogram = field(default_factory=lambda: defaultdict(Durations))  # by tool
    calls: Values = field(default_factory=lambda: defaultdict(float))  # by agent and tool
    alerts: Values = field(default_factory=lambda: defaultdict(float))  # by agent and type
    pauses: Values = field(default_factory=lambda: defaultdict(float))  # by agent
    trips: Values = field(default_factory=lambda: defaultdict(float))  # by agent and rule
    tokens: Values = field(default_factory=lambda: defaultdict(float))  # by agent, budget type and kind
    cost_usd: Values = field(default_factory=lambda: defaultdict(float))  # by agent
    utilization: Values = field(default_factory=lambda: defaultdict(float))  # by agent and budget type
    circuits: Values = field(default_factory=lambda: defaultdict(float))  # by agent
    _last: int = 0
    _agents: dict[str, str] = field(default_factory=dict)  # session → who works in it
    _seen: set[tuple[str, ...]] = field(default_factory=set)  # alerts and incidents that were counted
    _present: set[tuple[str, ...]] = field(default_factory=set)  # those of the store at this reading

    def update(self, opened: OpenProject) -> None:
        """Count what is new; budgets and circuits stay as they were last read while their store is unreachable."""
        self._count_events(opened.store)
        with suppress(StoreUnreachable), opened.limits() as limits:
            budgets = limits.budgets()
            self._count_budgets(budgets, limits)
            self._count_circuits({b.budget_id: b for b in budgets}, limits)
            self._seen, self._present = self._present, set()  # the store drops old rows, and so does this

    def _count_events(self, store: SessionStore) -> None:
        marks = ", ".join("?" * len(COUNTED))
        sql = f"SELECT seq, session, name, body FROM events WHERE seq>? AND name IN ({marks}) ORDER BY seq LIMIT ?"  # noqa: S608 - marks only
        while True:
            rows = store.database.connection.execute(sql, (self._last, *COUNTED, PAGE)).fetchall()
            for row in rows:
                self._count_event(row["session"], row["name"], json.loads(row["body"]))
                self._last = row["seq"]
            if len(rows) < PAGE:
                return

    def _count_event(self, session: str, name: str, body: dict[str, Any]) -> None:
        if name == IterationStarted.name:
            building = body["step"] in set(Step) and phase_of(Step(body["step"])) == "building"
            self._agents[session] = "builder" if building else "planner"
        elif name == TurnEnded.name:
            own = self._agents.get(session, PERSONLESS)
            agent = {"turn": own, "research": "research"}.get(body.get("purpose", "turn"), "oracle")
            self.turns[agent].add(body["seconds"])
        elif name == ToolEnded.name:
            tool = self._tool(body["tool"])
            self.calls[self._agents.get(session, PERSONLESS), tool] += 1
            self.tools[tool].add(body["seconds"])
        else:
            self.verifications[self._tool(body["tool"])].add(body["seconds"])

    def _tool(self, name: str) -> str:
        known = name in self.tools or name in self.verifications
        return name if known or len(self.tools) + len(self.verifications) < MOST_NAMES else OTHER

    def _count_budgets(self, budgets: list[BudgetState], limits: LimitsStore) -> None:
        for state in sorted(budgets, key=lambda b: b.last_updated):  # the one that was used last counts
            self.utilization[state.spec.agent or PERSONLESS, state.budget_type] = state.utilization
        self.tokens.clear()
        self.cost_usd.clear()
        for spend in limits.spend():
            kind, agent = spend.budget_id.partition(":")[0], spend.agent or PERSONLESS
            for token_type, count in field_values(spend.usage).items():
                self.tokens[agent, kind, token_type.removesuffix("_tokens")] += count
            if kind == "session":  # each request is charged to every kind once
                self.cost_usd[(agent,)] += spend.cost_usd
        agents = {b.budget_id: b.spec.agent or PERSONLESS for b in budgets}
        for alert in limits.alerts():
            if self._is_new("alert", alert.alert_id):
                agent = agents.get(alert.budget_id, PERSONLESS)
                self.alerts[agent, alert.alert_type] += 1
                self.pauses[(agent,)] += alert.alert_type == ALERT_TYPES[PAUSE]

    def _count_circuits(self, budgets: dict[str, BudgetState], limits: LimitsStore) -> None:
        def agent_of(circuit_id: str) -> str:
            state = budgets.get(circuit_id)
            return state.spec.agent if state is not None and state.spec.agent else PERSONLESS

        self.circuits.clear()
        for circuit in limits.circuits():
            labels = (agent_of(circuit.circuit_id),)
            self.circuits[labels] = max(self.circuits[labels], STATES[circuit.state])
        rules = {rule.name for rule in RULES}
        for incident in limits.incidents():
            if incident.rule in rules and self._is_new(
                "incident", incident.circuit_id, incident.rule, incident.at.isoformat()
            ):
                self.trips[agent_of(incident.circuit_id), incident.rule] += 1

    def _is_new(self, *key: str) -> bool:
        new = key not in self._seen
        self._seen.add(key)
        self._present.add(key)
        return new


routes = APIRouter(tags=["metrics"])


class ProjectMetrics(Collector):
    """The metrics of several projects, added up."""

    def __init__(self, projects: Iterable[ServedProject]) -> None:
        self._counts = {project.name: ProjectCounts() for project in projects}

    async def update(self, projects: Iterable[ServedProject]) -> None:
        """Count what is new in each project."""
        for project in projects:
            await project.run(self._counts[project.name].update)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        every = list(self._counts.values())
        yield _counter(
            "tokens_used",
            "Tokens of requests by kind, not weighted, as charged to budgets of one type.",
            ("agent", "budget_type", "token_type"),
            _sum(c.tokens for c in every),
        )
        yield _gauge(
            "budget_utilization_ratio",
            "Used part of the budget that was used last.",
            ("agent", "budget_type"),
            _highest(c.utilization for c in every),
        )
        yield _counter(
            "budget_alerts", "Alerts raised.", ("agent", "alert_type"), _sum(c.alerts for c in every)
        )
        yield _counter(
            "budget_pauses", "Budgets used up, which pauses work.", ("agent",), _sum(c.pauses for c in every)
        )
        yield _counter(
            "circuit_trips", "Circuits tripped.", ("agent", "trip_reason"), _sum(c.trips for c in every)
        )
        yield _gauge(
            "circuit_state",
            "Highest state of the circuits: 0 closed, 1 half open, 2 open.",
            ("agent",),
            _highest(c.circuits for c in every),
        )
        yield _counter(
            "tool_iterations", "Tool calls of sessions.", ("agent", "tool"), _sum(c.calls for c in every)
        )
        yield _counter(
            "cost_usd",
            "Cost of requests with a known price, in US dollars.",
            ("agent",),
            _sum(c.cost_usd for c in every),
        )
        yield _histogram("turn_duration", "Requests to models.", "agent", [c.turns for c in every])
        yield _histogram("tool_duration", "Tool calls.", "tool", [c.tools for c in every])
        yield _histogram(
            "verification_duration", "Runs of verify commands.", "tool", [c.verifications for c in every]
        )


def _combined(combine: Callable[[float, float], float], counts: Iterable[Values]) -> Values:
    found: Values = defaultdict(float)
    for each in counts:
        for labels, value in each.items():
            found[labels] = combine(found[labels], value)
    return found


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: tuple[str, ...],
    values: Values,
) -> Metric:
    family = kind(f"lopen_{name}", text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


_counter, _gauge = partial(_family, CounterMetricFamily), partial(_family, GaugeMetricFamily)
_sum, _highest = partial(_combined, add), partial(_combined, max)


def _histogram(name: str, text: str, label: str, given: list[Mapping[str, Durations]]) -> Metric:
    added: dict[str, Durations] = {}
    for histogram in given:
        for key, durations in histogram.items():
            total = added.setdefault(key, Durations())
            total.counts = [a + b for a, b in zip(total.counts, durations.counts, strict=True)]
            total.total_s += durations.total_s
    family = HistogramMetricFamily(f"lopen_{name}_seconds", f"{text} Duration in seconds.", labels=[label])
    for key, durations in sorted(added.items()):
        family.add_metric([key], list(durations.cumulative()), durations.total_s)
    return family


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return the metrics of all projects of this server, for Prometheus."""
    projects: ServedProjects = request.app.state.projects
    found: ProjectMetrics = request.app.state.metrics
    await found.update(projects)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(found)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)
