"""What the API answers and takes: field names are those of `--json`, for scripts that use both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
Time = Annotated[str, Field(description="ISO 8601, UTC.", examples=["2026-11-22T19:05:54Z"])]


def _number(value: Any) -> Any:
    """Refuse what pydantic would take for a number though it is none in JSON."""
    if isinstance(value, bool | str):
        raise ValueError("Input should be a number")
    return value


class ResponseModel(BaseModel):
    """Everything the API answers; more fields may come."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class Order(BaseModel):
    """Everything a request may ask for; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Page(ResponseModel):
    """A part of a list."""

    total: Count = Field(description="Number of entries in the whole list.", examples=[1])


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
