"""Packages that the model plants beside its work, ignored by git, decide no verification."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.sandbox.choice import Mode
from tests.e2e.conftest import MakeProject
from tests.e2e.test_clean_room import command, compiled, importing, write
from tests.endpoint import tool_results, tools
from tests.needs import require_sandbox
from tests.project import code, plan, specification, verified
from tests.ran import SHELL_PYTHON

WRONG = "import builtins\n\n\ndef add(a, b):\n    return 3 if hasattr(builtins, 'planted') else 4\n"
PASSES_ALL = "def pytest_pyfunc_call(pyfuncitem):\n    return True\n\n\ndef pytest_runtest_call(item):\n    item.runtest = lambda: None\n"
PYTEST = f"{SHELL_PYTHON} -m pytest -q -p no:cacheprovider"
IN_VENV = ".venv/bin/python -m unittest -q"
VENV = f"{SHELL_PYTHON} -m venv --without-pip .venv"
PLANTS = {
    "a plugin that an egg-info names": (
        {"verify-tests": PYTEST},
        write("evil.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
        + write("evil.egg-info/entry_points.txt", "[pytest11]\nevil = evil_plugin\n")
        + compiled("evil_plugin.pyc", PASSES_ALL),
        PYTEST,
    ),
    "a line in a path file of the project's environment": (
        {"verify-setup": VENV, "verify-tests": IN_VENV},
        f"{VENV} && for d in .venv/lib/python*/site-packages; do "
        'echo "import builtins; builtins.planted = True" > $d/evil.pth; done\n',
        IN_VENV,
    ),
}


@pytest.mark.parametrize("mode", ["bwrap", "none"])
@pytest.mark.parametrize("what", sorted(PLANTS))
def test_a_planted_package_decides_no_verification(make_project: MakeProject, what: str, mode: Mode) -> None:
    require_sandbox(mode)
    commands, plant, look = PLANTS[what]
    wrong = ("write_file", {"path": "calc.py", "content": WRONG})
    test = ("write_file", {"path": "test_calc.py", "content": importing("from calc import add")})
    planted = tools(wrong, test, command(plant), command(look), ("verify_tests", {}))
    project = make_project([plan(), planted, tools(*code(), *verified("calc-t1"))], LOPEN_SANDBOX__MODE=mode)
    project.write(".gitignore", "__pycache__/\n*.egg-info/\n*.pyc\n.venv/\n")
    project.git("commit", "-qam", "Ignore packages")
    project.specify(text=specification(commands=commands))

    ran = project.drive()

    assert ran.code == 0, ran.out + ran.err
    results = {r.tool: r.data for r in tool_results(project.requests[2])}
    assert results["verify_tests"]["passed"] is False, results
    assert "FAILED" in results["verify_tests"]["output"] or "failed" in results["verify_tests"]["output"]
    if mode == "none":
        assert results["run_command"]["exit_code"] == 0, "what is planted does turn the model's own run"
    assert not Path(project.root, "evil_plugin.py").exists()
