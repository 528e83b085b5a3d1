"""What the shell offers for a half-typed word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lopen.store.database import Database
from tests.cli.conftest import Lopen


@pytest.fixture
def state(project: Path) -> Path:
    """Two sessions with a task each."""
    database = Database(project / ".lopen" / "state.db")
    with database.transaction() as connection:
        for name, module, status in (("calc-20260101-1", "calc", "running"), ("auth-1", "auth", "complete")):
            tree = {"components": [{"tasks": [{"id": f"{module}-T1", "state": "pending"}]}]}
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, '2026', '2026', ?)",
                (name, module, status, json.dumps({"plan": {"tree": tree}})),
            )
        connection.execute(
            "INSERT INTO verdicts (session, evidence_hash, scope, subject, given_at, body)"
            " VALUES ('auth-1', '0123456789', 'task', 'auth-T1', '2026', '{}')"
        )
        connection.execute("INSERT INTO criteria (module, id, text) VALUES ('auth', 'AC-1', 'It holds.')")
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


OFFERED = {
    "config show sandbox.max_m": ["sandbox.max_memory_mb"],
    "config set sandbox.mode ": ["auto", "bwrap", "landlock", "none"],
    "config set workflow.unattended t": ["true"],
    "revert --to calc": ["calc-T1"],
    "resume a": ["auth-1"],
    "show auth": ["auth-T1"],
    "show AC": ["AC-1"],
    "show v": ["verdict-01234567"],
}


def test_keys_values_tasks_and_sessions_are_offered(lopen: Lopen, state: Path) -> None:
    for words, offered in OFFERED.items():
        assert _offered(lopen, words) == offered
