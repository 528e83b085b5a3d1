"""Older calls and events of a running session move out, are read back in order, and are never lost or doubled."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lopen.core.errors import StorageError
from lopen.core.events import ToolEnded
from lopen.core.files import store_bytes
from lopen.store.audit import AuditTrail
from lopen.store.database import Database
from lopen.store.event_lines import session_lines
from lopen.store.segments import KeptRows, RowKind, move_rows, moved_rows
from lopen.store.sessions import SessionStore
from tests.store.history import NOW, lived

ID = "calc-20260301-1"
SMALL = KeptRows(rows=4, max_rows=8)


@pytest.fixture
def store(database: Database) -> SessionStore:
    store = SessionStore(database)
    lived(store, ID, calls=10, finished=False)
    lived(store, "calc-20260301-2", task="calc-t2", finished=False)
    return store


def shift(store: SessionStore, kind: RowKind, keep: KeptRows = SMALL, at_most: int = 1_000) -> int:
    return move_rows(store.database, store.archives, ID, kind, keep, at_most)


def calls(store: SessionStore) -> list[int]:
    """Numbers of the calls here and in segments."""
    here = [c.seq for c in AuditTrail(store.database, ID, str).calls()]
    return [row["seq"] for row in moved_rows(store.archives, ID, "calls")] + here


def files(store: SessionStore) -> list[str]:
    return sorted(path.name for path in store.archives.glob("2026-03-01/*"))


def test_what_is_older_than_the_newest_few_moves_into_a_segment(store: SessionStore) -> None:
    everything = calls(store)
    assert shift(store, "calls") == 6
    assert files(store) == [f"{ID}.1.calls.jsonl.gz"]
    assert len(AuditTrail(store.database, ID, str).calls()) == 4
    assert calls(store) == everything
    with gzip.open(store.archives / "2026-03-01" / files(store)[0], "rt") as file:
        first = json.loads(file.readline())
    assert (first["tool"], first["outcome"], first["arguments"]) == ("read_file", "ok", '{"path": "0"}')


def test_as_many_move_at_once_as_are_asked_for_the_oldest_first(store: SessionStore) -> None:
    everything = calls(store)
    assert shift(store, "calls", KeptRows(rows=4, max_rows=4), at_most=4) == 4
    assert calls(store) == everything
    assert shift(store, "calls", KeptRows(rows=4, max_rows=4), at_most=4) == 2
    assert files(store) == [f"{ID}.1.calls.jsonl.gz", f"{ID}.5.calls.jsonl.gz"]
    assert calls(store) == everything


def test_nothing_moves_before_there_is_enough_for_a_segment(store: SessionStore) -> None:
    assert shift(store, "calls", KeptRows()) == 0
    assert shift(store, "calls", KeptRows(rows=4, max_rows=10)) == 0
    assert files(store) == []


def test_a_few_large_rows_move_too(store: SessionStore) -> None:
    keep = KeptRows(size=60, max_size=120)
    assert shift(store, "calls", keep) == 6


def test_the_history_reads_as_if_nothing_had_moved(store: SessionStore) -> None:
    before = list(store.events(ID))
    moves = [shift(store, "events")]
    lived(store, ID, calls=7, finished=False)
    moves.append(shift(store, "events"))
    assert all(moves)
    after = list(store.events(ID))
    assert after[: len(before)] == before
    assert sum(isinstance(r.event, ToolEnded) for r in after) == 17
    for position in range(len(after)):
        assert list(store.events(ID, after=after[position].seq)) == after[position + 1 :]


def test_a_call_under_way_stays_until_it_ended(store: SessionStore) -> None:
    audit = AuditTrail(store.database, ID, str)
    seq = audit.start(iteration=1, turn=1, task=None, tool="run_command", arguments={}, at=NOW)
    for _ in range(10):
        done = audit.start(iteration=1, turn=1, task=None, tool="read_file", arguments={}, at=NOW)
        audit.end(done, seconds=0, outcome="ok")
    shift(store, "calls")
    audit.end(seq, seconds=1, outcome="timeout")
    assert [c.outcome for c in audit.calls() if c.seq == seq] == ["timeout"]


def test_another_session_s_rows_stay(store: SessionStore) -> None:
    other = list(store.events("calc-20260301-2"))
    shift(store, "calls")
    shift(store, "events")
    assert list(store.events("calc-20260301-2")) == other
    assert not any("20260301-2" in name for name in files(store))


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("kind", ["calls", "events"])
def test_a_process_that_dies_while_moving_loses_and_doubles_nothing(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, kind: RowKind, written: bool
) -> None:
    everything, history = calls(store), list(store.events(ID))

    def dying(path: Path, data: bytes) -> None:
        if written:
            store_bytes(path, data)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("lopen.store.segments.store_bytes", dying)
        with pytest.raises(Crash):
            shift(store, kind)
    assert list(store.events(ID)) == history
    lived(store, ID, calls=2, finished=False)  # work went on before the next try
    shift(store, kind)
    assert calls(store)[: len(everything)] == everything
    assert list(store.events(ID))[: len(history)] == history
    assert len(files(store)) == 1


def test_a_segment_that_cannot_be_written_moves_nothing(store: SessionStore) -> None:
    store.archives.write_text("in the way")
    history = list(store.events(ID))
    with pytest.raises(StorageError):
        shift(store, "events")
    store.archives.unlink()
    assert list(store.events(ID)) == history


def test_a_damaged_segment_is_named(store: SessionStore) -> None:
    shift(store, "events")
    (path,) = store.archives.glob("*/*")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(StorageError, match=path.name):
        list(store.events(ID))


def test_rows_that_move_between_two_statements_are_read_once(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = session_lines(store, ID, after=0, limit=100)
    connection, other = store.database.connection, SessionStore(Database(store.database.path))

    class Interrupted:
        """The connection of a reader; the process that drives the session moves rows after each statement."""

        def execute(self, sql: str, values: tuple[object, ...]) -> SimpleNamespace:
            rows = connection.execute(sql, values).fetchall()
            shift(other, "events")
            return SimpleNamespace(fetchall=lambda: rows, fetchone=lambda: rows[0])

    with monkeypatch.context() as patch:
        patch.setattr(store.database, "_connection", Interrupted())
        assert session_lines(store, ID, after=0, limit=100) == wanted
    assert files(store)
    other.database.close()
