"""What the shell offers for a half-typed word."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lopen.store.database import Database
from tests.cli.conftest import TIMEOUT_S, Lopen
from tests.ran import SHELL_PYTHON


@pytest.fixture
def state(project: Path) -> Path:
    """Two sessions with a task each."""
    database = Database(project / ".lopen" / "state.db")
    with database.transaction() as connection:
        for name, module, status in (("calc-20260101-1", "calc", "running"), ("auth-1", "auth", "complete")):
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, '2026', '2026', '{}')", (name, module, status)
            )
            connection.execute(
                "INSERT INTO tasks VALUES (?, ?, 'C1', 0, 'pending', '{}')", (name, f"{module}-T1")
            )
    database.close()
    return project


def _offered(lopen: Lopen, words: str) -> list[str]:
    done = lopen(
        env={
            "_LOPEN_COMPLETE": "complete_bash",
            "COMP_WORDS": f"lopen {words}",
            "COMP_CWORD": str(words.count(" ") + 1),
        }
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_are_offered_without_loading_them(lopen: Lopen) -> None:
    assert _offered(lopen, "di") == ["diff", "diagram"]
    assert "check" in _offered(lopen, "")


def test_modules_are_offered(lopen: Lopen, project: Path) -> None:
    for name in ("auth", "calc"):
        (project / "specs" / name).mkdir(parents=True)
        (project / "specs" / name / "SPECIFICATION.md").write_text("")
    assert _offered(lopen, "check ") == ["auth", "calc"]
    assert _offered(lopen, "check c") == ["calc"]


@pytest.mark.parametrize("words", ["check ", "resume ", "revert --to "])
def test_nothing_is_offered_where_the_current_folder_is_gone(
    surroundings: dict[str, str], tmp_path: Path, words: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    asked = {"_LOPEN_COMPLETE": "complete_bash", "COMP_WORDS": f"lopen {words}", "COMP_CWORD": "3"}
    done = subprocess.run(
        ["/bin/sh", "-c", f"rmdir '{gone}'; exec {SHELL_PYTHON} -m lopen"],
        cwd=gone,
        env=surroundings | asked,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("config show sandbox.max_m", ["sandbox.max_memory_mb"]),
        ("config set sandbox.mode ", ["auto", "bwrap", "landlock", "none"]),
        ("config set workflow.unattended t", ["true"]),
        ("revert --to calc", ["calc-T1"]),
    ],
)
def test_keys_and_values_of_options_are_offered(
    lopen: Lopen, state: Path, words: str, offered: list[str]
) -> None:
    assert _offered(lopen, words) == offered


def test_sessions_and_tasks_come_from_the_database(
    state: Path, surroundings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import typer
    from typer.main import get_command

    from lopen.cli.parameters import sessions, tasks

    monkeypatch.chdir(state)
    app = typer.Typer()
    app.command()(lambda: None)
    context = typer.Context(get_command(app))
    assert [name for name, _ in sessions(context, "")] == ["calc-20260101-1", "auth-1"]
    assert sessions(context, "auth") == [("auth-1", "auth, complete")]
    assert tasks(context, "") == [("calc-T1", "pending")]


def test_without_a_database_nothing_is_offered_and_nothing_made(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import typer
    from typer.main import get_command

    from lopen.cli.parameters import sessions

    monkeypatch.chdir(project)
    app = typer.Typer()
    app.command()(lambda: None)
    assert sessions(typer.Context(get_command(app)), "") == []
    assert not (project / ".lopen").exists()
