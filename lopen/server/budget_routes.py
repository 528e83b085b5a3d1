"""Routes of budgets, circuits and alerts. Answers are the objects that the commands print with `--json`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BeforeValidator, Field

from lopen.application.decisions import release_budget, release_circuit
from lopen.application.open_store import no_such, now, rules
from lopen.core.errors import LopenError
from lopen.limits import admin_actions, report
from lopen.limits.budget import BudgetState
from lopen.limits.circuits import CircuitState, cooled
from lopen.limits.store import LimitsStore
from lopen.server.served import Chosen, Limit, Offset, OpenProject, Order, Said, ServedProject, page

routes = APIRouter(prefix="/api", tags=["limits"])
BudgetId = Annotated[str, Path(max_length=255, description="module:NAME, session:ID or task:ID.")]
CircuitId = Annotated[str, Path(max_length=255, description="session:ID.")]
AlertId = Annotated[str, Path(max_length=255)]
EXTENSIONS = 10  # in
PERIOD_S = 60.0


def _whole(given: object) -> object:
    """Return a number such as 5.0, which JSON Schema calls an integer, as one."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


class ExtendBudgetRequest(Order):
    """More tokens for a budget."""

    additional_tokens: Annotated[
        int, Field(strict=True, gt=0, le=1_000_000, examples=[100_000]), BeforeValidator(_whole)
    ]
    reason: Annotated[
        Said, Field(description="Kept with the extension.", examples=["the last task is close"])
    ]


class TooManyExtensions(LopenError):
    """Budgets were extended too often within a minute; `wait_s` seconds from now it is possible again."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(
            f"budgets were extended {EXTENSIONS} times within a minute", hint=f"try again in {wait_s} s"
        )
        self.wait_s = wait_s


class ExtensionRate:
    """At most `EXTENSIONS` extensions within `PERIOD_S`, over all budgets of the server."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=EXTENSIONS)

    def count(self) -> None:
        """Count one extension; raise `TooManyExtensions` if there were too many."""
        present = time.monotonic()
        if len(self._times) == EXTENSIONS and present - self._times[0] < PERIOD_S:
            raise TooManyExtensions(int(PERIOD_S - (present - self._times[0])) + 1)
        self._times.append(present)


@routes.get("/budget")
async def list_budgets(project: Chosen, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """List budgets."""

    def work(store: LimitsStore) -> dict[str, Any]:
        found = store.budgets()
        budgets = [report.budget_object(state) for state in page(found, offset, limit)]
        return {"budgets": budgets, "total": len(found)}

    return await project.run_limits(work)


@routes.get("/budget/alerts")
async def list_alerts(
    project: Chosen,
    budget_id: Annotated[str | None, Query(max_length=255, description="Only alerts of this budget.")] = None,
    acknowledged: Annotated[bool | None, Query(description="Only these, or only the others.")] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """List alerts, oldest first."""
    found = await project.run_limits(lambda store: store.alerts(budget_id, acknowledged))
    shown = [report.alert_object(alert) for alert in page(found, offset, limit)]
    return {"alerts": shown, "total": len(found)}


@routes.post("/budget/alerts/{alert_id}/acknowledge")
async def acknowledge_alert(project: Chosen, alert_id: AlertId) -> dict[str, Any]:
    """Mark an alert as seen."""
    alert = await project.run_limits(admin_actions.acknowledge_alert, alert_id)
    return report.alert_object(alert)


@routes.get("/budget/{budget_id}")
async def get_budget(project: Chosen, budget_id: BudgetId) -> dict[str, Any]:
    """Return one budget."""

    def work(store: LimitsStore) -> dict[str, Any]:
        found = store.budgets(budget_id)
        if not found:
            raise no_such("budget", budget_id)
        return report.budget_object(found[0])

    return await project.run_limits(work)


@routes.post("/budget/{budget_id}/extend")
async def extend_budget(
    request: Request, project: Chosen, budget_id: BudgetId, order: ExtendBudgetRequest
) -> dict[str, Any]:
    """Grant a budget more tokens. A running session goes on with them at once."""
    rate: ExtensionRate = request.app.state.extension_rate
    rate.count()

    def change(store: LimitsStore) -> BudgetState:
        return admin_actions.extend_budget(store, budget_id, order.additional_tokens, order.reason, now())

    return await _changed(project, budget_id, change)


@routes.post("/budget/{budget_id}/reset")
async def reset_budget(project: Chosen, budget_id: BudgetId) -> dict[str, Any]:
    """Set the usage of a budget to zero."""
    return await _changed(
        project, budget_id, lambda store: admin_actions.reset_budget(store, budget_id, now())
    )


@routes.get("/circuit")
async def list_circuits(project: Chosen, offset: Offset = 0, limit: Limit = 100) -> dict[str, Any]:
    """List circuits."""
    found = await project.run(_circuits)
    return {"circuits": page(found, offset, limit), "total": len(found)}


def _circuits(opened: OpenProject) -> list[dict[str, Any]]:
    with opened.limits() as store:
        return [_circuit(opened, state) for state in store.circuits()]


def _circuit(opened: OpenProject, state: CircuitState) -> dict[str, Any]:
    return report.circuit_object(cooled(state, now().timestamp()), rules(opened.settings))


@routes.get("/circuit/{circuit_id}")
async def get_circuit(project: Chosen, circuit_id: CircuitId) -> dict[str, Any]:
    """Return one circuit."""
    for found in await project.run(_circuits):
        if found["circuit_id"] == circuit_id:
            return found
    raise no_such("circuit", circuit_id)


@routes.post("/circuit/{circuit_id}/reset")
async def reset_circuit(project: Chosen, circuit_id: CircuitId) -> dict[str, Any]:
    """Close a circuit and reset its counters."""
    return await _changed(
        project, circuit_id, lambda store: admin_actions.reset_circuit(store, circuit_id, now())
    )


@routes.post("/circuit/{circuit_id}/acknowledge")
async def acknowledge_circuit(project: Chosen, circuit_id: CircuitId) -> dict[str, Any]:
    """Let one call through; its success closes the circuit."""
    return await _changed(
        project, circuit_id, lambda store: admin_actions.acknowledge_circuit(store, circuit_id, now())
    )


async def _changed(
    project: ServedProject, owner: str, change: Callable[[LimitsStore], BudgetState | CircuitState]
) -> dict[str, Any]:
    """Change a budget or a circuit, and let the session that waits for it continue."""

    def work(opened: OpenProject) -> dict[str, Any]:
        with opened.limits() as store:
            state = change(store)
        if isinstance(state, CircuitState):
            release_circuit(opened.context, opened.store, owner)
            return _circuit(opened, state)
        release_budget(opened.context, opened.store, owner)
        return report.budget_object(state)

    return await project.run(work)
