"""The tools that a model is offered: the table of all in their fixed order, and a session's registry of them.

A tool is a function of this room. The model is told its name, its docstring and its input (docs/reference/tools.md).

Every call has a result: invalid input, refusals and errors of the tool itself become results, not exceptions. Only
lopen's own failures (a full disk, a lost repository) propagate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, get_type_hints

from pydantic import ValidationError

from lopen.files.protection import ToolRefused
from lopen.git.errors import NotEncodable
from lopen.models.messages import ToolSpec, ToolUse
from lopen.models.request_body import plain_schema
from lopen.models.tool_calls import Input, explained
from lopen.tools import file_tools, planning, reading, task_work
from lopen.tools.calls import NoInput, ToolResult, failed, refused
from lopen.tools.task_completion import TASK_VERDICT
from lopen.tools.workbench import Workbench
from lopen.workflow.next_step import due_step
from lopen.workflow.steps import PLANNING_STEPS, Step, number

EVERYWHERE = frozenset(Step) - {Step.COMPLETE}
PLANNING_AND_BEFORE = PLANNING_STEPS | {Step.DRAFT_SPECIFICATION}
BUILDING = frozenset({Step.ITERATE_THROUGH_TASKS})
RESEARCHING = frozenset(Step) - {Step.REPEAT, Step.COMPLETE}

STANDARD = ("verify-build", "verify-tests", "verify-lint")
WITHOUT_TOOL = frozenset({"verify-setup", "verify-commit", "verify-fix"})  # lopen's own, or for run_command


def rests_on_earlier_calls(tool: str) -> bool:
    """Tell whether a call of the tool only makes sense if the calls before it in its turn had their effect."""
    return tool in {TASK_VERDICT, "update_task_status"}


@dataclass(frozen=True)
class Tool:
    """A tool: its description for the model, the steps that allow it, and its effect.

    A call of a `read_only` tool that a kill cut off is run again. `run` gets the workbench and the validated input.
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


def _tool(
    run: Callable[[Workbench, Any], ToolResult], steps: frozenset[Step], *, read_only: bool = False
) -> Tool:
    """Return the tool of a function, which gives the name, the description and the input."""
    given = [hint for name, hint in get_type_hints(run).items() if name != "return"]
    return Tool(
        run.__name__, " ".join((run.__doc__ or "").split()), given[-1], steps, run, read_only=read_only
    )


FIXED: tuple[Tool, ...] = (
    _tool(file_tools.read_file, EVERYWHERE, read_only=True),
    _tool(file_tools.list_files, EVERYWHERE, read_only=True),
    _tool(file_tools.search_files, EVERYWHERE, read_only=True),
    _tool(file_tools.write_file, BUILDING),
    _tool(file_tools.edit_file, BUILDING),
    _tool(file_tools.run_command, RESEARCHING),
    _tool(reading.read_spec, EVERYWHERE, read_only=True),
    _tool(reading.read_research, EVERYWHERE, read_only=True),
    _tool(reading.read_plan, EVERYWHERE - {Step.DRAFT_SPECIFICATION}, read_only=True),
    _tool(reading.log_research, RESEARCHING),
    _tool(reading.research, RESEARCHING),
    _tool(reading.ask_user, PLANNING_AND_BEFORE),
    _tool(reading.write_spec, frozenset({Step.DRAFT_SPECIFICATION})),
    _tool(planning.record_dependencies, frozenset({Step.DETERMINE_DEPENDENCIES})),
    _tool(planning.record_components, frozenset({Step.IDENTIFY_COMPONENTS})),
    _tool(planning.select_component, frozenset({Step.SELECT_NEXT_COMPONENT})),
    _tool(planning.record_tasks, frozenset({Step.BREAK_INTO_TASKS})),
    _tool(task_work.update_task_status, BUILDING),
    _tool(task_work.add_task, BUILDING),
    _tool(task_work.split_task, BUILDING),
    _tool(task_work.verify_task_completion, BUILDING),
)


def catalogue(verify_commands: Mapping[str, str | None]) -> tuple[Tool, ...]:
    """Return every tool of a session: the fixed ones, then one for each verify command, in a fixed order."""
    there = {name for name, command in verify_commands.items() if command} - WITHOUT_TOOL
    names = [*(name for name in STANDARD if name in there), *sorted(there - {*STANDARD})]
    return (*FIXED, *map(_verify_tool, names))


def _verify_tool(name: str) -> Tool:
    tool = name.replace("-", "_")
    return Tool(
        tool,
        f"Run the specification's {name} command in a clean checkout of what would be committed, after verify-setup where a manifest changed. Failures are shown, at most 60 lines.",
        NoInput,
        BUILDING,
        partial(task_work.verify_command, tool),
    )


class Registry:
    """The tools of one session by name, in a fixed order."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def get(self, name: str) -> Tool | None:
        """Return the tool with that name."""
        return self._tools.get(name)

    def offered(self, step: Step) -> tuple[Tool, ...]:
        """Return the tools in a step's request; each planning step offers the tools of all planning steps.

        Step 1 offers those that record the plan, too.
        """
        steps = PLANNING_STEPS if step in PLANNING_STEPS else frozenset({step})
        recording = PLANNING_STEPS if step is Step.DRAFT_SPECIFICATION else frozenset()
        return tuple(t for t in self._tools.values() if t.steps & steps or t.steps <= recording)

    def parse(self, use: ToolUse, step: Step, *due: Step) -> tuple[Tool, Input] | ToolResult:
        """Return the tool and its validated input, or the error result for the model.

        `due` is the step of the plan whose result step 1 may record now.
        """
        tool = self._tools.get(use.name)
        if tool is None:
            names = ", ".join(t.name for t in self.offered(step))
            return refused(f"there is no tool {use.name!r}", f"offered in this step: {names}")
        if not tool.steps & {step, *due}:
            step = due[-1] if due else step
            where = ", ".join(f"{number(s)} ({s.value})" for s in sorted(tool.steps, key=number))
            return refused(
                f"{use.name} belongs to step {where}; this is step {number(step)} ({step.value})",
                "record this step's result first",
            )
        if use.input is None:
            return failed(use.error or "the input is not readable", "send the whole call again")
        try:
            return tool, tool.input.model_validate(dict(use.input))
        except ValidationError as error:
            return failed(*explained(error))

    def run(self, use: ToolUse, bench: Workbench) -> ToolResult:
        """Run a call in the session's step and return its result; a refusal is a result too.

        The work tree is read anew before and after the call.
        """
        parsed = self.parse(use, bench.session.step, due_step(bench.session))
        if isinstance(parsed, ToolResult):
            return parsed
        tool, wanted = parsed
        bench.project.verifier.touch()
        try:
            return tool.run(bench, wanted)
        except ToolRefused as error:
            return refused(error.error, error.hint)
        except NotEncodable as error:
            return failed(error.message, error.hint)
        except (ValueError, ArithmeticError, RecursionError) as error:  # from the model's input
            return failed(
                f"{tool.name} cannot work with this: {type(error).__name__}: {str(error)[:200]}",
                "change the input, or the files that it is about",
            )
        finally:
            bench.project.verifier.touch()
