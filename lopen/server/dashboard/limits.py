"""The page of limits: summary cards, spend over time, budgets, circuits and alerts, with what a person decides on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lopen.application.overview import ProjectOverview
from lopen.core.money import dollars
from lopen.limits.budget import BudgetState
from lopen.limits.circuits import CircuitState
from lopen.limits.records import Alert
from lopen.limits.report import circuit_object
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    Place,
    ago,
    bar,
    chip,
    el,
    empty,
    fact,
    frame,
    plural,
    press,
    prose,
    section,
    short,
    some,
    table,
    unfold,
)
from lopen.server.dashboard.waits import extend_form

CIRCUIT_STATES = {"closed": "OK", "open": "open", "half_open": "trying again"}
SERIES = 6  # colours of the chart
Spend = (
    tuple[datetime, datetime, Mapping[str, Sequence[int]]] | None
)  # first and last turn, model → tokens by period


def limits_page(
    place: Place, overview: ProjectOverview, alerts: Sequence[Alert], spend: Spend, waits: int
) -> str:
    """Return the page of limits."""
    found = overview.limits
    budgets = sorted(found.budgets, key=lambda b: (b.status == "active", -b.last_updated.timestamp()))
    body: list[Child] = [
        el("h1", "Limits and spend"),
        el("p.notice", found.unknown) if found.unknown else None,
        _cards(overview),
        section("Alerts", _alerts(place, alerts), note=len(alerts) or None),
        section("Tokens over time", chart(spend)),
        section("Budgets", _budgets(place, budgets), note=len(budgets) or None),
        section(
            "Circuits",
            _circuits(place, overview) if found.circuits else empty("No circuit has counted a call yet."),
        ),
    ]
    return frame(place, "Limits", "Limits", *body, waits=waits)


def _cards(overview: ProjectOverview) -> Markup:
    running = [m.module for m in overview.modules if m.act]
    modules = [b for b in overview.limits.budgets if b.budget_type == "module"]
    states = Counter(b.status for b in overview.limits.budgets)
    open_ones = len(overview.open_circuits)
    near = ", ".join(f"{n} {state}" for state, n in states.items() if state != "active")
    used, cost = sum(b.tokens_used for b in modules), sum(b.cost_usd for b in modules)
    return el(
        "dl.facts.panel",
        fact("running now", str(len(running)), el("small", f" {', '.join(running) or 'nothing runs'}")),
        fact("tokens used", short(used), el("small", f" {dollars(cost)}")),
        fact("budgets", f"{states['active']} OK", el("small", f" {near or 'none near its limit'}")),
        fact("circuits", f"{open_ones} open" if open_ones else "all OK"),
    )


def _used(tokens: int, most: int) -> str:
    return f"{short(tokens)} of {short(most)}" if most else short(tokens)


def budget_table(place: Place, budgets: Sequence[BudgetState]) -> Markup:
    """Return the budgets with their bars; the last column opens the forms that extend and reset one."""
    rows = []
    for b in budgets:
        said = f"{b.budget_id}: {b.utilization:.0%} used, {b.status}"
        tone = {"active": "busy", "warning": "warn"}.get(b.status, "bad")
        kind, _, name = b.budget_id.partition(":")
        reset = press("Reset to zero", place.href("api", "budget", b.budget_id, "reset"))
        share = [bar(b.utilization, said, tone, b.spec.alert_threshold), el("small", f" {b.utilization:.0%}")]
        rows.append(
            (
                [el("small", f"{kind} "), b.spec.task_description or name],
                chip(b.status, "OK" if b.status == "active" else b.status),
                _used(b.tokens_used, b.max_tokens),
                share if b.max_tokens else el("small", "no limit"),
                ago(b.last_updated),
                unfold(
                    "Change…",
                    extend_form(place, b) if b.max_tokens else None,
                    reset,
                    kind=".quiet",
                    label=f"Change {b.budget_id}",
                ),
            )
        )
    head = ("Budget", "State", "Tokens used#", "Share", "Used", "")
    return table(head, rows, "Budgets", [f"budget-{b.budget_id}" for b in budgets])


def _budgets(place: Place, budgets: Sequence[BudgetState]) -> Child:
    """Return the budgets near their limit and the wide ones, then those of the tasks, folded."""
    if not budgets:
        return empty("A budget appears with a run's first request.")
    calm = [b for b in budgets if b.status == "active" and b.budget_type == "task"]
    first = [b for b in budgets if b not in calm]
    folded = el(
        "details",
        el("summary", f"{plural(len(calm), 'task')}, none near its limit"),
        budget_table(place, calm),
    )
    return [budget_table(place, first) if first else None, folded if calm else None]


def _circuits(place: Place, overview: ProjectOverview) -> Markup:
    found = overview.limits.circuits
    rows = [_circuit(place, circuit, circuit_object(circuit, overview.limits.book)) for circuit in found]
    head = ("Circuit", "State", "Calls#", "Identical calls#", "Used", "")
    return table(head, rows, "Circuits", [f"circuit-{c.circuit_id}" for c in found])


def _circuit(place: Place, circuit: CircuitState, shown: Mapping[str, Any]) -> Sequence[Child]:
    name = circuit.circuit_id
    acknowledge, reset = (
        press(verb.title(), place.href("api", "circuit", name, verb), label=f"{verb.title()} {name}")
        for verb in ("acknowledge", "reset")
    )
    acts = [acknowledge if circuit.tripped else None, reset]
    return (
        [name.partition(":")[2], some("small.below", prose(circuit.trip_reason or ""))],
        chip(CIRCUIT_STATES[circuit.state]),
        f"{shown['iteration_count']} of {shown['max_iterations']}",
        f"{shown['duplicate_call_count']} of {shown['duplicate_threshold']}",
        ago(shown["last_updated"]),
        el("div.acts", acts) if circuit.state != "closed" else None,
    )


def _alerts(place: Place, alerts: Sequence[Alert]) -> Markup:
    def item(alert: Alert) -> Markup:
        kind = "warning" if alert.alert_type == "warning_threshold" else "error"
        seen = place.href("api", "budget", "alerts", alert.alert_id, "acknowledge")
        return el(
            "li",
            chip(kind, alert.alert_type.replace("_", " ")),
            el("span", prose(alert.message), " ", el("small", alert.budget_id, " ", ago(alert.timestamp))),
            press("Acknowledge", seen, label=f"Acknowledge: {alert.message}"),
            id_=f"alert-{alert.alert_id}",
        )

    return some("ul.list", map(item, alerts)) or empty("No alert waits for you.")


def chart(spend: Spend) -> Markup:
    """Return the tokens in periods of equal length as stacked bars, a colour for each model."""
    if spend is None:
        return empty("Tokens appear here with a run's first request.")
    first, last, periods = spend
    sums = [sum(counts) for counts in zip(*periods.values(), strict=True)]
    top, width, floor = max(*sums, 1), 100 / len(sums), [100.0] * len(sums)
    bars = []
    for number, counts in enumerate(periods.values()):
        for n, count in enumerate(counts):
            height = 100 * count / top
            floor[n] -= height
            size = {"x": f"{n * width:.2f}%", "y": f"{floor[n]:.1f}%", "height": f"{height:.1f}%"}
            if count:
                bars.append(el(f"rect.series-{number % SERIES}", width=f"{width * 0.8:.2f}%", **size))
    legend = [
        el("span", el(f"i.series-{n % SERIES}"), f"{name} {short(sum(counts))}")
        for n, (name, counts) in enumerate(periods.items())
    ]
    said = ", ".join(f"{name} {short(sum(counts))}" for name, counts in periods.items())
    return el(
        "div.panel",
        el("p.axis", el("span", f"{short(top)} tokens")),
        el("svg.chart", bars, role="img", aria_label=f"Tokens over time: {said}"),
        el("p.axis", (el("span", f"{at.astimezone():%d %b %H:%M}") for at in (first, last))),
        el("p.legend", legend),
    )
