"""Metrics for Prometheus, under the names of docs/reference/server.md: of all projects of the server together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.responses import PlainTextResponse, Response

from lopen.core.errors import StorageError, StoreUnreachable
from lopen.core.events import IterationStarted, ToolEnded, TurnEnded, VerificationRan
from lopen.limits.budget import ALERT_TYPES, PAUSE
from lopen.limits.circuits import RULES
from lopen.limits.records import field_values
from lopen.limits.store import LimitsStore
from lopen.server.served import OpenProject, ServedProject, ServedProjects
from lopen.store.sessions import SessionStore
from lopen.workflow.steps import Step, phase_of

if TYPE_CHECKING:
    from lopen.queue.shared import Placed

BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
MOST_NAMES = 100  # of tools; a model invents names, and each is a time series
OTHER = "other"
PERSONLESS = "builder"  # the agent of what names none
STATES = {"closed": 0, "half_open": 1, "open": 2}
COUNTED = (IterationStarted.name, TurnEnded.name, ToolEnded.name, VerificationRan.name)
BUILD_S = (10.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 28_800.0)
PAGE = 5_000
Values = dict[tuple[str, ...], float]  # by labels

disable_created_metrics()  # type: ignore[no-untyped-call]  # of the library
routes = APIRouter(tags=["metrics"])


class ServerMetrics:
    """The metrics of a server. Counters grow while it runs; each event, alert and incident is counted once."""

    def __init__(self, projects: Iterable[ServedProject]) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.turns = self._durations("turn", "Requests to models.", "agent")
        self.tools = self._durations("tool", "Tool calls.", "tool")
        self.verifications = self._durations("verification", "Runs of verify commands.", "tool")
        self.calls = self._counter("tool_iterations", "Tool calls of sessions.", "agent", "tool")
        self.alerts = self._counter("budget_alerts", "Alerts raised.", "agent", "alert_type")
        self.pauses = self._counter("budget_pauses", "Budgets used up, which pauses work.", "agent")
        self.trips = self._counter("circuit_trips", "Circuits tripped.", "agent", "trip_reason")
        self.tokens = self._counter(
            "tokens_used",
            "Tokens of requests by kind, not weighted, as charged to budgets of one type.",
            *("agent", "budget_type", "token_type"),
        )
        self.cost_usd = self._counter(
            "cost_usd", "Cost of requests with a known price, in US dollars.", "agent"
        )
        self.utilization = self._gauge(
            "budget_utilization_ratio",
            "Used part of the budget that was used last.",
            *("agent", "budget_type"),
        )
        self.circuits = self._gauge(
            "circuit_state", "Highest state of the circuits: 0 closed, 1 half open, 2 open.", "agent"
        )
        self.depth = self._gauge("queue_depth", "Builds in the queue that no worker has taken up.")
        self.workers = self._gauge("workers", "Workers that build something.")
        self.expired = self._counter("lease_expired", "Leases that expired: their workers died.")
        self.builds = Histogram(
            "lopen_build_seconds", "Builds by workers.", ["result"], buckets=BUILD_S, registry=self.registry
        )
        self._tool_names: set[str] = set()
        self._readings = {project.name: ProjectReading(self) for project in projects}

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"lopen_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"lopen_{name}", text, labels, registry=self.registry)

    def _durations(self, name: str, text: str, label: str) -> Histogram:
        name, text = f"lopen_{name}_duration_seconds", f"{text} Duration in seconds."
        return Histogram(name, text, [label], buckets=BUCKETS_S, registry=self.registry)

    async def read(self, projects: Iterable[ServedProject]) -> bytes:
        """Count new events in each project; return all metrics in the text format of Prometheus."""
        for project in projects:
            await project.run(self._readings[project.name].update)
        readings = self._readings.values()
        orders = [order for reading in readings for order in reading.orders]
        self.depth.set(sum(order.state in ("waiting", "queued") for order in orders))
        self.workers.set(len({order.worker for order in orders if order.state == "running"}))
        _show_highest(self.utilization, (reading.utilization for reading in readings))
        _show_highest(self.circuits, (reading.circuits for reading in readings))
        return generate_latest(self.registry)

    def tool_label(self, name: str) -> str:
        """Return the tool's name, or "other" if there are too many names already."""
        if len(self._tool_names) < MOST_NAMES:
            self._tool_names.add(name)
        return name if name in self._tool_names else OTHER


def _show_highest(gauge: Gauge, readings: Iterable[Mapping[tuple[str, ...], float]]) -> None:
    """Set the gauge to the highest value of all projects for each combination of labels."""
    highest: Values = {}
    for values in readings:
        for labels, value in values.items():
            highest[labels] = max(value, highest.get(labels, value))
    gauge.clear()
    for labels, value in highest.items():
        gauge.labels(*labels).set(value)


class ProjectReading:
    """The read part of one project so far."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self.utilization: Values = {}
        self.circuits: Values = {}
        self._metrics = metrics
        self._last = 0  # the number of the last event
        self._agents: dict[str, str] = {}  # session → who works in it
        self._spent: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self.orders: list[Placed] = []  # in the queue
        self._builds: dict[str, Placed] = {}  # as they were counted
        self._seen: set[tuple[str, ...]] = set()  # alerts and incidents that were counted

    def update(self, opened: OpenProject) -> None:
        """Count new events; budgets and circuits stay as they were last read while their store is unreachable."""
        self._count_events(opened.store)
        with suppress(StorageError):
            self.orders = opened.orders()
            self._count_builds()
        with suppress(StoreUnreachable), opened.limits() as limits:
            agents = self._read_budgets(limits)
            self._read_circuits(limits, agents)
            self._count_incidents(limits, agents)

    def _count_builds(self) -> None:
        """Count each ended build by its lease, and the leases that expired since the last time."""
        before, self._builds = self._builds, {order.order.module: order for order in self.orders}
        for module, order in self._builds.items():
            last = before.get(module)
            self._metrics.expired.inc(max(0, order.lost - (last.lost if last else 0)))
            if "seconds" in order.told and (last is None or last.told != order.told):
                self._metrics.builds.labels(order.state).observe(order.told["seconds"])

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
        metrics, own = self._metrics, self._agents.get(session, PERSONLESS)
        if name == IterationStarted.name:
            building = body["step"] in set(Step) and phase_of(Step(body["step"])) == "building"
            self._agents[session] = "builder" if building else "planner"
        elif name == TurnEnded.name:
            agent = {"turn": own, "research": "research"}.get(body.get("purpose", "turn"), "oracle")
            metrics.turns.labels(agent).observe(body["seconds"])
        elif name == ToolEnded.name:
            tool = metrics.tool_label(body["tool"])
            metrics.calls.labels(own, tool).inc()
            metrics.tools.labels(tool).observe(body["seconds"])
        else:
            metrics.verifications.labels(metrics.tool_label(body["tool"])).observe(body["seconds"])

    def _read_budgets(self, limits: LimitsStore) -> dict[str, str]:
        """Read budgets and spend; return budget → agent."""
        budgets = limits.budgets()
        for state in sorted(budgets, key=lambda b: b.last_updated):  # the most recently used counts
            self.utilization[state.spec.agent or PERSONLESS, state.budget_type] = state.utilization
        spent: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for spend in limits.spend():
            kind, agent = spend.budget_id.partition(":")[0], spend.agent or PERSONLESS
            for token_type, count in field_values(spend.usage).items():
                spent[agent, kind, token_type.removesuffix("_tokens")] += count
            if kind == "session":  # each request is charged to every kind once
                spent[(agent,)] += spend.cost_usd
        for labels, total in spent.items():
            counter = self._metrics.tokens if len(labels) > 1 else self._metrics.cost_usd
            counter.labels(*labels).inc(max(0.0, total - self._spent[labels]))
        self._spent = spent
        return {b.budget_id: b.spec.agent or PERSONLESS for b in budgets}

    def _read_circuits(self, limits: LimitsStore, agents: dict[str, str]) -> None:
        self.circuits.clear()
        for circuit in limits.circuits():
            labels = (agents.get(circuit.circuit_id, PERSONLESS),)
            self.circuits[labels] = max(self.circuits.get(labels, 0), STATES[circuit.state])

    def _count_incidents(self, limits: LimitsStore, agents: dict[str, str]) -> None:
        alerts, incidents = limits.alerts(), limits.incidents()  # all or none is counted
        present: set[tuple[str, ...]] = set()  # the store drops old rows, and so does this
        for alert in alerts:
            present.add(("alert", alert.alert_id))
            if ("alert", alert.alert_id) not in self._seen:
                agent = agents.get(alert.budget_id, PERSONLESS)
                self._metrics.alerts.labels(agent, alert.alert_type).inc()
                self._metrics.pauses.labels(agent).inc(alert.alert_type == ALERT_TYPES[PAUSE])
        rules = {rule.name for rule in RULES}
        for incident in incidents:
            key = ("incident", incident.circuit_id, incident.rule, incident.at.isoformat())
            present.add(key)
            if incident.rule in rules and key not in self._seen:
                agent = agents.get(incident.circuit_id, PERSONLESS)
                self._metrics.trips.labels(agent, incident.rule).inc()
        self._seen = present


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return the metrics of all projects of this server, for Prometheus."""
    projects: ServedProjects = request.app.state.projects
    found: ServerMetrics = request.app.state.metrics
    return Response(await found.read(projects), media_type=CONTENT_TYPE_PLAIN_0_0_4)
