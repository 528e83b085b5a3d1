"""What holds, and what works, in each sandbox: commands of the model, verify commands, the repository's own hooks."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

import pytest

from lopen.sandbox.choice import Mode
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.needs import require_sandbox
from tests.project import build, build_calls, plan

# What only a person writes


@pytest.mark.parametrize("mode", ["bwrap", "none"])
def test_settings_that_a_command_writes_further_down_are_put_back(
    make_project: MakeProject, mode: Mode
) -> None:
    require_sandbox(mode)
    attempt = (
        "echo '{}' > packages/a/.claude/settings.json; mkdir -p b/.claude; echo '{}' > b/.claude/settings.json;"
        " echo HACK >> specs/calc/SPECIFICATION.md; echo 'gitdir: elsewhere' > .git; true"
    )
    project = make_project(
        [plan(), tools(("run_command", {"command": attempt})), build("calc-t1")],
        LOPEN_SANDBOX__MODE=mode,
    )
    project.write("packages/a/.claude/settings.json", '{"mine": 1}')
    project.commit("Settings")
    project.run_module()
    assert project.built("packages/a/.claude/settings.json").strip() == '{"mine": 1}'
    assert not project.holds("b/.claude/settings.json")
    assert "HACK" not in project.built("specs/calc/SPECIFICATION.md")
    assert (
        "put back: b/.claude/settings.json, packages/a/.claude/settings.json, specs/calc"
        in project.lopen("log").out
    )


# What a killed run leaves


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
def test_commands_of_a_killed_run_are_ended_before_anything_else_runs(
    make_project: MakeProject, mode: Mode
) -> None:
    require_sandbox(mode)
    reading = ("run_command", {"command": "mkfifo pipe; cat pipe > late.txt & wait"})
    ending = ("run_command", {"command": "rm -f pipe late.txt"})
    project = make_project([plan(), tools(reading), tools(ending, *build_calls())], LOPEN_SANDBOX__MODE=mode)
    project.approve_module()
    process = project.start("run", "calc")
    writing = None
    while writing is None:  # until the command reads
        assert process.poll() is None
        threading.Event().wait(0.02)
        with suppress(OSError):
            writing = os.open(project.clone() / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    process.kill()
    process.communicate()

    ran = project.resume()

    assert ran.code == 0, ran.out + ran.err
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"late")
    os.close(writing)
    assert ("had left running" in ran.out) == (mode != "bwrap")
