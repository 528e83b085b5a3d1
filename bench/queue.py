"""The cost of a checkpoint in the queue's database, a local Postgres: a turn's rows, early and late in a session."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.rows import Row
from lopen.queue.checkpoint import ChangedRows
from lopen.queue.shared import BuildOrder, SharedQueue
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from tests.queue.postgres import PostgresServer

TURNS = 1_000
MEASURED = 10  # turns at each end
ANSWER = b"x" * 4_000
TARGET_MS = 20.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows() -> Iterator[Row]:
    """A thousand turns of a session: its row, an answer, and ten events each."""
    server = PostgresServer()
    try:
        with tempfile.TemporaryDirectory() as folder:
            took = _turns(server.new_database(), Path(folder))
    finally:
        server.remove()
    early, late = statistics.median(took[MEASURED : 2 * MEASURED]), statistics.median(took[-MEASURED:])
    yield Row("checkpoint of a turn, turns 11 to 20", early, TARGET_MS, "ms")
    yield Row("checkpoint of a turn, turns 990 to 1,000", late, TARGET_MS, "ms")


def _turns(url: str, folder: Path) -> list[float]:
    queue, database = SharedQueue(url, "bench"), Database(folder / "state.db")
    store, session = SessionStore(database), Session("m-20260101-1", "m", NOW)
    queue.place(BuildOrder("m", "", {}, {}, "", ""), 100)
    fence = queue.take("m", "bench")
    assert fence is not None
    store.save(session, NOW)
    changed = ChangedRows(database)
    changed.note_all()
    took = []
    for turn in range(TURNS):
        with database.transaction() as connection:
            store.save(session, NOW)
            connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, ?)",
                (session.id, turn, turn, "assistant", ANSWER),
            )
            for _ in range(10):
                store.append_event(
                    session.id, NOW, "notice", '{"level": "info", "message": "a line", "hint": ""}'
                )
        begun = time.perf_counter()
        kept = changed.take()
        queue.checkpoint("m", fence, kept)
        changed.forget(kept)
        took.append(1_000 * (time.perf_counter() - begun))
    database.close()
    queue.close()
    return took
