"""What is kept of tool calls: failed commands with their exit code, alerts, no secret, no notice that is switched off."""

from __future__ import annotations

import re
import sqlite3

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import build, code, plan

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_a_failed_command_is_recorded_as_failed_with_its_exit_code(make_project: MakeProject) -> None:
    failing = [("run_command", {"command": "exit 3"}), *code(value="a - b")[:2], ("verify_tests", {})]
    project = make_project([plan(), tools(*failing), build("calc-t1")])
    project.specify()
    ran = project.drive()
    assert ran.code == 0, ran.err
    ended = [(e["tool"], e["outcome"], e["error"]) for e in ran.named("tool_ended")]
    assert ("run_command", "failed", "exit code 3") in ended
    assert ("verify_tests", "failed", "exit code 1") in ended
    with sqlite3.connect(project.root / ".lopen" / "state.db") as database:
        rows = database.execute("SELECT tool, outcome, error FROM tool_calls").fetchall()
    assert ("run_command", "failed", "exit code 3") in rows
    assert re.search(
        r"run_command exit 3: failed, [\d.]+ s: exit code 3", project.lopen("log", "calc", "-v").out
    )


def test_alerts_of_protected_paths_are_listed_and_no_table_keeps_a_secret(make_project: MakeProject) -> None:
    spill = ("run_command", {"command": f"echo {KEY}; exit 1"})
    spoil = ("run_command", {"command": "echo x >> specs/calc/SPECIFICATION.md"})
    project = make_project([plan(), tools(spoil), *[tools(spill)] * 3, build("calc-t1")])
    project.specify()
    ran = project.drive()
    assert ran.code == 0, ran.err
    listed = project.lopen("alerts", "--json")
    assert [a["alert_type"] for a in listed.named("alert")] == ["protected_path"]
    with sqlite3.connect(project.root / ".lopen" / "state.db") as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        kept = [name for name in tables if KEY in str(database.execute(f"SELECT * FROM {name}").fetchall())]
    assert kept == []
