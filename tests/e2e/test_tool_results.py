"""What each tool answers, as docs/reference/tools.md has it, and the limits it says."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import ToolResult, text, tool_results, tools
from tests.project import (
    UNITTEST,
    Project,
    build,
    code,
    plan,
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
        *code(),
        ("verify_tests", {}),
        ("verify_lint", {}),
        ("verify_task_completion", {"task_id": "calc-t1"}),
        ("verify_component_completion", {"component": "core"}),
        ("verify_module_completion", {}),
    ]
    project = make_project([plan(), tools(*calls), tools(*verified("calc-t1"))], **PATIENT)
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
    assert [next(results).data["ok"], next(results).data["ok"]] == [True, True]
    tests = next(results).data
    assert (tests["passed"], tests["command"], tests["exit_code"]) == (True, UNITTEST, 0)
    assert "Ran 1 test" in tests["output"]
    assert "there is no tool 'verify_lint'" in next(results).data["error"]
    for judged in results:
        assert {"ok", "passed", "confidence", "summary", "findings"} <= judged.data.keys()


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
