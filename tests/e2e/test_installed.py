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
    project.git("add", "-A")
    project.git("commit", "-qm", "Add a set-up script")
    commands = {
        "verify-setup": "sh setup.sh",
        "verify-tests": "sh cache.sh && .venv/bin/python -m unittest -q",
    }
    project.specify(text=specification(commands=commands))

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    seen, spoilt = (r for r in tool_results(project.requests[-1]) if r.tool == "run_command")
    assert seen.data["exit_code"] == 0, seen
    assert "from-the-layer" in seen.text
    assert mode == "none" or "written" not in spoilt.text, spoilt.text
    assert project.git("show", "lopen/calc:package-lock.json") == "[3]"
    assert not os.path.lexists(project.root / ".venv")
    assert not os.path.lexists(project.root / "node_modules")


def test_a_write_into_what_is_installed_is_explained(make_project: MakeProject) -> None:
    require_sandbox("bwrap")
    turns = [plan(), tools(*code(), ("verify_tests", {})), tools(("verify_tests", {}))]
    project = make_project(turns, LOPEN_SANDBOX__MODE="bwrap", LOPEN_SANDBOX__NETWORK="true")
    tests = f"touch node_modules/out && {SHELL_PYTHON} -m unittest -q"
    project.specify(
        text=specification(
            commands={"verify-setup": "mkdir node_modules; touch node_modules/x", "verify-tests": tests}
        )
    )

    project.approved_run()

    (refused,) = [r for r in tool_results(project.requests[-1]) if r.tool == "verify_tests"][:1]
    assert refused.data["passed"] is False
    assert "verify-setup installed" in refused.data["hint"], refused.data


BELOW = f"""set -e
mkdir -p backend
{SHELL_PYTHON} -m venv --without-pip backend/.venv
test -f web || (mkdir -p web/app/node_modules; touch web/app/node_modules/x)
"""


@pytest.mark.parametrize("mode", MODES)
def test_the_model_writes_where_verify_setup_made_folders(make_project: MakeProject, mode: Mode) -> None:
    """A file beside what is installed, and one in place of a folder above something installed."""
    require_sandbox(mode)
    look = "ls backend/.venv/pyvenv.cfg web/app" if mode == "bwrap" else 'ls "$VIRTUAL_ENV/pyvenv.cfg"'
    write: tuple[str, dict[str, str]] = ("write_file", {"path": "backend/x.txt", "content": "1\n"})
    turns = [
        plan(),
        tools(*code(), ("verify_tests", {}), ("run_command", {"command": look})),
        tools(write, ("verify_task_completion", {"task_id": "calc-t1"})),
        tools(
            ("edit_file", {"path": "backend/x.txt", "old_text": "1", "new_text": "2"}),
            ("write_file", {"path": "web", "content": "mine\n"}),
            ("run_command", {"command": look.replace(" web/app", "")}),
        ),
        tools(*verified("calc-t1")),
    ]
    project = make_project(turns, LOPEN_SANDBOX__MODE=mode, LOPEN_SANDBOX__NETWORK="true")
    project.write(".gitignore", "__pycache__/\n.venv/\nnode_modules/\n")
    project.write("setup.sh", BELOW)
    project.git("add", "-A")
    project.git("commit", "-qm", "Add a set-up script")
    tests = f"test -f backend/.venv/pyvenv.cfg && {SHELL_PYTHON} -m unittest -q"
    project.specify(text=specification(commands={"verify-setup": "sh setup.sh", "verify-tests": tests}))

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    results = tool_results(project.requests[-1])
    assert [r.data["exit_code"] for r in results if r.tool == "run_command"] == [0, 0]
    assert project.git("show", "lopen/calc:backend/x.txt") == "2"
    assert project.git("ls-tree", "-r", "--name-only", "lopen/calc", "backend", "web").split() == [
        "backend/x.txt",
        "web",
    ]
