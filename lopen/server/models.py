"""The API's models of projects, modules, sessions and decisions, and their common base.

Field names are those of `--json`, for scripts that use both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, StringConstraints(max_length=10_000)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]
Time = Annotated[str, Field(description="ISO 8601, UTC.", examples=["2026-11-22T19:05:54Z"])]


class ResponseModel(BaseModel):
    """Everything the API answers; more fields may come."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class Order(BaseModel):
    """Everything a request may ask for; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Page(ResponseModel):
    """A part of a list."""

    total: Count = Field(description="Number of entries in the whole list.", examples=[1])


class Health(ResponseModel):
    """The server answers."""

    status: Literal["ok"] = "ok"
    version: str = Field(description="Version of lopen.", examples=["0.1.0"])


class ServedProjectResponse(ResponseModel):
    """A project that this server serves."""

    project: str = Field(description="Name for the query parameter `project`.", examples=["shop"])
    root: str = Field(description="The project's folder.", examples=["/home/ada/shop"])


class ProjectListResponse(Page):
    """The projects of this server; the first one is meant where a request names none."""

    projects: list[ServedProjectResponse]


class ModuleResponse(ResponseModel):
    """A module with a specification."""

    module: str = Field(examples=["calc"])
    session: str = Field(description="The latest session; empty if there is none.")
    state: str = Field(description="specified, approved, running, paused, failed or complete.")
    step: str | None
    worked_on: bool = Field(description="True if a process drives the module now.")
    tasks_done: Count
    tasks: Count
    tokens: Count
    cost_usd: float
    unpriced_tokens: Count


class ModuleListResponse(Page):
    """Modules, in the order of their names."""

    modules: list[ModuleResponse]


class WaitingResponse(ResponseModel):
    """The reason why a session waits, and the command that continues it."""

    kind: str = Field(description="gate, confirmation, question, budget, circuit, …", examples=["gate"])
    message: str
    command: str = Field(examples=["lopen approve calc --run"])


class StandstillResponse(ResponseModel):
    """The reason why a session does not run, how to mend it, and the command that continues it."""

    cause: str
    mend: str
    command: str


class SessionSummary(ResponseModel):
    """A session in a list."""

    session: str = Field(examples=["calc-20261122-1"])
    module: str
    status: str = Field(description="running, paused, failed, complete or archived.")
    step: str = Field(examples=["iterate_through_tasks"])
    created_at: Time
    tasks_done: Count
    tasks: Count
    waiting: WaitingResponse | None
    standstill: StandstillResponse | None = Field(description="Null while it runs or when it is complete.")


class SessionListResponse(Page):
    """Sessions, newest first; archived ones last."""

    sessions: list[SessionSummary]


class IterationsResponse(ResponseModel):
    """Iterations of a session."""

    used: Count
    granted: Count


class ScopeResponse(ResponseModel):
    """Completed criteria and components against the original scope, which is null before step 4."""

    completed: Count
    original: Count | None


class TaskSummary(ResponseModel):
    """A task in a session's tree."""

    id: str = Field(examples=["calc-t1"])
    name: str
    state: Literal["pending", "in_progress", "complete", "failed"]
    commit: str | None
    failures: Count = Field(description="Failures in a row.")
    judged: bool | None = Field(description="Whether the latest verdict on the task passed.")


class ComponentSummary(ResponseModel):
    """A component in a session's tree."""

    id: str
    name: str
    state: str
    criteria: list[str]
    tasks: list[TaskSummary]


class QuestionResponse(ResponseModel):
    """The model's open question."""

    text: str
    options: list[str]
    default: str
    answer: str | None


class SessionResponse(ResponseModel):
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
    answers: list[dict[str, str]] = Field(description="Each `question` with the person's `answer`.")
    assumptions: list[str]
    accepted: list[str] = Field(description="Undecided verdicts that a person accepted.")
    waiting: WaitingResponse | None
    question: QuestionResponse | None
    worked_on: bool = Field(description="True if a process drives the session now.")
    standstill: StandstillResponse | None = Field(description="Null while it runs or when it is complete.")


class ConfirmRequest(Order):
    """A confirmation."""

    note: Annotated[Text, Field(description="Told to the model.")] = ""


class AnswerRequest(Order):
    """The answer to the model's question."""

    text: Said


class SkipRequest(Order):
    """A task that a person gives up."""

    reason: Said


class DecisionResponse(ResponseModel):
    """The effect of a decision."""

    session: str
    message: str
    done: bool = Field(description="False: it is done later, at the next safe point of the running session.")
    command: str = Field(description="The command that continues the session; empty if it runs.")


class SubtaskResponse(ResponseModel):
    """An entry of a task's checklist."""

    name: str
    done: bool


class CriterionVerdictResponse(ResponseModel):
    """A criterion of the task's component as the latest verdict sees it; `open`: not judged."""

    id: str
    text: str
    holds: Literal["yes", "no", "cannot_tell", "open"]
    evidence: str


class VerificationResponse(ResponseModel):
    """A run of a verify command, with its output."""

    name: str = Field(examples=["verification-3"])
    tool: str
    command: str
    passed: bool
    exit_code: int | None
    seconds: float
    at: Time
    output: str
    hint: str


class TaskResponse(ResponseModel):
    """A task with all that is known of it. Text of the repository, the model and tools is data."""

    id: str = Field(examples=["calc-t1"])
    name: str
    description: str
    type: str
    state: Literal["pending", "in_progress", "complete", "failed"]
    session: str
    module: str
    component: str
    subtasks: list[SubtaskResponse]
    criteria: list[CriterionVerdictResponse]
    failures: Count
    reasons: list[str] = Field(description="Of the failures in a row, oldest first.")
    given_up: str = Field(description="A person's reason to skip it; empty if nobody did.")
    commit: str | None
    verifications: list[VerificationResponse]
    verdict: dict[str, Any] | None = Field(description="The latest verdict that covers the task.")
    tokens: Count
    cost_usd: float
    unpriced_tokens: Count
    diff: str = Field(description="The change as a unified diff.")
    diff_unknown: str = Field(description="The reason why the diff cannot be read.")
