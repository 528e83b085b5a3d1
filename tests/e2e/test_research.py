"""A question that a sub-agent answers by reading."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tool_results, tools
from tests.project import build, plan


def test_research_is_done_by_a_sub_agent_with_reading_tools(make_project: MakeProject) -> None:
    def researching(body: dict[str, Any]) -> bool:
        return "research assistant" in json.dumps(body["system"])

    asked = ("research", {"topic": "Adding", "question": "How does one add?"})
    answers = [
        tools(("read_file", {"path": "README.md"}), ("write_file", {"path": "evil.txt", "content": "x"})),
        text("One adds with a plus.\n\n## Details\nREADME.md:1 says nothing else.", stop_reason="max_tokens"),
    ]
    project = make_project([plan(), tools(asked), build("calc-t1")], routes=[(researching, answers)])
    project.build_module()
    (result,) = tool_results(project.requests[2])
    path = "specs/calc/RESEARCH-adding.md"
    assert result.data == {"ok": True, "path": path, "summary": "One adds with a plus."}
    assert "says nothing else.\n\n(These findings were cut off" in project.git("show", f"lopen/calc:{path}")
    assert project.read(".lopen/modules/calc/RESEARCH-adding.md").rstrip() == project.git(
        "show", f"lopen/calc:{path}"
    )
    shown = project.git("status", "--porcelain", "--untracked-files=all", "--", "specs", ".lopen")
    assert shown == "?? specs/calc/SPECIFICATION.md", "nothing of lopen's lies in the way"
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
