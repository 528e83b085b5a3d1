"""Evidence lists keep their newest entries, and a count and mean of the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lopen.limits.records import Alert
from lopen.limits.sqlite_store import SqliteStore
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.store.history import lived

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ID = "calc-20260301-1"


def dropped(database: Database) -> dict[tuple[str, str], tuple[int, Any]]:
    """(list, owner) → how many, and their mean."""
    found = database.connection.execute("SELECT list, owner, count, total / count FROM dropped")
    return {(r[0], r[1]): (r[2], pytest.approx(r[3])) for r in map(tuple, found)}


def test_a_hundred_verdicts_of_a_session_stay(database: Database) -> None:
    store = SessionStore(database)
    lived(store, ID)
    for n in range(1, 131):
        body: dict[str, Any] = {"passed": n % 4 == 0, "summary": str(n), "findings": []}
        store.remember_verdict(ID, f"hash {n}", "task", "t", NOW, body)
    assert [v["summary"] for v in store.verdicts(ID)] == [str(n) for n in range(31, 131)]
    assert dropped(database) == {("verdicts", ID): (31, 8 / 31)}  # the session's own, and 7 of the first 30


def test_the_first_hundred_findings_of_a_verdict_stay(database: Database) -> None:
    store = SessionStore(database)
    lived(store, ID)
    findings = [{"severity": "error", "message": str(n)} for n in range(140)]
    store.remember_verdict(ID, "many", "task", "t", NOW, {"passed": False, "findings": findings})
    kept = store.verdict(ID, "many")
    assert kept is not None
    assert kept["findings"] == findings[:100]
    assert kept["findings_dropped"] == 40


def test_a_hundred_alerts_of_a_budget_stay(database: Database) -> None:
    limits = SqliteStore(database)
    for n in range(110):
        alert = Alert(f"a{n}", "session:s", "secret", "m", n / 10, NOW)
        limits.atomically(lambda rows, a=alert: rows.add_alert(a))  # type: ignore[misc] # mypy infers no lambda with a default
    assert [a.alert_id for a in limits.alerts()] == [f"a{n}" for n in range(10, 110)]
    assert dropped(database) == {("alerts", "session:s"): (10, 0.45)}
