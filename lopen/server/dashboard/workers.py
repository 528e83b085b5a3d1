"""The page of workers: what each builds, how long its leases hold, and what the other builds of the queue wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lopen.core.money import dollars
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    Place,
    chip,
    copyable,
    duration,
    el,
    empty,
    frame,
    link,
    section,
    table,
)

if TYPE_CHECKING:  # it needs an extra
    from lopen.queue.shared import Placed


def workers_page(place: Place, orders: Sequence[Placed], unknown: str, waits: int) -> str:
    """Return the page; `unknown`: the reason if the queue cannot be read."""
    running = sorted((o for o in orders if o.state == "running"), key=lambda o: (o.worker, o.order.module))
    others = [order for order in orders if order.state != "running"]
    if unknown:
        return frame(place, "Workers", "Workers", el("h1", "Workers"), el("p.notice", unknown), waits=waits)
    body: list[Child] = [
        el("h1", "Workers"),
        section(
            "Builds under way",
            table(
                ("Worker", "Module", "Lease="),
                [(each.worker, _module(place, each), _lease(each)) for each in running],
                "Builds under way",
            )
            if running
            else empty("No worker builds anything. To start one: ", copyable("lopen worker")),
            note=len(running) or None,
        ),
        section(
            "Queue",
            table(
                ("Module", "State", "Priority#", "Tasks#", "Cost#", "Waits for="),
                [_row(place, each, orders) for each in others],
                "Queue",
            )
            if others
            else empty("Nothing waits. To order a build: ", copyable("lopen queue add MODULE")),
            note=len(others) or None,
        ),
    ]
    return frame(place, "Workers", "Workers", *body, waits=waits)


def _lease(placed: Placed) -> Child:
    if placed.left_s < 0:
        return chip("stopped", "expired: another worker takes the build over")
    return f"holds for {duration(round(placed.left_s))}"


def _module(place: Place, placed: Placed) -> Markup:
    return link(placed.order.module, place.module(placed.order.module))


def _row(place: Place, placed: Placed, orders: Sequence[Placed]) -> Sequence[Child]:
    told, complete = placed.told, {o.order.module for o in orders if o.state == "complete"}
    waits: list[Child] = []
    if placed.state == "waiting":
        waits.append(", ".join(name for name in placed.order.after if name not in complete) or "a worker")
    elif placed.state == "queued":
        waits.append("a worker")
    elif placed.state != "complete":
        command = str(told.get("command") or f"lopen queue retry {placed.order.module}")
        waits += [str(told.get("reason") or ""), " ", copyable(command)]
    return (
        _module(place, placed),
        chip(placed.state),
        str(placed.priority),
        f"{told['tasks_done']} of {told['tasks']}" if "tasks" in told else "–",
        dollars(told["cost_usd"]) if "cost_usd" in told else "–",
        waits,
    )
