"""What holds, and what works, in each sandbox: commands of the model, verify commands, the repository's own hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.sandbox.choice import Mode, probe
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import Project, build, code, plan, verified

MODES: tuple[Mode, ...] = ("bwrap", "landlock", "none")
every_mode = pytest.mark.parametrize("mode", MODES)


def require(mode: Mode) -> Mode:
    """Skip where the mode does not work on this machine."""
    if not probe(mode).works:
        pytest.skip(f"{mode} does not work here")
    return mode


def alerts(project: Project) -> str:
    """What the session's log tells of protected paths."""
    return project.lopen("log").out


def write_hook(project: Project, name: str, line: str) -> Path:
    file = project.write(f".git/hooks/{name}", f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return file


# What the repository's configuration decides


def test_no_comment_character_has_tasks_done_again(make_project: MakeProject) -> None:
    turns = [plan(tasks=("One", "Two")), build("calc-t1"), tools(*code("other"), *verified("calc-t2"))]
    project = make_project(turns)
    project.specify()
    project.git("config", "core.commentChar", "L")

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert len(project.subjects("lopen/calc")) == 4


# The repository's own hooks


@every_mode
def test_commit_hooks_write_where_git_lets_them(make_project: MakeProject, mode: Mode) -> None:
    project = make_project([plan(), build("calc-t1")], LOPEN_SANDBOX__MODE=require(mode))
    write_hook(
        project,
        "pre-commit",
        "git add -u && test ! -e .lopen/cache/hooks/left && echo x > .lopen/cache/hooks/left",
    )
    write_hook(project, "commit-msg", 'echo "Change-Id: I123" >> "$1"')
    project.specify()
    left = project.write(".lopen/cache/hooks/left", "from before")

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert "Change-Id: I123" in project.git("log", "-1", "--format=%B", "lopen/calc")
    assert left.read_text() == "x\n"


def test_only_a_hook_writes_to_the_hooks_scratch(make_project: MakeProject) -> None:
    attempt = ("run_command", {"command": "echo x > .lopen/cache/hooks/planted"})
    project = make_project([plan(), tools(attempt), build("calc-t1")], LOPEN_SANDBOX__MODE=require("bwrap"))
    write_hook(project, "pre-commit", "true")
    project.specify()

    assert project.approved_run().code == 0
    assert not (project.root / ".lopen/cache/hooks/planted").exists()
