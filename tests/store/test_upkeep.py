"""What is archived, moved and given back by itself, and what never is."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from lopen.core.events import Notice, Recorded, SessionStarted
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.sqlite_store import SqliteStore
from lopen.store.archives import open_archive
from lopen.store.folder import exclusive_lock
from lopen.store.journal import Journal
from lopen.store.sessions import SET_ASIDE, SessionStore
from lopen.store.upkeep import counted, footprint
from tests.fakes import FakeClock
from tests.limits.conftest import charged
from tests.store.conftest import MakeUpkeep
from tests.store.history import NOW, lived, many

DAY = timedelta(days=1)


def test_a_session_finished_more_than_seven_days_ago_is_archived(
    store: SessionStore, make_upkeep: MakeUpkeep, clock: FakeClock
) -> None:
    lived(store, "calc-20260301-1")
    clock.advance(7 * 86_400)
    assert make_upkeep().clean().sessions_archived == 0
    clock.advance(1)
    assert make_upkeep().clean().sessions_archived == 1
    assert open_archive(store.archives, "calc-20260301-1").load("calc-20260301-1").finished


def test_unfinished_sessions_are_never_archived(
    store: SessionStore, make_upkeep: MakeUpkeep, clock: FakeClock
) -> None:
    for n in range(12):
        lived(store, f"calc-20260301-{n}", task=f"calc-t{n}", finished=False)
    clock.advance(400 * 86_400)
    assert make_upkeep(state_bytes=1).clean().sessions_archived == 0
    assert len(store.ids()) == 12


def test_the_session_that_is_driven_here_is_not_archived_under_its_driver(
    store: SessionStore, make_upkeep: MakeUpkeep, clock: FakeClock, folder: Path
) -> None:
    ours = lived(store, "calc-20260301-1")
    lived(store, "calc-20260301-2", task="calc-t2")
    lived(store, "tax-20260301-1", module="tax", task="tax-t1")
    clock.advance(8 * 86_400)
    with (
        exclusive_lock(folder / "locks", "module-calc", "module calc"),
        exclusive_lock(folder / "locks", "module-tax", "module tax"),
    ):
        assert make_upkeep(session=ours).clean().sessions_archived == 1
    assert set(store.ids()) == {"calc-20260301-1", "tax-20260301-1"}


def test_older_rows_of_a_running_session_go_while_it_runs(
    store: SessionStore, make_upkeep: MakeUpkeep, clock: FakeClock
) -> None:
    session = lived(store, "calc-20260301-1", calls=10, finished=False)
    store.database.connection.execute("PRAGMA synchronous=OFF")  # what is measured is not the disk
    journal = Journal(store, session, clock, redact=str, subscribers=(make_upkeep(session=session),))
    for n in range(2_200):
        journal.tell(Notice("info", str(n)))
    here = store.database.connection.execute("SELECT count(*) FROM events").fetchone()[0]
    assert 2_000 <= here <= 2_000 + 256 + 10
    messages = [r.event.message for r in store.events(session.id) if isinstance(r.event, Notice)]
    assert messages == [str(n) for n in range(2_200)][-here:]


def test_budgets_of_sessions_that_are_not_lopen_s_are_forgotten_after_seven_days_and_their_totals_stay(
    store: SessionStore, make_upkeep: MakeUpkeep, clock: FakeClock
) -> None:
    limits = SqliteStore(store.database)
    charged(limits, [BudgetSpec("session:claude", "session", 10)], Charge(7, requests=1), NOW)
    limits.atomically(lambda rows: rows.put_memo("hooks:claude", {"offset": 1}))
    lived(store, "calc-20260301-1", finished=False)
    clock.advance(8 * 86_400)
    assert make_upkeep().clean().limits_forgotten == 1
    assert {b.budget_id for b in limits.budgets()} == {
        "module:calc",
        "session:calc-20260301-1",
        "task:calc-t1",
    }
    assert limits.atomically(lambda rows: rows.memo("hooks:claude")) is None
    assert [s.tokens for s in limits.spend("session:archived")] == [7]


def test_beyond_the_limit_everything_finished_goes_and_the_file_shrinks(
    store: SessionStore, make_upkeep: MakeUpkeep, folder: Path, warnings: list[str]
) -> None:
    ids = many(store, 6)
    running = lived(store, "calc-20260301-9", task="calc-t9", finished=False)
    for session in (*ids, running.id):
        with store.database.transaction():
            for _ in range(150):
                store.append_event(
                    session, NOW, "notice", json.dumps({"level": "info", "message": "x" * 900})
                )
    before = counted(footprint(folder))
    freed = make_upkeep(state_bytes=before - 100_000).clean()
    assert freed.sessions_archived == 6
    assert freed.bytes_freed > 400_000
    assert counted(footprint(folder)) < before - 400_000
    assert store.ids() == (running.id,)
    assert len(list(store.events(running.id))) == 3 + 2 + 150
    assert warnings == []


def test_a_session_that_is_too_large_keeps_its_newest_rows(
    store: SessionStore, make_upkeep: MakeUpkeep, folder: Path, warnings: list[str]
) -> None:
    running = lived(store, "calc-20260301-9", task="calc-t9", finished=False)
    with store.database.transaction():
        for n in range(1_500):
            body = json.dumps({"level": "info", "message": f"{n} {'x' * 900}"})
            store.append_event(running.id, NOW, "notice", body)
    freed = make_upkeep(state_bytes=1_200_000).clean()
    messages = [r.event.message for r in store.events(running.id) if isinstance(r.event, Notice)]
    assert [m.split()[0] for m in messages] == [str(n) for n in range(1_000, 1_500)]
    assert freed.rows_deleted > 1_000
    assert counted(footprint(folder)) < 1_200_000
    assert warnings == []


def test_what_cannot_be_made_smaller_is_said_once(
    store: SessionStore, make_upkeep: MakeUpkeep, warnings: list[str], folder: Path
) -> None:
    (folder / "notes").write_bytes(b"x" * 3_000_000)
    upkeep = make_upkeep(state_bytes=2_000_000)
    upkeep.clean()
    upkeep.clean()
    assert len(warnings) == 1
    assert "notes (2.9 MB); next: lopen memory" in warnings[0]


def test_a_failure_of_the_upkeep_stops_nobody(
    store: SessionStore, make_upkeep: MakeUpkeep, folder: Path, warnings: list[str]
) -> None:
    many(store, 12)
    (folder / "session_archives").write_text("in the way")
    upkeep = make_upkeep()
    for _ in range(2):
        upkeep(Recorded(NOW, "calc-20260301-12", SessionStarted("calc", "repeat")))
    assert len(warnings) == 1
    assert "the work continues" in warnings[0]
    assert len(store.ids()) == 12


def test_a_session_that_cannot_be_read_does_not_keep_the_others(
    store: SessionStore, make_upkeep: MakeUpkeep
) -> None:
    ids = many(store, 12)
    with store.database.transaction() as connection:
        connection.execute("UPDATE sessions SET body='{}' WHERE id=?", (ids[0],))
    fresh = SessionStore(store.database)
    assert make_upkeep().clean().sessions_archived == 1
    assert not {ids[0], ids[1]} & set(fresh.ids())
    kept = store.database.connection.execute(
        "SELECT id FROM sessions WHERE status=?", (SET_ASIDE,)
    ).fetchall()
    assert [row["id"] for row in kept] == [ids[0]], "set aside, not lost"
