"""Metrics for Prometheus: the counts of all projects of a server, under the names of docs/reference/server.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

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

from lopen.server.counts import Durations, ProjectCounts, Values
from lopen.server.served import ServedProject, ServedProjects

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


def _sum(counts: Iterable[Values]) -> Values:
    total: Values = defaultdict(float)
    for each in counts:
        for labels, value in each.items():
            total[labels] += value
    return total


def _highest(counts: Iterable[Values]) -> Values:
    found: Values = defaultdict(float)
    for each in counts:
        for labels, value in each.items():
            found[labels] = max(found[labels], value)
    return found


def _counter(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    family = CounterMetricFamily(f"lopen_{name}", text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    family = GaugeMetricFamily(f"lopen_{name}", text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


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
