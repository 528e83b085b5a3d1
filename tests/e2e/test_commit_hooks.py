"""What must pass before a commit: the repository's own hooks and verify-commit."""

from __future__ import annotations

from typing import Any

import pytest

from lopen.sandbox.choice import Mode
from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.fake_api import Answer
from tests.needs import require_sandbox
from tests.project import Project, build, build_calls, plan, specification, verified


def hook(project: Project, name: str, *lines: str) -> None:
    path = project.root / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


@pytest.mark.parametrize("mode", ["bwrap", "none"])
def test_the_repository_s_hooks_may_refuse_and_may_change(make_project: MakeProject, mode: Mode) -> None:
    require_sandbox(mode)
    told: list[dict[str, Any]] = []

    def retry(*calls: tuple[str, dict[str, Any]]) -> Any:
        def turn(body: dict[str, Any]) -> Answer:
            told.append(last_result(body, "update_task_status").data)
            return tools(*calls, *verified("calc-t1"))

        return turn

    project = make_project(
        [
            plan(),
            build("calc-t1"),
            retry(("write_file", {"path": "LICENSE", "content": "Free.\n"})),
            retry(),
        ],
        LOPEN_SANDBOX__MODE=mode,
    )
    project.specify()
    hook(
        project,
        "pre-commit",
        "git add -u && test ! -e .lopen/cache/hooks/left && echo x > .lopen/cache/hooks/left || exit 1",
        "test -f LICENSE || { echo a licence is missing; exit 1; }",
        "grep -q formatted calc.py || { echo '# formatted' >> calc.py; git add calc.py; }",
    )
    hook(project, "commit-msg", 'printf "Change-Id: I123\\n" >> "$1"')

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    refused, changed = told
    assert refused["ok"] is False
    assert "a licence is missing" in refused["output"]
    assert changed["ok"] is False
    assert "stale" in changed["error"]
    assert project.built("calc.py").endswith("# formatted\n")
    assert project.subjects()[2:] == ["feat(calc): complete Write it in core"]
    body = project.git("log", "-1", "--format=%B", "lopen/calc")
    assert "Lopen-Task: calc-t1\n" in body
    assert "Change-Id: I123" in body
    assert project.git("status", "--porcelain") == "?? .lopen/\n?? specs/"


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
