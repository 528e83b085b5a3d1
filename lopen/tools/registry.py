"""The registry: which tools exist, in a fixed order, which step offers them, and how one is run.

Whatever a tool does, it answers: a wrong input, a refusal and an error in the tool's own reach become
results, never crashes. Only lopen's own failures (a full disk, a lost repository) go on upwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lopen.llm.messages import ToolSpec, ToolUse
from lopen.tools.inputs import Input
from lopen.tools.results import ToolResult, failed
from lopen.workflow.steps import PLANNING_STEPS, Step, number
from lopen.workspace.protection import ToolRefused

if TYPE_CHECKING:
    from lopen.tools.workbench import Workbench

EVERYWHERE = frozenset(Step) - {Step.COMPLETE}
PLANNING_AND_BEFORE = PLANNING_STEPS | {Step.DRAFT_SPECIFICATION}
BUILDING = frozenset({Step.ITERATE_THROUGH_TASKS})


@dataclass(frozen=True)
class Tool:
    """A tool: what the model sees of it, in which steps it may run, and its effect.

    `read_only` tools of one turn may run side by side; `run` gets the workbench and the validated input.
    """

    name: str
    description: str
    input: type[Input]
    steps: frozenset[Step]
    run: Callable[[Workbench, Any], ToolResult]
    read_only: bool = False

    @cached_property
    def spec(self) -> ToolSpec:
        """As offered to the model."""
        return ToolSpec(self.name, self.description, _plain(self.input.model_json_schema()))


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema without pydantic's titles, which cost tokens and say nothing."""

    def walk(node: Any, inside_properties: bool = False) -> Any:
        if isinstance(node, dict):
            return {
                k: walk(v, k == "properties")
                for k, v in node.items()
                if inside_properties or not (k == "title" and isinstance(v, str))
            }
        if isinstance(node, list):
            return [walk(v) for v in node]
        return node

    plain: dict[str, Any] = walk(schema)
    plain.setdefault("properties", {})
    return plain


class Registry:
    """The tools of one session, by name, in the order in which they are always offered."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def offered(self, step: Step) -> tuple[Tool, ...]:
        """What a step's request offers; the planning steps share one union."""
        steps = PLANNING_STEPS if step in PLANNING_STEPS else frozenset({step})
        return tuple(t for t in self._tools.values() if t.steps & steps)

    def parse(self, use: ToolUse, step: Step) -> tuple[Tool, Input] | ToolResult:
        """The tool and its input, or the error that the model is told."""
        tool = self._tools.get(use.name)
        if tool is None:
            names = ", ".join(t.name for t in self.offered(step))
            return failed(
                f"there is no tool {use.name!r}", f"offered in this step: {names}", outcome="refused"
            )
        if step not in tool.steps:
            where = ", ".join(f"{number(s)} ({s.value})" for s in sorted(tool.steps, key=number))
            return failed(
                f"{use.name} belongs to step {where}; this is step {number(step)} ({step.value})",
                "record this step's result first",
                outcome="refused",
            )
        if use.input is None:
            return failed(use.error or "the input could not be read", "send the call again, whole")
        try:
            return tool, tool.input.model_validate(dict(use.input))
        except ValidationError as error:
            return failed(*_explained(error))

    @staticmethod
    def run(tool: Tool, bench: Workbench, parsed: Input) -> ToolResult:
        """The tool's answer; what it refuses is an answer too."""
        try:
            return tool.run(bench, parsed)
        except ToolRefused as refused:
            return failed(refused.error, refused.hint, outcome="refused")


def _explained(error: ValidationError) -> tuple[str, str]:
    """Every wrong field with what it should be, in one line."""
    told = []
    for problem in error.errors(include_url=False, include_context=False)[:8]:
        field = ".".join(str(p) for p in problem["loc"]) or "input"
        told.append(f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    return "; ".join(told), "mend the named fields and call again"
