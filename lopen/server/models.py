"""What the API answers and takes: field names are those of `--json`, for scripts that use both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
Time = Annotated[str, Field(description="ISO 8601, UTC.", examples=["2026-11-22T19:05:54Z"])]


class Answer(BaseModel):
    """Everything the API answers; more fields may come."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class Order(BaseModel):
    """Everything a request may ask for; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Page(Answer):
    """A part of a list."""

    total: Count = Field(description="Number of entries in the whole list.", examples=[1])


class Health(Answer):
    """The server answers."""

    status: Literal["ok"] = "ok"
    version: str = Field(description="Version of lopen.", examples=["0.1.0"])


class ServedProjectResponse(Answer):
    """A project that this server serves."""

    project: str = Field(description="Name for the query parameter `project`.", examples=["shop"])
    root: str = Field(description="The project's folder.", examples=["/home/ada/shop"])


class ProjectListResponse(Page):
    """The projects of this server; the first one is meant where a request names none."""

    projects: list[ServedProjectResponse]


class BudgetStateResponse(Answer):
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
    extended: Count = Field(description="Tokens that extensions granted, part of `max_tokens`.")


class BudgetListResponse(Page):
    """Budgets, in the order of their ids."""

    budgets: list[BudgetStateResponse]


class ExtendBudgetRequest(Order):
    """More tokens for a budget."""

    additional_tokens: Annotated[int, Field(gt=0, le=1_000_000, strict=True, examples=[100_000])]
    reason: Annotated[
        Said, Field(description="Kept with the extension.", examples=["the last task is close"])
    ]


class CircuitStateResponse(Answer):
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


class AlertResponse(Answer):
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


class ModuleResponse(Answer):
    """A module with a specification."""

    module: str = Field(examples=["calc"])
    session: str = Field(description="The latest session; empty if there is none.")
    state: str = Field(description="specified, approved, running, paused, failed or complete.")
    step: str | None
    tasks_done: Count
    tasks: Count
    tokens: Count
    cost_usd: float
    unpriced_tokens: Count


class ModuleListResponse(Page):
    """Modules, in the order of their names."""

    modules: list[ModuleResponse]


class WaitingResponse(Answer):
    """The reason why a session waits, and the command that continues it."""

    kind: str = Field(
        description="gate, confirmation, question, budget, circuit, iterations, endpoint, guardrail, storage,"
        " interrupted or person.",
        examples=["gate"],
    )
    message: str
    command: str = Field(examples=["lopen approve calc --run"])


class SessionSummary(Answer):
    """A session in a list."""

    session: str = Field(examples=["calc-20261122-1"])
    module: str
    status: str = Field(description="running, paused, failed, complete or archived.")
    step: str = Field(examples=["iterate_through_tasks"])
    created_at: Time
    tasks_done: Count
    tasks: Count
    waiting: WaitingResponse | None


class SessionListResponse(Page):
    """Sessions, newest first; archived ones last."""

    sessions: list[SessionSummary]


class IterationsResponse(Answer):
    """Iterations of a session."""

    used: Count
    granted: Count


class ScopeResponse(Answer):
    """Completed criteria and components against the original scope, which is null before step 4."""

    completed: Count
    original: Count | None


class TaskSummary(Answer):
    """A task in a session's tree."""

    id: str = Field(examples=["calc-t1"])
    name: str
    state: Literal["pending", "in_progress", "complete", "failed"]
    commit: str | None
    failures: Count = Field(description="Failures in a row.")


class ComponentSummary(Answer):
    """A component in a session's tree."""

    id: str
    name: str
    state: str
    criteria: list[str]
    tasks: list[TaskSummary]


class QuestionResponse(Answer):
    """The model's open question."""

    text: str
    options: list[str]
    default: str
    answer: str | None


class StandstillResponse(Answer):
    """The reason why a session does not run, how to mend it, and the command that continues it."""

    cause: str
    mend: str
    command: str


class SessionResponse(Answer):
    """A session with its task tree."""

    session: str = Field(examples=["calc-20261122-1"])
    module: str
    status: Literal["running", "paused", "failed", "complete"]
    step: str
    phase: str = Field(examples=["building"])
    iterations: IterationsResponse
    scope: ScopeResponse
    branch: str | None
    components: list[ComponentSummary]
    verdicts: list[dict[str, Any]] = Field(description="The latest verdicts, oldest first.")
    assumptions: list[str]
    accepted: list[str] = Field(description="Undecided verdicts that a person accepted.")
    waiting: WaitingResponse | None
    question: QuestionResponse | None
    worked_on: bool = Field(description="True if a process drives the session now.")
    standstill: StandstillResponse | None = Field(description="Null while it runs or when it is complete.")


class CriterionResponse(Answer):
    """An acceptance criterion."""

    id: str = Field(examples=["AC-1"])
    text: str


class CommandResponse(Answer):
    """A verify command as lopen will run it."""

    name: str = Field(examples=["verify-tests"])
    command: str | None = Field(examples=["pytest -q"])
    shown: str = Field(description="The command with invisible characters made visible.")


class RemarkResponse(Answer):
    """A problem or warning about a line of the specification."""

    line: Count
    message: str


class ApprovalResponse(Answer):
    """An approval."""

    module: str
    who: str
    at: Time
    note: str
    spec_hash: str


class SpecificationResponse(Answer):
    """What a person reads before approving."""

    module: str
    name: str
    description: str
    path: str = Field(examples=["specs/calc/SPECIFICATION.md"])
    spec_hash: str = Field(description="Send it with the approval.")
    text: str
    criteria: list[CriterionResponse]
    commands: list[CommandResponse]
    problems: list[RemarkResponse] = Field(description="An approval is refused while there are any.")
    warnings: list[RemarkResponse]
    approval: ApprovalResponse | None = Field(description="The latest approval.")
    changes: list[str] = Field(description="Sections and commands that changed since that approval.")


class ApproveRequest(Order):
    """The approval of exactly one text."""

    spec_hash: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$", description="Of the text that you read.")]
    note: Text = ""


class ConfirmRequest(Order):
    """A confirmation."""

    note: Annotated[Text, Field(description="Told to the model.")] = ""


class AnswerRequest(Order):
    """The answer to the model's question."""

    text: Said


class SkipRequest(Order):
    """A task that a person gives up."""

    reason: Said


class DecisionResponse(Answer):
    """The effect of a decision."""

    session: str
    message: str
    done: bool = Field(description="False: the running session does it at its next safe point.")
    command: str = Field(description="The command that continues the session; empty if it runs.")
