"""The registry of tools in a fixed order, with the steps that offer them.

Every call has a result: invalid input, refusals and errors of the tool itself become results, not exceptions. Only
lopen's own failures (a full disk, a lost repository) propagate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lopen.files.protection import ToolRefused
from lopen.git.errors import THEN_RESUME, NotEncodable, TooManyFiles
from lopen.models.messages import ToolSpec, ToolUse
from lopen.models.request_body import plain_schema
from lopen.models.tool_calls import Input, explained
from lopen.tools.calls import ToolResult, failed
from lopen.workflow.steps import PLANNING_STEPS, Step, number

if TYPE_CHECKING:
    from lopen.tools.workbench import Workbench

EVERYWHERE = frozenset(Step) - {Step.COMPLETE}
PLANNING_AND_BEFORE = PLANNING_STEPS | {Step.DRAFT_SPECIFICATION}
BUILDING = frozenset({Step.ITERATE_THROUGH_TASKS})


@dataclass(frozen=True)
class Tool:
    """A tool: its description for the model, the steps that allow it, and its effect.

    The `read_only` tools of one turn can run in parallel; `run` gets the workbench and the validated input.
    """

    name: str
    description: str
    input: type[Input]
    steps: frozenset[Step]
    run: Callable[[Workbench, Any], ToolResult]
    read_only: bool = False
    schema: Mapping[str, Any] | None = field(default=None, compare=False)  # in place of the input's own

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool's definition for the model."""
        own = plain_schema(self.input.model_json_schema()) if self.schema is None else dict(self.schema)
        return ToolSpec(self.name, self.description, own)


class Registry:
    """The tools of one session by name, in a fixed order."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def get(self, name: str) -> Tool | None:
        """Return the tool with that name."""
        return self._tools.get(name)

    def offered(self, step: Step) -> tuple[Tool, ...]:
        """Return the tools in a step's request; each planning step offers the tools of all planning steps."""
        steps = PLANNING_STEPS if step in PLANNING_STEPS else frozenset({step})
        return tuple(t for t in self._tools.values() if t.steps & steps)

    def parse(self, use: ToolUse, step: Step) -> tuple[Tool, Input] | ToolResult:
        """Return the tool and its validated input, or the error result for the model."""
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
            return failed(use.error or "the input is not readable", "send the whole call again")
        try:
            return tool, tool.input.model_validate(dict(use.input))
        except ValidationError as error:
            return failed(*explained(error))

    @staticmethod
    def run(tool: Tool, bench: Workbench, parsed: Input) -> ToolResult:
        """Run the tool and return its result; a refusal is a result too.

        The work tree counts as it is now, whoever changed it before the call or in it.
        """
        bench.project.verifier.touch()
        try:
            return tool.run(bench, parsed)
        except ToolRefused as refused:
            return failed(refused.error, refused.hint, outcome="refused")
        except (NotEncodable, TooManyFiles) as error:
            return failed(error.message, error.hint.removesuffix(THEN_RESUME))
        except (
            ValueError,
            ArithmeticError,
            RecursionError,
        ) as error:  # of what the model wrote, so each time again
            return failed(
                f"{tool.name} cannot work with this: {type(error).__name__}: {str(error)[:200]}",
                "change the input, or the files that it is about",
            )
        finally:
            bench.project.verifier.touch()
