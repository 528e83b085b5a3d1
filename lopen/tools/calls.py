"""The inputs of the model's tools, and their results with their effect on the iteration (docs/reference/tools.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from lopen.models.messages import Json, ToolUse
from lopen.models.tool_calls import Input, Path, Text, result_block, result_text
from lopen.store.audit import Outcome
from lopen.workflow.pauses import Pause

# A name becomes a commit message or a heading: one line of at most 72 characters.
Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=72,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$",
    ),
]


class NoInput(Input):
    """No input."""


class AnyInput(Input):
    """The input of a tool that lopen does not know: its server checks it."""

    model_config = ConfigDict(extra="allow", strict=True)


class WriteFile(Input):
    path: Path
    content: str


class EditFile(Input):
    path: Path
    old_text: Text
    new_text: str
    replace_all: bool | None = None


class RunCommand(Input):
    command: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
    timeout_s: Annotated[int, Field(ge=1, le=600)] | None = None


class ReadSpec(Input):
    section: Text | None = None
    module: Text | None = None


class ReadResearch(Input):
    topic: Text | None = None


class LogResearch(Input):
    topic: Name
    summary: Text
    findings: Text
    sources: list[str] | None = None
    relevance: str | None = None


class Research(Input):
    topic: Name
    question: Text


class AskUser(Input):
    question: Text
    options: list[str] | None = None
    default: str


class WriteSpec(Input):
    content: Text


class DependencyInput(Input):
    name: Name
    kind: Literal["library", "module", "service", "tool"]
    reason: Text
    available: Annotated[bool, Field(description="here, or once verify-setup has installed it")]


class RecordDependencies(Input):
    dependencies: list[DependencyInput]


class ComponentInput(Input):
    name: Name
    description: Text
    depends_on: Annotated[list[str], Field(description="names of components in this list")] = []
    spec_sections: Annotated[list[str], Field(description="headings or heading paths")] = []
    acceptance_criteria: Annotated[list[str], Field(description="criterion ids")] = []
    state: Literal["missing", "partial", "done"] = "missing"
    evidence: Annotated[list[str], Field(description="paths that show the state")] = []


class RecordComponents(Input):
    components: Annotated[list[ComponentInput], Field(min_length=1, max_length=200)]


class SelectComponent(Input):
    name: Text
    reason: Text


class TaskInput(Input):
    name: Name
    description: Text
    spec_sections: Annotated[
        list[str], Field(description="headings or heading paths; none for the component's")
    ] = []
    acceptance_criteria: Annotated[list[str], Field(description="ids; none for all of the component's")] = []
    files: Annotated[
        list[Path], Field(max_length=50, description="`docs/api.md#Heading`, `src/shop.py#Cart.total` too")
    ] = []
    subtasks: list[Name] = []
    type: Literal["planning", "implement", "review", "test", "deploy", "design"] | None = None


class RecordTasks(Input):
    component: Text
    tasks: Annotated[list[TaskInput], Field(min_length=1, max_length=200)]


class UpdateTaskStatus(Input):
    task_id: Text
    status: Literal["in_progress", "complete", "failed"]
    note: str | None = None


class AddTask(Input):
    component: Text
    name: Name
    description: Text
    reason: Text
    type: Literal["planning", "implement", "review", "test", "deploy", "design"] | None = None


class SplitTask(Input):
    task_id: Text
    tasks: Annotated[list[TaskInput], Field(min_length=2, max_length=20)]
    reason: Text


class VerifyTask(Input):
    task_id: Text
    note: Annotated[str, StringConstraints(max_length=2_000)] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the model, and the effect of the call on the iteration.

    `fields` stand beside `ok`; `raw` is text that the model reads without JSON escapes.
    """

    ok: bool
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None
    outcome: Outcome = "ok"
    content_hash: str | None = None  # of the text that was read or printed
    notice: str = ""  # a guardrail's correction, sent with the answer
    recorded: bool = False  # the step's result is recorded: the iteration ends
    pause: Pause | None = None  # only a person lets the run go on
    false_claim: bool = False  # the call claimed a completion without the required verifications

    def text(self) -> str:
        """Return the text for the model."""
        head: dict[str, Any] = {"ok": self.ok} | dict(self.fields)
        if self.notice:
            head["notice"] = self.notice
        return result_text(head, self.raw)


def done(*, raw: str | None = None, content_hash: str | None = None, **fields: Any) -> ToolResult:
    """Return the result of a successful call."""
    return ToolResult(True, fields, raw, content_hash=content_hash)


def failed(error: str, hint: str = "", *, outcome: Outcome = "error", **fields: Any) -> ToolResult:
    """Return the result of a failed call: `error` describes the failure, `hint` names the alternative."""
    return ToolResult(False, {"error": error, **({"hint": hint} if hint else {}), **fields}, outcome=outcome)


def refused(error: str, hint: str = "", **fields: Any) -> ToolResult:
    """Return the result of a call that lopen did not run, or did not accept."""
    return failed(error, hint, outcome="refused", **fields)


def tool_result(use: ToolUse, result: ToolResult) -> Json:
    """Return the answer to a tool call as the endpoint wants it."""
    return result_block(use, result.text(), ok=result.ok)
