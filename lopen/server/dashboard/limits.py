"""The page of limits: summary cards, spend over time, budgets, circuits and alerts, with what a person decides on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
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
    frame,
    press,
    prose,
    section,
    short,
    table,
)
from lopen.server.dashboard.waits import extend

CIRCUIT_STATES = {"closed": "OK", "open": "open", "half_open": "trying again"}
WIDTH, HEIGHT, LEFT, FOOT = 720, 180, 50, 18  # of the chart
SERIES = 6  # colours


def limits_page(
    place: Place, overview: ProjectOverview, alerts: Sequence[Alert], spend: Mapping[str, Any], waits: int
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
        section(
            "Budgets",
            budget_table(place, budgets)
            if budgets
            else empty("A budget appears with a run's first request."),
            note=len(budgets) or None,
        ),
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
    cards = (
        ("Active agents", str(len(running)), ", ".join(running) or "nothing runs"),
        (
            "Total tokens",
            short(sum(b.tokens_used for b in modules)),
            dollars(sum(b.cost_usd for b in modules)),
        ),
        (
            "Budgets",
            f"{states['active']} OK",
            ", ".join(f"{n} {state}" for state, n in states.items() if state != "active")
            or "none near its limit",
        ),
        (
            "Circuits",
            f"{open_ones} open" if open_ones else "all OK",
            f"{len(overview.limits.circuits)} counted",
        ),
    )
    return el(
        "dl.facts.panel",
        (el("div", el("dt", name), el("dd", value, " ", el("small", note))) for name, value, note in cards),
    )


def budget_table(place: Place, budgets: Sequence[BudgetState]) -> Markup:
    """Return the budgets with their bars, and the forms that extend and reset them."""
    rows = []
    for b in budgets:
        said = f"{b.budget_id}: {b.utilization:.0%} used, {b.status}"
        tone = {"active": "busy", "warning": "warn"}.get(b.status, "bad")
        kind, _, name = b.budget_id.partition(":")
        rows.append(
            (
                [
                    el("small", f"{kind} "),
                    name,
                    el("small.below", b.spec.task_description) if b.spec.task_description else None,
                ],
                b.spec.agent or "–",
                f"{short(b.tokens_used)} of {short(b.max_tokens) if b.max_tokens else 'unlimited'}",
                [bar(b.utilization, said, tone, b.spec.alert_threshold), el("small", f" {b.utilization:.0%}")]
                if b.max_tokens
                else "–",
                chip(b.status, "OK" if b.status == "active" else b.status),
                ago(b.last_updated),
                el(
                    "div.acts",
                    extend(place, b) if b.max_tokens else None,
                    press(
                        "Reset",
                        place.href("api", "budget", b.budget_id, "reset"),
                        label=f"Reset {b.budget_id}",
                    ),
                ),
            )
        )
    return table(
        ("Budget", "Agent", "Tokens used#", "Share", "State", "Used", ""),
        rows,
        "Budgets",
        [f"budget-{b.budget_id}" for b in budgets],
    )


def _circuits(place: Place, overview: ProjectOverview) -> Markup:
    book = overview.limits.book
    rows = [_circuit(place, circuit, circuit_object(circuit, book)) for circuit in overview.limits.circuits]
    return table(
        ("Circuit", "State", "Calls#", "Identical calls#", "Used", ""),
        rows,
        "Circuits",
        [f"circuit-{c.circuit_id}" for c in overview.limits.circuits],
    )


def _circuit(place: Place, circuit: CircuitState, shown: Mapping[str, Any]) -> Sequence[Child]:
    address = [place.href("api", "circuit", circuit.circuit_id, verb) for verb in ("acknowledge", "reset")]
    acknowledge = (
        press("Acknowledge", address[0], label=f"Acknowledge {circuit.circuit_id}")
        if circuit.tripped
        else None
    )
    reset = press("Reset", address[1], label=f"Reset {circuit.circuit_id}")
    return (
        [
            circuit.circuit_id.partition(":")[2],
            el("small.below", prose(circuit.trip_reason)) if circuit.trip_reason else None,
        ],
        chip(CIRCUIT_STATES[circuit.state]),
        f"{shown['iteration_count']} of {shown['max_iterations']}",
        f"{shown['duplicate_call_count']} of {shown['duplicate_threshold']}",
        ago(shown["last_updated"]),
        el("div.acts", acknowledge, reset) if circuit.state != "closed" else None,
    )


def _alerts(place: Place, alerts: Sequence[Alert]) -> Markup:
    if not alerts:
        return empty("No alert waits for you.")
    return el(
        "ul.list",
        (
            el(
                "li",
                chip(
                    "warning" if a.alert_type == "warning_threshold" else "error",
                    a.alert_type.replace("_", " "),
                ),
                el("span", prose(a.message), " ", el("small", a.budget_id, " ", ago(a.timestamp))),
                press(
                    "Acknowledge",
                    place.href("api", "budget", "alerts", a.alert_id, "acknowledge"),
                    label=f"Acknowledge: {a.message}",
                ),
                id_=f"alert-{a.alert_id}",
            )
            for a in alerts
        ),
    )


def chart(spend: Mapping[str, Any]) -> Markup:
    """Return the tokens in periods of equal length as stacked bars, a colour for each model."""
    points, series = spend["points"], spend["series"]
    if not points:
        return empty("Tokens appear here with a run's first request.")
    top = _rounded(max(sum(point["tokens"].values()) for point in points))
    step = (WIDTH - LEFT) / max(24, len(points))
    tall = HEIGHT - FOOT - 8
    bars, lines = [], []
    for n, point in enumerate(points):
        y = float(HEIGHT - FOOT)
        for number, name in enumerate(series):
            count = point["tokens"].get(name, 0)
            y -= count / top * tall
            size = {
                "x": f"{LEFT + n * step:.1f}",
                "y": f"{y:.1f}",
                "width": f"{step * 0.8:.1f}",
                "height": f"{count / top * tall:.1f}",
            }
            bars.append(el(f"rect.series-{number % SERIES}", **size) if count else None)
    for part in (0, 0.5, 1):
        y = HEIGHT - FOOT - part * tall
        lines += [
            el("line", x1=LEFT, x2=WIDTH, y1=y, y2=y),
            el("text", short(top * part), x=LEFT - 6, y=y + 4, text_anchor="end"),
        ]
    for point, x, anchor in ((points[0], LEFT, "start"), (points[-1], LEFT + len(points) * step, "end"))[
        : 1 + (len(points) > 5)
    ]:
        at = datetime.fromisoformat(point["time"]).astimezone()
        lines.append(el("text", f"{at:%d %b %H:%M}", x=f"{x:.0f}", y=HEIGHT - 4, text_anchor=anchor))
    totals = {name: sum(point["tokens"].get(name, 0) for point in points) for name in series}
    said = ", ".join(f"{name} {short(count)}" for name, count in totals.items())
    legend = el(
        "p.legend",
        (
            el("span", el(f"i.series-{n % SERIES}"), f"{name} {short(count)}")
            for n, (name, count) in enumerate(totals.items())
        ),
    )
    return el(
        "div.panel",
        el(
            "svg.chart",
            lines,
            bars,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=f"Tokens over time: {said}",
        ),
        legend,
    )


def _rounded(most: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten, so that the axis has round numbers."""
    power = 10.0 ** max(0, len(str(int(max(most, 1)))) - 1)
    return next(islice((m * power for m in (1, 2, 5, 10) if m * power >= most), 1), most)
