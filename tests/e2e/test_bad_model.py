"""A model that calls tools wrongly, says far too much or nothing, and never comes to an end.

See docs/reference/model.md.
"""

from __future__ import annotations

import json
from typing import Any

from lopen.loop import conversation
from lopen.models.messages import Usage
from tests.e2e.conftest import MakeProject
from tests.endpoint import ToolResult, text, tool_results, tools
from tests.project import Project, build, plan

Call = tuple[str, dict[str, Any]]
PATIENT = {
    "LOPEN_CIRCUIT__TOOL_FAILURE__THRESHOLD": "100",
    "LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD": "100",
    "LOPEN_CIRCUIT__MAX_ITERATIONS__THRESHOLD": "500",
    "LOPEN_BUDGET__ENABLED": "false",
}


def answered(make_project: MakeProject, *calls: Call) -> tuple[Project, list[ToolResult]]:
    """What the calls of one building turn are answered; the task is done in the next turn."""
    project = make_project([plan(), tools(*calls), build("calc-t1")], **PATIENT)
    project.build_module()
    results = tool_results(project.requests[2])
    assert [r.tool for r in results] == [
        name.replace(" ", "_") for name, _ in calls
    ]  # one for each, in order
    return project, results


def test_every_wrong_call_is_answered_with_what_is_wrong(make_project: MakeProject) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("no_such_tool", {}, "there is no tool 'no_such_tool'"),
        ("read_file", {}, "path: "),
        ("read_file", {"path": "README.md", "offset": True}, "offset: "),
        ("read_file", {"path": "README.md", "offset": 99}, "past the end"),
        ("read_file", {"path": "missing.txt"}, "does not exist"),
        ("read_file", {"path": "a\u0000b"}, "NUL"),
        ("search_files", {"pattern": "("}, "regular expression"),
        ("verify_task_completion", {"task_id": "calc-t2"}, "not the task in progress"),
        ("write_file", {"path": "x.txt", "content": None}, "content: "),
        ("write_file", {"path": "n" * 300, "content": ""}, "longer than"),
        ("edit_file", {"path": "README.md", "old_text": "nowhere", "new_text": "x"}, "is not in README.md"),
        ("run_command", {"command": "echo a\u0000b"}, "NUL"),
        ("run_command", {"command": ": " + "ü" * 65_000}, "too long"),
        ("read_spec", {"section": "Nowhere"}, "Nowhere"),
        ("add_task", {"component": "none", "name": "n", "description": "d", "reason": "r"}, "no component"),
    ]
    _, results = answered(make_project, *((name, given) for name, given, _ in wrong))

    for (name, given, said), result in zip(wrong, results, strict=True):
        assert result.is_error, (name, given, result.text)
        assert result.data["ok"] is False
        assert said in result.data["error"], (name, given, result.text)


def test_no_file_that_the_model_writes_is_an_internal_error(make_project: MakeProject) -> None:
    written = {
        "deep.py": f"def f(a):\n    return a + {'-' * 3_000}1\n\n\nX = {'+'.join('1' * 2_500)}\n",
        "pyproject.toml": f"a = {'9' * 100_000}\n",
        "package.json": '{"scripts": {"test": "x"}, "a": ' + "9" * 100_000 + "}",
        "setup.cfg": "[pytest\n%(a)s = %(b)s\n[x]\n[x]\n",
    }
    calls: list[Call] = [
        *(("write_file", {"path": path, "content": text}) for path, text in written.items()),
        ("run_command", {"command": "ln -s loop loop"}),
        ("edit_file", {"path": "loop", "old_text": "x", "new_text": "y"}),
    ]
    project = make_project(
        [plan(), tools(*calls), tools(("run_command", {"command": "rm loop"})), build("calc-t1")],
        **PATIENT,
        LOPEN_ORACLE__MUTATION="auto",
    )
    project.build_module()
    results = tool_results(project.requests[2])
    assert [result.is_error for result in results] == [False] * 5 + [True]


def test_a_megabyte_that_costs_little_is_not_sent_back(make_project: MakeProject) -> None:
    flood = "I will go on and on. " * 50_000
    project = make_project([plan(), text(flood, usage=Usage(100, 100)), build("calc-t1")])
    project.build_module()
    assert len(json.dumps(project.requests[2])) < 300_000


def plan_in_four_turns() -> None:
    """Let a planning step have four turns, not forty."""
    conversation.MAX_PLANNING_TURNS = 4


def test_a_planner_that_only_reads_is_stopped(make_project: MakeProject) -> None:
    numbers = iter(range(1_000))
    project = make_project(lambda _: tools(("search_files", {"pattern": f"word{next(numbers)}"})))
    project.specify()

    arranged = [["tests.e2e.test_bad_model:plan_in_four_turns"]]
    ran = project.lopen("approve", "calc", "--yes", "--run", "--json", arrange=arranged)

    assert ran.code == 3, ran.err
    assert ran.named("session_paused")[0]["kind"] == "confirmation"
    assert "4 turns brought no result of the step" in ran.out
    assert len(project.requests) == 3 * 4
