"""verify-commit must pass before each commit; the repository's own hooks do not run."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.fake_api import Answer
from tests.project import build, build_calls, plan, specification


def test_verify_commit_must_pass_before_each_commit(make_project: MakeProject) -> None:
    told: list[dict[str, Any]] = []

    def mended(body: dict[str, Any]) -> Answer:
        told.append(last_result(body, "update_task_status").data)
        return tools(("write_file", {"path": "LICENSE", "content": "Free.\n"}), *build_calls()[2:])

    project = make_project([plan(), build("calc-t1"), mended])
    project.run_module(text=specification(commands={"verify-commit": "cat LICENSE"}))
    assert told[0]["ok"] is False
    assert "verify-commit failed" in told[0]["error"]
    assert "LICENSE" in told[0]["output"]
    assert len(project.subjects()) == 3
