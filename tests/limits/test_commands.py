"""The commands over a real project: text, JSON, exit codes, and who may give them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

from lopen.cli.commands.limits import alerts, budgets, circuits
from lopen.core.errors import LopenError
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.call_gate import announce_call
from lopen.limits.circuits import CircuitCall, RuleBook
from lopen.limits.sqlite_store import SqliteStore
from lopen.models.messages import Usage
from lopen.store.database import Database
from tests.limits.conftest import charged

NOW = datetime.now(UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "LOPEN_UNDER_SESSION"):
        monkeypatch.delenv(name, raising=False)
    database = Database(tmp_path / ".lopen" / "state.db")
    store = SqliteStore(database)
    charged(
        store, [BudgetSpec("session:s", "session", 1_000, task_description="\x1b[2Jevil")], Charge(1_000), NOW
    )
    for number in range(5):
        call = CircuitCall("read_file", "same", str(number))
        store.atomically(lambda rows, c=call: announce_call(rows, "session:s", c, NOW, RuleBook()))  # type: ignore[misc] # mypy infers no lambda with a default
    database.close()
    return tmp_path


def run(app: Typer, *arguments: str, folder: Path) -> str:
    outcome = CliRunner().invoke(app, [*arguments, "-C", str(folder)])
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def objects(said: str) -> list[dict[str, Any]]:
    """The JSON lines of an output."""
    return [json.loads(line) for line in said.splitlines()]


def test_budgets_are_shown_extended_and_reset(folder: Path) -> None:
    said = run(budgets, "show", folder=folder)
    assert "1,000/1,000 (100%)" in said
    assert "\x1b" not in said
    assert objects(run(budgets, "show", "--json", folder=folder))[0]["status"] == "paused"
    more = run(budgets, "extend", "session:s", "--tokens", "500", "--reason", "x", "--json", folder=folder)
    assert objects(more)[0]["max_tokens"] == 1_500
    assert "0/1,500" in run(budgets, "reset", "session:s", folder=folder)


def test_circuits_are_shown_acknowledged_and_reset(folder: Path) -> None:
    assert "duplicate_call PAUSED (waits for a person" in run(circuits, "status", folder=folder)
    acked = objects(run(circuits, "ack", "session:s", "--json", folder=folder))[0]
    assert acked["state"] == "half_open"
    assert "all limits OK" in run(circuits, "reset", "session:s", folder=folder)
    assert "nothing to acknowledge" in run(circuits, "ack", "session:s", folder=folder)
    [shown] = objects(run(circuits, "status", "--json", folder=folder))
    assert shown["incidents_24h"] == {"ack": 1, "duplicate_call": 1, "reset": 1}
    assert (shown["resources"]["agents_running"], shown["resources"]["api_session_max"]) == (0, 50)


def test_alerts_are_listed_and_acknowledged(folder: Path) -> None:
    listed = objects(run(alerts, "list", "--json", folder=folder))
    assert [a["alert_type"] for a in listed] == [
        "warning_threshold",
        "budget_exhausted",
        "circuit_tripped",
    ]
    run(alerts, "ack", listed[0]["alert_id"], folder=folder)
    assert len(objects(run(alerts, "list", "--new", "--json", folder=folder))) == 2
    run(alerts, "ack", "all", folder=folder)
    assert "No new alerts" in run(alerts, "list", "--new", folder=folder)


def test_a_reset_budget_costs_nothing_of_what_was_spent_before(folder: Path) -> None:
    database = Database(folder / ".lopen" / "state.db")
    spec = BudgetSpec("session:claude", "session", 500_000, agent="claude-code")
    charge = Charge(1_000, Usage(1_000), 1, 0.01, "claude-code", "claude-opus-5-5")
    store = SqliteStore(database)
    charged(store, [spec], replace(charge, tokens=400_000, usage=Usage(400_000)), NOW)
    run(budgets, "reset", "session:claude", folder=folder)
    charged(store, [spec], charge, NOW)
    [shown] = objects(run(budgets, "show", "session:claude", "--json", folder=folder))[:1]
    assert shown["tokens_used"] == 1_000
    assert 0 < shown["cost_usd"] < 0.1
    [totals] = store.spend("session:archived")
    assert totals.tokens == 400_000
    database.close()


def test_what_tripped_and_what_was_granted_is_told_with_its_reason(folder: Path) -> None:
    run(budgets, "extend", "session:s", "--tokens", "500", "--reason", "it was too small", folder=folder)
    run(circuits, "ack", "session:s", folder=folder)
    told = objects(run(circuits, "incidents", "session:s", "--json", folder=folder))
    assert [i["rule"] for i in told] == ["duplicate_call", "extension", "ack"]
    assert told[1]["seen"] == "500 tokens: it was too small"
    said = run(circuits, "incidents", folder=folder)
    assert "duplicate_call: read_file was called 5 times in a row" in said
    assert "lopen circuit incidents" in run(circuits, "status", folder=folder)
    with pytest.raises(LopenError, match="no circuit session:x"):
        run(circuits, "incidents", "session:x", folder=folder)
    assert "extension: 500 tokens: it was too small" in run(budgets, "show", "session:s", folder=folder)
