"""Start-up is a feature: what lopen does not need it does not load, and it lists what it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lopen import __version__
from lopen.cli.app import COMMANDS
from lopen.core.events import Notice
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.cli.conftest import Lopen
from tests.project import specification
from tests.workflow.examples import NOW, building

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


def test_help_loads_nothing_heavy(surroundings: dict[str, str], project: Path) -> None:
    code = (
        "import sys\nfrom lopen.__main__ import main\ncode = main(['--help'])\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings,
        cwd=project,
    )
    assert done.stdout.splitlines()[-1] == "[] 0"


NEVER = {"anthropic", "genai_prices", "git", "httpx2", "rich", "tomlkit", "fastapi", "redis"}
COMPLETION = {"_LOPEN_COMPLETE": "complete_bash", "COMP_WORDS": "lopen status ", "COMP_CWORD": "2"}


@pytest.mark.parametrize(
    ("arguments", "completion", "shown", "others"),
    [
        (
            ["status"],
            {},
            "other: specified, no tasks yet, 0 tokens, $0.00\ncalc: interrupted",
            set(),  # it reads a specification that was not approved yet
        ),
        ([], COMPLETION, "calc", {"markdown_it"}),
    ],
)
def test_looking_at_a_session_loads_neither_git_nor_the_model_s_library(
    surroundings: dict[str, str],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    completion: dict[str, str],
    shown: str,
    others: set[str],
) -> None:
    for name in ("calc", "other"):
        path = project / "specs" / name / "SPECIFICATION.md"
        path.parent.mkdir(parents=True)
        path.write_text(specification(), "utf-8")
    with monkeypatch.context() as own:
        own.setenv("HOME", surroundings["HOME"])
        own.setenv("XDG_DATA_HOME", surroundings["XDG_DATA_HOME"])
        store = SessionStore(Database(project / ".lopen" / "state.db"))
        store.save(building(status="running", branch="lopen/calc"), NOW)
        store.append_event("calc-20260301-1", NOW, Notice.name, '{"level": "info", "message": "half way"}')
        store.database.close()
    code = (
        "import atexit, sys\nfrom lopen.__main__ import main\n"
        "atexit.register(lambda: print('\\n' + ' '.join(n for n in sys.modules if '.' not in n)))\n"
        f"sys.argv = ['lopen', *{arguments!r}]\nsys.exit(main({arguments!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=surroundings | completion,
        cwd=project,
    )
    told, _, loaded = done.stdout.rstrip("\n").rpartition("\n")
    assert shown in told, done.stderr
    assert {"sys", "typer"} <= set(loaded.split())
    assert set(loaded.split()) & (NEVER | others) == set()


def test_no_command_shows_the_help(lopen: Lopen) -> None:
    assert lopen("--version").stdout == f"lopen {__version__}\n"
    bare, asked = lopen(), lopen("--help")
    assert bare.returncode == asked.returncode == 0
    assert bare.stdout == asked.stdout
    for entry in COMMANDS.values():
        assert entry.help in asked.stdout.replace("\n" + " " * 11, " ")


def test_a_group_alone_shows_what_it_has(lopen: Lopen) -> None:
    for group, shown in (
        ("config", "budget.session_tokens = 2000000"),
        ("budget", "No budgets yet."),
        ("circuit", "No circuits yet."),
        ("alerts", "No new alerts"),
        ("memory", "Memory: "),
        ("session", "no sessions yet"),
        ("hooks", "install"),
    ):
        done = lopen(group)
        assert (done.returncode, shown in done.stdout) == (0, True), (group, done)


def test_config_explains_settings(lopen: Lopen) -> None:
    wrong = lopen("config", "unset", "budget.sesion_tokens")
    assert (wrong.returncode, "did you mean budget.session_tokens?" in wrong.stderr) == (2, True)
    explained = lopen("config", "show", "circuit.rapid_fire", "--explain").stdout
    assert "circuit.rapid_fire.window = 10.0" in explained
    assert "a number, above 0; default 10.0; set by you" in explained
    assert "null" not in lopen("config", "show").stdout


def test_json_prints_no_text_for_people(lopen: Lopen) -> None:
    for words in (["status"], ["session", "list"], ["init", "calc"], ["budget"]):
        done = lopen(*words, "--json")
        assert (done.returncode, done.stderr) == (0, ""), words
        assert all(line.startswith("{") for line in done.stdout.splitlines())
