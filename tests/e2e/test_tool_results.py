"""What each tool answers, as docs/reference/tools.md has it, and the limits it says."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import ToolResult, last_result, text, tool_results, tools
from tests.project import (
    UNITTEST,
    Project,
    build,
    code,
    component,
    plan,
    specification,
    task,
    verified,
)

Call = tuple[str, dict[str, Any]]
PATIENT = {
    "LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD": "100",
    "LOPEN_CIRCUIT__TOOL_FAILURE__THRESHOLD": "100",
    "LOPEN_BUDGET__ENABLED": "false",
}


def building(project: Project, count: int) -> list[ToolResult]:
    """The results of the first building turn."""
    ran = project.drive()
    assert ran.code == 0, ran.err
    results = tool_results(project.requests[2])
    assert len(results) == count
    return results


def test_planning_tools_answer_with_what_was_recorded_and_the_next_step(make_project: MakeProject) -> None:
    dependency = {"name": "sqlite", "kind": "library", "reason": "state", "available": False}
    circle = [component("a", "AC-1", depends_on=["b"]), component("b", "AC-2", depends_on=["a"])]
    script = [
        tools(
            ("get_current_context", {}),
            ("read_plan", {}),
            ("ask_user", {"question": "Which?", "options": ["a", "b"], "default": "a"}),
            ("record_dependencies", {"dependencies": [dependency]}),
        ),
        tools(("record_components", {"components": [component("core", "AC-1", "AC-9")]})),
        tools(("record_components", {"components": circle})),
        tools(
            (
                "record_components",
                {"components": [component("The core", "AC-1"), component("report", "AC-2")]},
            ),
            ("get_current_context", {}),
            ("select_component", {"name": "nothing", "reason": "why not"}),
            ("select_component", {"name": "the-core", "reason": "it is first"}),
            ("record_tasks", {"component": "report", "tasks": [task("Print it")]}),
        ),
        tools(
            ("record_tasks", {"component": "The core", "tasks": [task("Write it", subtasks=["one", "two"])]})
        ),
    ]
    project = make_project(script, LOPEN_WORKFLOW__UNATTENDED="true")
    project.specify(text=specification(criteria=("it adds", "it reports")))
    assert project.lopen("approve", "calc", "--yes").code == 0

    planned = project.lopen("plan", "calc")

    assert planned.code == 0, planned.err
    context, empty, asked, dependencies = tool_results(project.requests[1])
    assert context.data == {
        "ok": True,
        "phase": "planning",
        "step": "determine_dependencies",
        "module": "calc",
        "component": None,
        "task": None,
        "selectable": [],
        "scope": None,
    }
    assert empty.data == {"ok": True, "plan": {"components": []}}
    assert asked.data == {"ok": True, "answer": "a", "assumed": True}
    assert dependencies.data["step"] == "identify_components"
    unknown = last_result(project.requests[2])
    assert unknown.is_error
    assert "AC-9" in unknown.data["error"]
    assert "no component covers AC-2" in unknown.data["error"]
    assert "circle" in last_result(project.requests[3]).data["error"]
    components, context, nothing, selected, other = tool_results(project.requests[4])[-5:]
    assert components.data == {
        "ok": True,
        "components": [{"id": "the-core", "name": "The core"}, {"id": "report", "name": "report"}],
        "step": "select_next_component",
    }
    assert context.data["selectable"] == ["The core", "report"]
    assert context.data["scope"] == {"completed": 0, "original": 4}
    assert nothing.is_error
    assert selected.data == {"ok": True, "component": "The core", "step": "break_into_tasks"}
    assert other.is_error
    assert "The core" in other.data["hint"]
    assert "two" in project.read(".lopen/modules/calc/plan.md")


def test_building_tools_answer_with_their_fields(make_project: MakeProject) -> None:
    calls: list[Call] = [
        ("write_file", {"path": "deep/er/a.txt", "content": "one\ntwo\nthrée\n"}),
        ("edit_file", {"path": "deep/er/a.txt", "old_text": "two", "new_text": "2"}),
        ("edit_file", {"path": "deep/er/a.txt", "old_text": "e\n", "new_text": "é\n", "replace_all": True}),
        ("edit_file", {"path": "deep/er/a.txt", "old_text": "thréa", "new_text": "x"}),
        ("edit_file", {"path": "deep/er/a.txt", "old_text": "\n", "new_text": "x"}),
        ("read_file", {"path": "deep/er/a.txt", "offset": 2, "limit": 1}),
        ("list_files", {"glob": "**/*.txt"}),
        ("search_files", {"pattern": "^o", "path": "deep"}),
        ("run_command", {"command": "echo out; echo err >&2; exit 3"}),
        ("run_command", {"command": "sleep 30", "timeout_s": 1}),
        ("read_spec", {}),
        ("read_spec", {"section": "Behaviour > Rounding"}),
        (
            "log_research",
            {"topic": "Rounding of sums", "summary": "None.", "findings": "Nothing is rounded."},
        ),
        ("read_research", {}),
        ("read_research", {"topic": "rounding-of-sums"}),
        ("read_plan", {}),
        ("get_current_context", {}),
        ("report_progress", {"message": "half way"}),
        ("update_subtask", {"task_id": "calc-t1", "subtask": 2, "done": True}),
        ("add_task", {"component": "core", "name": "More", "description": "More of it.", "reason": "needed"}),
        ("update_task_status", {"task_id": "calc-t1", "status": "in_progress"}),
        *code(),
        ("verify_tests", {}),
        ("verify_lint", {}),
        ("verify_task_completion", {"task_id": "calc-t1"}),
        ("verify_component_completion", {"component": "core"}),
        ("verify_module_completion", {}),
    ]
    steps = {"component": "core", "tasks": [task("Write it", subtasks=["one", "two"])]}
    planned = tools(
        ("record_dependencies", {"dependencies": []}),
        ("record_components", {"components": [component("core", "AC-1")]}),
        ("select_component", {"name": "core", "reason": "first"}),
        ("record_tasks", steps),
    )
    more = tools(*code(value="b + a"), *verified("calc-t2"))
    project = make_project([planned, tools(*calls), tools(*verified("calc-t1")), more], **PATIENT)
    project.specify()

    found = building(project, len(calls))
    results = iter(found)

    assert all(r.data["ok"] is not r.is_error for r in found)
    assert next(results).data == {"ok": True, "bytes": 15}
    assert next(results).data == {"ok": True, "replacements": 1}
    assert next(results).data == {"ok": True, "replacements": 2}
    assert "nearest: line 3: thréé" in next(results).data["hint"]
    assert "3 times" in next(results).data["error"]
    read = next(results)
    assert read.data["lines"] == 3
    assert read.data["truncated"] is True
    assert read.text.partition("\n")[2] == "2\n"
    assert next(results).data == {"ok": True, "files": ["deep/er/a.txt"], "truncated": False}
    match = {"path": "deep/er/a.txt", "line": 1, "text": "oné"}
    assert next(results).data == {"ok": True, "matches": [match], "truncated": False}
    ran = next(results)
    assert ran.data == {"ok": True, "exit_code": 3, "truncated": False, "timed_out": False}
    assert ran.text.partition("\n")[2] == "out\nerr\n"
    assert next(results).data["timed_out"] is True
    outline = next(results)
    assert "### Rounding" in outline.text
    section = next(results)
    assert section.data == {"ok": True, "section": "Behaviour > Rounding"}
    assert "Nothing is rounded." in section.text
    assert next(results).data == {"ok": True, "path": "specs/calc/RESEARCH-rounding-of-sums.md"}
    assert next(results).data == {"ok": True, "topics": ["rounding-of-sums"]}
    assert "Nothing is rounded." in next(results).text
    subtasks = [{"name": "one", "done": False}, {"name": "two", "done": False}]
    shown = {"id": "calc-t1", "name": "Write it", "state": "in_progress", "subtasks": subtasks}
    assert next(results).data["plan"]["components"] == [
        {"id": "core", "name": "core", "state": "in_progress", "tasks": [shown]}
    ]
    context = next(results).data
    assert (context["phase"], context["step"]) == ("building", "iterate_through_tasks")
    assert context["component"] == "core"
    assert sorted(context["task"]) == ["description", "id", "name", "subtasks"]
    assert next(results).data == {"ok": True}
    assert next(results).data == {"ok": True}
    assert next(results).data == {"ok": True, "task_id": "calc-t2"}
    assert next(results).data == {"ok": True, "task_id": "calc-t1", "status": "in_progress"}
    assert [next(results).data["ok"], next(results).data["ok"]] == [True, True]
    tests = next(results).data
    assert (tests["passed"], tests["command"], tests["exit_code"]) == (True, UNITTEST, 0)
    assert "Ran 1 test" in tests["output"]
    assert "there is no tool 'verify_lint'" in next(results).data["error"]
    for judged in results:
        assert {"ok", "passed", "confidence", "summary", "findings"} <= judged.data.keys()


def test_a_write_that_a_circuit_refuses_holds_back_what_rests_on_it(make_project: MakeProject) -> None:
    parts = [("write_file", {"path": f"part{n}.py", "content": "N = 1\n"}) for n in range(11)]
    project = make_project([plan(), tools(*code(), *parts, *verified("calc-t1")), build("calc-t1")])
    project.specify()

    results = building(project, 2 + 11 + 3)

    assert "Circuit breaker tripped" in results[10].text  # the eleventh in the turn
    for result in results[-3:]:
        assert (result.data["skipped"], result.is_error) == (True, True)
        assert "write_file failed in this turn" in result.text
    assert len(project.oracle_requests) == 1


def test_every_cut_result_says_so_and_how_to_get_the_rest(make_project: MakeProject) -> None:
    lines = "".join(f"line {n} of many, none of which says much\n" for n in range(6_000))
    calls: list[Call] = [
        ("write_file", {"path": "long.txt", "content": lines}),
        ("read_file", {"path": "long.txt"}),
        ("search_files", {"pattern": "line"}),
        ("run_command", {"command": "cat long.txt"}),
        ("run_command", {"command": "rm long.txt"}),
    ]
    project = make_project([plan(), tools(*calls), build("calc-t1")], **PATIENT)
    project.specify()

    _, read, found, ran, _ = building(project, len(calls))

    assert read.data["truncated"] is True
    assert "offset=" in read.data["note"]
    assert 90_000 < len(read.text) < 101_000
    assert len(found.data["matches"]) == 200
    assert found.data["truncated"] is True
    assert "narrow" in found.data["note"]
    assert ran.data["truncated"] is True
    printed = ran.text.partition("\n")[2]
    assert len(printed) < 31_000
    assert printed.startswith("line 0 of")
    assert printed.endswith("none of which says much\n")
    assert "redirect" in ran.data["note"]
    offered = {t["name"]: t["description"] for t in project.requests[1]["tools"]}
    assert "100,000" in offered["read_file"]
    assert "30,000" in offered["run_command"]
    assert "200" in offered["search_files"]


def test_research_is_done_by_a_sub_agent_with_reading_tools(make_project: MakeProject) -> None:
    def researching(body: dict[str, Any]) -> bool:
        return "research assistant" in json.dumps(body["system"])

    asked: Call = ("research", {"topic": "Adding", "question": "How does one add?"})
    answers = [
        tools(("read_file", {"path": "README.md"}), ("write_file", {"path": "evil.txt", "content": "x"})),
        text("One adds with a plus.\n\n## Details\nREADME.md:1 says nothing else.", stop_reason="max_tokens"),
    ]
    project = make_project(
        [plan(), tools(asked), build("calc-t1")], routes=[(researching, answers)], **PATIENT
    )
    project.specify()

    (result,) = building(project, 1)

    path = "specs/calc/RESEARCH-adding.md"
    assert result.data == {"ok": True, "path": path, "summary": "One adds with a plus."}
    assert "says nothing else.\n\n(These findings were cut off" in project.read(path)
    assert not (project.root / "evil.txt").exists()
    assert project.endpoint is not None
    first, second = project.endpoint.routed_requests
    assert [t["name"] for t in first["tools"]] == [
        "read_file",
        "list_files",
        "search_files",
        "read_spec",
        "read_research",
    ]
    read, refused = tool_results(second)
    assert read.data["ok"]
    assert refused.is_error
    assert project.holds(path)


def test_write_spec_answers_with_the_problems(make_project: MakeProject) -> None:
    script = [
        tools(("write_spec", {"content": "# calc\n"})),
        tools(("write_spec", {"content": specification()})),
    ]
    project = make_project(script)

    ran = project.lopen("run", "calc", "-p", "a calculator", "--json")

    assert ran.code == 3, ran.err
    assert ran.last_line == "next: lopen approve calc --run"
    first = last_result(project.requests[1]).data
    assert first["ok"] is True
    assert any("Acceptance Criteria" in p for p in first["problems"])
    assert project.lopen("check", "calc").code == 0
