"""Start-up is a feature: what lopen does not need it does not load, and it lists what it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lopen import __version__
from lopen.cli.app import COMMANDS, listed
from tests.cli.conftest import Lopen

HEAVY = [
    "anthropic",
    "genai_prices",
    "git",
    "markdown_it",
    "pydantic",
    "rich",
    "transitions",
    "fastapi",
    "redis",
    "sqlite3",
    "yaml",
    "xxhash",
]


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(
    surroundings: dict[str, str], project: Path, argument: str
) -> None:
    code = (
        "import sys\nfrom lopen.__main__ import main\n"
        f"code = main([{argument!r}])\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), 'typer' in sys.modules, code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings,
        cwd=project,
    )
    assert done.stdout.splitlines()[-1] == f"[] {argument == '--help'} 0"


def test_version_is_one_line(lopen: Lopen) -> None:
    assert lopen("--version").stdout == f"lopen {__version__}\n"
    assert lopen("-C", "/", "--version").stdout == f"lopen {__version__}\n"


def test_no_command_shows_the_help(lopen: Lopen) -> None:
    bare, asked = lopen(), lopen("--help")
    assert bare.returncode == asked.returncode == 0
    assert bare.stdout == asked.stdout
    assert "Set up:" in asked.stdout


def test_every_listed_command_is_one_that_loads(lopen: Lopen) -> None:
    shown = lopen("--help").stdout
    for entry in listed():
        assert entry.help in shown.replace("\n" + " " * 11, " ")
    for name in ("init", "check", "config", "doctor", "diagram"):
        assert lopen(name, "--help").returncode == 0


def test_a_command_without_its_module_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    from lopen.cli import app

    missing = app.CommandEntry("nowhere", "lopen.cli.nowhere:nowhere", "Not there", app.LOOK)
    monkeypatch.setattr(app, "COMMANDS", (*COMMANDS, missing))
    assert "nowhere" not in {entry.name for entry in app.listed()}
    assert "init" in {entry.name for entry in app.listed()}


def test_the_table_holds_every_command() -> None:
    names = {entry.name for entry in COMMANDS}
    expected = (
        "init modules check spec run approve resume plan build status answer confirm skip revert log session "
        "budget circuit alerts memory config doctor serve hooks replay demo diagram"
    )
    assert names == set(expected.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diagrm"], "Did you mean 'diagram'?"),
        (["diagram", "--jsn"], "--json"),
        (["config"], "Missing command"),
        (["check", "a", "b"], "unexpected extra argument"),
        (["-C", "/nowhere", "diagram"], "/nowhere: no such folder"),
    ],
)
def test_wrong_usage_is_exit_two_with_a_way_on(lopen: Lopen, arguments: list[str], said: str) -> None:
    done = lopen(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
