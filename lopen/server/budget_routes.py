"""Routes of budgets, circuits and alerts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BeforeValidator, Field

from lopen.application.decisions import release_circuit
from lopen.application.limits import no_such, now, with_cost
from lopen.core.errors import LopenError
from lopen.limits import admin_actions, report
from lopen.limits.budgets.budget import BudgetState
from lopen.limits.circuits.circuit import CircuitState, cooled
from lopen.limits.stores.store import LimitsStore
from lopen.server.models import Count, Order, Page, ResponseModel, Said, Time
from lopen.server.served import Chosen, Limit, Offset, OpenProject, ServedProject, page

routes = APIRouter(prefix="/api", tags=["limits"])
BudgetId = Annotated[str, Path(max_length=255, description="module:NAME, session:ID or task:ID.")]
CircuitId = Annotated[str, Path(max_length=255, description="session:ID.")]
AlertId = Annotated[str, Path(max_length=255)]
EXTENSIONS = 10  # in
PERIOD_S = 60.0


def _number(value: Any) -> Any:
    """Refuse what pydantic would take for a number though it is none in JSON."""
    if isinstance(value, bool | str):
        raise ValueError("Input should be a number")
    return value


class BudgetStateResponse(ResponseModel):
    """A budget."""

    budget_id: str = Field(examples=["module:calc"])
    budget_type: str = Field(description="module, session or task.", examples=["module"])
    max_tokens: Count = Field(description="Allowed tokens; 0: no limit.", examples=[2_000_000])
    tokens_used: Count = Field(description="As they are billed; cache reads at their weight.", examples=[1])
    utilization: float = Field(description="Used of what is allowed, 1.0 is all of it.", examples=[0.41])
    remaining: Count | None = Field(description="Tokens left; null without a limit.", examples=[1_180_000])
    status: str = Field(description="active, warning, paused or exhausted.", examples=["active"])
    alert_threshold: float = Field(examples=[0.8])
    agent: str = Field(examples=["builder"])
    task_description: str
    started_at: Time
    last_updated: Time
    reserved: Count = Field(description="Tokens reserved for requests under way.")
    requests_used: Count
    max_requests: Count = Field(description="Allowed requests; 0: no limit.")
    cost_usd: float = Field(description="Cost in USD of tokens with a known price.", examples=[0.7313])
    unpriced_tokens: Count = Field(description="Tokens without a known price.")
    estimated_tokens: Count = Field(description="Tokens of cut requests, estimated; part of `tokens_used`.")
    extended: Count = Field(description="Tokens that extensions granted, part of `max_tokens`.")


class BudgetListResponse(Page):
    """Budgets, in the order of their ids."""

    budgets: list[BudgetStateResponse]


class ExtendBudgetRequest(Order):
    """More tokens for a budget."""

    additional_tokens: Annotated[int, Field(gt=0, le=1_000_000, examples=[100_000]), BeforeValidator(_number)]
    reason: Annotated[
        Said, Field(description="Kept with the extension.", examples=["the last task is close"])
    ]


class CircuitStateResponse(ResponseModel):
    """The circuit breaker of a session."""

    circuit_id: str = Field(examples=["session:calc-20261122-1"])
    state: Literal["closed", "open", "half_open"]
    iteration_count: Count = Field(description="Tool calls since the last passing verify command.")
    max_iterations: Count
    duplicate_call_count: Count = Field(description="Identical calls in a row.")
    duplicate_threshold: Count
    trip_reason: str
    tripped_at: Time | None
    last_updated: Time
    rule: str = Field(description="The rule that tripped last.", examples=["duplicate_call"])
    cooldown_until: Time | None
    needs_ack: bool = Field(description="True: a person has to acknowledge it.")
    trips: Count


class CircuitListResponse(Page):
    """Circuits, in the order of their ids."""

    circuits: list[CircuitStateResponse]


class AlertResponse(ResponseModel):
    """An alert."""

    alert_id: str = Field(examples=["a-000001"])
    budget_id: str = Field(examples=["session:calc-20261122-1"])
    alert_type: str = Field(
        description="warning_threshold, confirmation, budget_exhausted, circuit_tripped, protected_path or secret.",
        examples=["warning_threshold"],
    )
    message: str
    utilization: float
    timestamp: Time
    acknowledged: bool


class AlertListResponse(Page):
    """Alerts, oldest first."""

    alerts: list[AlertResponse]


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
async def list_budgets(project: Chosen, offset: Offset = 0, limit: Limit = 100) -> BudgetListResponse:
    """List budgets."""

    def work(store: LimitsStore) -> BudgetListResponse:
        found = store.budgets(offset=offset, limit=limit)
        budgets = [_budget(with_cost(store, state)) for state in found]
        return BudgetListResponse(budgets=budgets, total=store.budget_count())

    return await project.run_limits(work)


def _budget(state: BudgetState) -> BudgetStateResponse:
    return BudgetStateResponse(**report.budget_object(state))


@routes.get("/budget/alerts")
async def list_alerts(
    project: Chosen,
    budget_id: Annotated[str | None, Query(max_length=255, description="Only alerts of this budget.")] = None,
    acknowledged: Annotated[bool | None, Query(description="Only these, or only the others.")] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> AlertListResponse:
    """List alerts, oldest first."""
    found = await project.run_limits(lambda store: store.alerts(budget_id, acknowledged))
    shown = [AlertResponse(**report.alert_object(alert)) for alert in page(found, offset, limit)]
    return AlertListResponse(alerts=shown, total=len(found))


@routes.post("/budget/alerts/{alert_id}/acknowledge")
async def acknowledge_alert(project: Chosen, alert_id: AlertId) -> AlertResponse:
    """Mark an alert as seen."""
    alert = await project.run_limits(admin_actions.acknowledge_alert, alert_id)
    return AlertResponse(**report.alert_object(alert))


@routes.get("/budget/{budget_id}")
async def get_budget(project: Chosen, budget_id: BudgetId) -> BudgetStateResponse:
    """Return one budget."""

    def work(store: LimitsStore) -> BudgetStateResponse:
        found = store.budgets(budget_id)
        if not found:
            raise no_such("budget", budget_id)
        return _budget(with_cost(store, found[0]))

    return await project.run_limits(work)


@routes.post("/budget/{budget_id}/extend")
async def extend_budget(
    request: Request, project: Chosen, budget_id: BudgetId, order: ExtendBudgetRequest
) -> BudgetStateResponse:
    """Grant a budget more tokens. A running session goes on with them at once."""
    rate: ExtensionRate = request.app.state.extension_rate
    rate.count()
    tokens, reason = order.additional_tokens, order.reason
    return _budget(await project.run_limits(admin_actions.extend_budget, budget_id, tokens, reason, now()))


@routes.post("/budget/{budget_id}/reset")
async def reset_budget(project: Chosen, budget_id: BudgetId) -> BudgetStateResponse:
    """Set the usage of a budget to zero."""
    return _budget(await project.run_limits(admin_actions.reset_budget, budget_id, now()))


@routes.get("/circuit")
async def list_circuits(project: Chosen, offset: Offset = 0, limit: Limit = 100) -> CircuitListResponse:
    """List circuits."""
    found = await project.run_limits(lambda store: store.circuits())
    shown = [_circuit(state) for state in page(found, offset, limit)]
    return CircuitListResponse(circuits=shown, total=len(found))


def _circuit(state: CircuitState) -> CircuitStateResponse:
    return CircuitStateResponse(**report.circuit_object(cooled(state, now().timestamp())))


@routes.get("/circuit/{circuit_id}")
async def get_circuit(project: Chosen, circuit_id: CircuitId) -> CircuitStateResponse:
    """Return one circuit."""
    for state in await project.run_limits(lambda store: store.circuits()):
        if state.circuit_id == circuit_id:
            return _circuit(state)
    raise no_such("circuit", circuit_id)


@routes.post("/circuit/{circuit_id}/reset")
async def reset_circuit(project: Chosen, circuit_id: CircuitId) -> CircuitStateResponse:
    """Close a circuit and reset its counters."""
    return await _changed(project, circuit_id, admin_actions.reset_circuit)


@routes.post("/circuit/{circuit_id}/acknowledge")
async def acknowledge_circuit(project: Chosen, circuit_id: CircuitId) -> CircuitStateResponse:
    """Let one call through; its success closes the circuit."""
    return await _changed(project, circuit_id, admin_actions.acknowledge_circuit)


async def _changed(
    project: ServedProject, circuit_id: str, change: Callable[[LimitsStore, str, datetime], CircuitState]
) -> CircuitStateResponse:
    """Change a circuit, and let its session continue."""

    def work(opened: OpenProject) -> CircuitState:
        with opened.limits() as store:
            state = change(store, circuit_id, now())
        release_circuit(opened.context, opened.store, circuit_id)
        return state

    return CircuitStateResponse(**report.circuit_object(await project.run(work)))
