"""What verify-setup installs: every command sees it, and none changes it."""

from __future__ import annotations

import os

import pytest

from lopen.sandbox.choice import Mode
from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.needs import require_sandbox
from tests.project import code, plan, specification, verified
from tests.ran import SHELL_PYTHON

MODES: tuple[Mode, ...] = ("bwrap", "landlock", "none")
SETUP = f"""set -e
{SHELL_PYTHON} -m venv --without-pip .venv
echo 'VALUE = 3' > $(echo .venv/lib/python*/site-packages)/dep.py
mkdir -p node_modules/.bin ~/.local/bin
printf '#!/bin/sh\\necho from-the-layer\\n' > node_modules/.bin/checker
chmod +x node_modules/.bin/checker
ln -s nowhere node_modules/.bin/gone
ln -s ../.bin/nowhere node_modules/.bin/lost
echo '[3]' > package-lock.json
date +%s%N > ~/.local/made
"""
TEST = """import unittest
import dep
from calc import add


class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), dep.VALUE)
"""
# bubblewrap shows it at its place; elsewhere the environment leads there
RUN: dict[str, str] = {
    "bwrap": ".venv/bin/python -m unittest -q && node_modules/.bin/checker && cat ~/.local/made && sh cache.sh",
    "landlock": 'python -m unittest -q && checker && cat "$PYTHONUSERBASE/made"',
}
RUN["none"] = RUN["landlock"]
# As Vite, tsc and loaders do: each finds an empty folder and writes there
CACHE = """cd node_modules && for name in .cache .tmp .vite .vite-temp; do
test ! -e $name/left && mkdir -p $name/below && echo 1 > $name/left || exit 1; done"""
SPOIL = """for place in .venv/pyvenv.cfg node_modules/.bin/checker ~/.local/made "$VIRTUAL_ENV/pyvenv.cfg" \
"$PYTHONUSERBASE/made"; do echo spoilt >> "$place" && echo "written: $place"; done; true"""


# Fails on what verify-setup installs, and mends it for the next run
MENDS = f"grep -q good node_modules/dep || {{ echo good > node_modules/dep; exit 1; }}; {SHELL_PYTHON} -m unittest -q"


def test_a_run_that_changes_what_is_installed_does_not_decide_the_modules_verdict(
    make_project: MakeProject,
) -> None:
    manifest = (
        "write_file",
        {"path": "package.json", "content": "{}\n"},
    )  # verify-setup runs on this very tree
    spoils = tools(*code(), manifest, ("verify_tests", {}))
    setup = "mkdir -p node_modules && echo bad > node_modules/dep"
    project = make_project(
        [plan(), spoils, tools(*verified("calc-t1"))],
        LOPEN_SANDBOX__MODE="none",
        LOPEN_SANDBOX__NETWORK="true",
    )
    project.write("tests.sh", MENDS)
    project.commit("Add a test script")
    project.approve_module(
        text=specification(commands={"verify-setup": setup, "verify-tests": "sh tests.sh"})
    )
    ran = project.lopen("run", "calc", "--max-iterations", "2", "--json")
    assert [(v["scope"], v["passed"]) for v in ran.named("verdict_given")][-1] == ("module", False)
    assert [t["task"] for t in ran.named("task_changed")][-1] == "calc-t2", "what to mend is a task"


@pytest.mark.parametrize("mode", MODES)
def test_commands_see_what_is_installed_and_cannot_change_it(make_project: MakeProject, mode: Mode) -> None:
    require_sandbox(mode)
    look = tools(
        *code(),
        ("write_file", {"path": "test_dep.py", "content": TEST}),
        ("run_command", {"command": RUN[mode]}),
        ("run_command", {"command": SPOIL}),
    )
    project = make_project(
        [plan(), look, tools(*verified("calc-t1"))], LOPEN_SANDBOX__MODE=mode, LOPEN_SANDBOX__NETWORK="true"
    )
    project.write("setup.sh", SETUP)
    project.write("cache.sh", CACHE)
    project.write("package-lock.json", "{}\n")
    project.commit("Add a set-up script")
    commands = {
        "verify-setup": "sh setup.sh",
        "verify-tests": "sh cache.sh && .venv/bin/python -m unittest -q",
    }
    project.run_module(text=specification(commands=commands))
    seen, spoilt = (r for r in tool_results(project.requests[-1]) if r.tool == "run_command")
    assert seen.data["exit_code"] == 0, seen
    assert "from-the-layer" in seen.text
    assert mode == "none" or "written" not in spoilt.text, spoilt.text
    assert project.git("show", "lopen/calc:package-lock.json") == "[3]"
    assert not os.path.lexists(project.root / ".venv")
    assert not os.path.lexists(project.root / "node_modules")
