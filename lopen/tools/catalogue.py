"""The catalogue: every tool in its fixed order, with what the model is told of it.

See docs/reference/tools.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lopen.models import tool_calls
from lopen.tools import calls, file_tools, planning, reading, task_work
from lopen.tools.registry import BUILDING, EVERYWHERE, PLANNING_AND_BEFORE, Tool
from lopen.workflow.steps import Step

RESEARCHING = frozenset(Step) - {Step.REPEAT, Step.COMPLETE}
MODULE_VERIFYING = frozenset({Step.SELECT_NEXT_COMPONENT, Step.ITERATE_THROUGH_TASKS, Step.REPEAT})

AFTER_A_FAILURE = "Not run behind a verification that failed in the same turn."

FIXED: tuple[Tool, ...] = (
    Tool(
        "read_file",
        "Read a text file. At most 100,000 characters a call; `offset` (line) and `limit` (lines) give the rest. The content follows the first line of the result.",
        tool_calls.ReadFile,
        EVERYWHERE,
        file_tools.read_file,
        read_only=True,
    ),
    Tool(
        "list_files",
        "List files below `path`, optionally those matching `glob`. Ignored files are left out. At most 2,000; narrow by path or glob.",
        tool_calls.ListFiles,
        EVERYWHERE,
        file_tools.list_files,
        read_only=True,
    ),
    Tool(
        "search_files",
        "Search file contents with a Python regular expression. At most 200 matches; narrow by path or glob.",
        tool_calls.SearchFiles,
        EVERYWHERE,
        file_tools.search_files,
        read_only=True,
    ),
    Tool(
        "write_file",
        "Write a whole file, creating folders as needed. At most 10 MB.",
        calls.WriteFile,
        BUILDING,
        file_tools.write_file,
    ),
    Tool(
        "edit_file",
        "Replace `old_text` by `new_text` in a file. `old_text` must occur exactly once, unless `replace_all`.",
        calls.EditFile,
        BUILDING,
        file_tools.edit_file,
    ),
    Tool(
        "run_command",
        "Run a shell command in the project (timeout 120 s, at most 600; output at most 30,000 characters, its middle left out: redirect to a file and read that for the rest). What verify-setup installed is there, read-only. Before step 6 the project is read-only.",
        calls.RunCommand,
        RESEARCHING,
        file_tools.run_command,
    ),
    Tool(
        "read_spec",
        "Read a section of a specification by heading or heading path (`Behaviour > Rounding`); without `section`, its outline. At most 100,000 characters; the result says how to get the rest.",
        calls.ReadSpec,
        EVERYWHERE,
        reading.read_spec,
        read_only=True,
    ),
    Tool(
        "read_research",
        "Read a research note by topic; without `topic`, the list of topics. At most 100,000 characters; the result says how to get the rest.",
        calls.ReadResearch,
        EVERYWHERE,
        reading.read_research,
        read_only=True,
    ),
    Tool(
        "read_plan",
        "Read the plan: components, tasks, subtasks and their states.",
        calls.NoInput,
        EVERYWHERE,
        reading.read_plan,
        read_only=True,
    ),
    Tool(
        "get_current_context",
        "Read phase, step, component, task, selectable components and scope.",
        calls.NoInput,
        EVERYWHERE,
        reading.get_current_context,
        read_only=True,
    ),
    Tool(
        "log_research",
        "Keep a research note beside the specification.",
        calls.LogResearch,
        RESEARCHING,
        reading.log_research,
    ),
    Tool(
        "research",
        "Have a sub-agent with read-only tools answer one question about the project; its findings are logged. It costs money: use it for questions that need much reading.",
        calls.Research,
        RESEARCHING,
        reading.research,
    ),
    Tool(
        "report_progress",
        "Tell the person, in one line, what you are doing. Moves nothing.",
        calls.ReportProgress,
        EVERYWHERE,
        reading.report_progress,
    ),
    Tool(
        "ask_user",
        "Ask the person one question; `default` is the answer where nobody answers.",
        calls.AskUser,
        PLANNING_AND_BEFORE,
        reading.ask_user,
    ),
    Tool(
        "write_spec",
        "Write the module's specification; answers with the problems it has.",
        calls.WriteSpec,
        frozenset({Step.DRAFT_SPECIFICATION}),
        reading.write_spec,
    ),
    Tool(
        "record_dependencies",
        "Step 2's result: what the module needs. May be empty.",
        calls.RecordDependencies,
        frozenset({Step.DETERMINE_DEPENDENCIES}),
        planning.record_dependencies,
    ),
    Tool(
        "record_components",
        "Step 3's result: the whole list of components. Every acceptance criterion is covered by one.",
        calls.RecordComponents,
        frozenset({Step.IDENTIFY_COMPONENTS}),
        planning.record_components,
    ),
    Tool(
        "select_component",
        "Step 4's result: the component to build next. Its dependencies must be complete.",
        calls.SelectComponent,
        frozenset({Step.SELECT_NEXT_COMPONENT}),
        planning.select_component,
    ),
    Tool(
        "record_tasks",
        "Step 5's result: the selected component's tasks, in order.",
        calls.RecordTasks,
        frozenset({Step.BREAK_INTO_TASKS}),
        planning.record_tasks,
    ),
    Tool(
        "update_task_status",
        f"End the task in progress. `complete`, after verify_tests and verify_task_completion passed on the present files: lopen commits and ticks the checklist; the calls after it in the turn are not run. `failed` gives the task up for now; `note` says why. {AFTER_A_FAILURE}",
        calls.UpdateTaskStatus,
        BUILDING,
        task_work.update_task_status,
    ),
    Tool(
        "update_subtask",
        "Tick (or untick) a line of a task's checklist.",
        calls.UpdateSubtask,
        BUILDING,
        task_work.update_subtask,
    ),
    Tool(
        "add_task",
        "Add a task to a component: work the module needs that no task covers.",
        calls.AddTask,
        BUILDING,
        task_work.add_task,
    ),
    Tool(
        "split_task",
        "Replace the task in progress by two or more smaller ones, in order, where it is too large for one task. The first keeps the id and the work done so far, and goes on in this conversation.",
        calls.SplitTask,
        BUILDING,
        task_work.split_task,
    ),
    Tool(
        "verify_task_completion",
        f"Have the judge look at the diff of the task in progress and the verify results. `note` is your word to the judge, at most 2,000 characters, shown as a claim. {AFTER_A_FAILURE}",
        calls.VerifyTask,
        BUILDING,
        task_work.verify_task_completion,
    ),
    Tool(
        "verify_component_completion",
        f"Have the judge look at a component as a whole. lopen does this by itself at the boundary. {AFTER_A_FAILURE}",
        calls.VerifyComponent,
        BUILDING,
        task_work.verify_component_completion,
    ),
    Tool(
        "verify_module_completion",
        f"Have the judge look at the module as a whole. lopen does this by itself at the end. {AFTER_A_FAILURE}",
        calls.NoInput,
        MODULE_VERIFYING,
        task_work.verify_module_completion,
    ),
)
STANDARD = ("verify-build", "verify-tests", "verify-lint")
LOPENS_OWN = frozenset({"verify-setup", "verify-commit"})  # lopen alone runs these commands


def catalogue(verify_commands: Mapping[str, str | None]) -> tuple[Tool, ...]:
    """Every tool of a session: the fixed ones, then one for each verify command there is, in a fixed order."""
    there = {name for name, command in verify_commands.items() if command} - LOPENS_OWN
    names = [*(name for name in STANDARD if name in there), *sorted(there - {*STANDARD})]
    return (*FIXED, *map(_verify_tool, names))


def _verify_tool(name: str) -> Tool:
    tool = name.replace("-", "_")
    return Tool(
        tool,
        f"Run the specification's {name} command in a clean checkout of what would be committed, after verify-setup where a manifest changed. Passes when its exit code is 0. The last 12,000 characters of its output are shown. {AFTER_A_FAILURE}",
        calls.NoInput,
        BUILDING,
        partial(task_work.verify_command, tool),
    )
