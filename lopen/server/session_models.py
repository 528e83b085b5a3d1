"""What the API answers and takes about projects, modules, sessions and decisions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from lopen.server.models import Count, Order, Page, ResponseModel, Said, Text, Time


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


class StandstillResponse(ResponseModel):
    """The reason why a session does not run, how to mend it, and the command that continues it."""

    cause: str
    mend: str
    command: str


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


class CriterionResponse(ResponseModel):
    """An acceptance criterion."""

    id: str = Field(examples=["AC-1"])
    text: str


class CommandResponse(ResponseModel):
    """A verify command as lopen will run it."""

    name: str = Field(examples=["verify-tests"])
    command: str | None = Field(examples=["pytest -q"])
    shown: str = Field(description="The command with invisible characters made visible.")


class SectionResponse(ResponseModel):
    """A section of the specification. An element is a text, or a list of tag, attributes and children."""

    address: str = Field(description="Its path of headings.", examples=["Behaviour > Rounding"])
    state: Literal["same", "changed", "new"] = Field(description="Since the latest approval.")
    content: list[Any] = Field(description="Elements.", examples=[[["p", {}, "It ", ["em", {}, "adds"]]]])


class RemarkResponse(ResponseModel):
    """A problem or warning about a line of the specification."""

    line: Count
    message: str


class ApprovalResponse(ResponseModel):
    """An approval."""

    module: str
    who: str
    at: Time
    note: str
    spec_hash: str


class SpecificationResponse(ResponseModel):
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
    sections: list[SectionResponse]
    approval: ApprovalResponse | None = Field(description="The latest approval.")
    approved: bool = Field(description="True if that approval is for exactly this text.")
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


class DecisionResponse(ResponseModel):
    """The effect of a decision."""

    session: str
    message: str
    done: bool = Field(description="False: the running session does it at its next safe point.")
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
