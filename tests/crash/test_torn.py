"""Files cut within their last record: they are read as they were before it, or set aside and said."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lopen.application.command_context import CommandContext
from lopen.application.open_store import open_store
from lopen.core.events import Notice
from lopen.core.files import store_text
from lopen.models.messages import Request, Response, Usage
from lopen.models.recording import Recorder, load
from lopen.store.database import Database, UnreadableDatabase
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Plan, Session
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.crash.sweep import MEMORY
from tests.fakes import FakeClock
from tests.project import Project
from tests.sessions import changed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TREE = TaskTree((Component("c1", "core", tasks=(Task("calc-t1", "Write it"),)),))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where many files are synced at once; nothing here depends on the disk."""
    where = MEMORY if os.access(MEMORY, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="lopen-torn-", dir=where) as folder:
        yield Path(folder)


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """`.lopen/` of a process that was killed: everything committed is in the log, the last save with its event."""
    folder = tmp_path / "living"
    store = SessionStore(Database(folder / "state.db"))
    session = Session("calc-20260101-1", "calc", NOW, plan=Plan(tree=TREE))
    journal = Journal(store, session, FakeClock(), redact=str)
    store.save(session, NOW)
    journal.tell(Notice("info", "begun"))
    journal.save(changed(session, iterations=1), Notice("info", "last"))
    left = tmp_path / "left"
    shutil.copytree(folder, left, ignore=shutil.ignore_patterns("*-shm"))
    store.database.close()
    return left


def cuts(whole: bytes, last: int) -> Iterator[bytes]:
    """What `whole` may be while its last bytes are being written: cut at the ends, and here and there between."""
    begin = len(whole) - last
    for end in sorted({*range(begin, begin + 32), *range(begin, len(whole), 97), len(whole) - 1}):
        yield whole[:end]


def folded(crashed: Path) -> bytes:
    """The database with its log folded in."""
    database = sqlite3.connect(crashed / "state.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return (crashed / "state.db").read_bytes()


def test_a_database_cut_in_its_last_page_is_refused(crashed: Path, memory: Path) -> None:
    whole = folded(crashed)
    for cut in cuts(whole, 4096):
        (memory / "state.db").write_bytes(cut)
        with pytest.raises(UnreadableDatabase, match="state"):
            Database(memory / "state.db").close()
    (memory / "state.db").write_bytes(whole)
    Database(memory / "state.db").close()


@pytest.fixture
def project(crashed: Path, tmp_path: Path) -> Path:
    """A repository with that state and the folder of a module."""
    project = Project(tmp_path / "project")
    state = project.root / ".lopen"
    shutil.copytree(crashed, state)
    (state / "state.db").write_bytes(folded(state))
    store_text(state / "modules" / "calc" / "plan.md", "# Plan: calc")
    return project.root


@pytest.mark.parametrize("size", [0, 99, 4096, -1])
def test_a_cut_database_is_set_aside_and_said(
    size: int, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / ".lopen" / "state.db"
    cut = path.read_bytes()[:size]
    path.write_bytes(cut)

    store = open_store(CommandContext(project))

    said = capsys.readouterr().err
    (kept,) = (project / ".lopen" / "corrupted").glob("*-state.db")
    assert kept.read_bytes() == cut
    assert f"moved to {kept.relative_to(project)}" in said
    assert not store.ids()
    store.database.close()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("UPDATE sessions SET body = substr(body, 1, 40)", "session calc-20260101-1"),
        ("UPDATE events SET body = substr(body, 1, 9)", "event 1"),
        ("UPDATE events SET ts = 'then'", "event 1"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(sql: str, what: str, crashed: Path) -> None:
    store = SessionStore(Database(crashed / "state.db"))
    with store.database.transaction() as connection:
        connection.execute(sql)

    with pytest.raises(UnreadableDatabase, match=what):
        everything(store)
    store.database.close()


def everything(store: SessionStore) -> None:
    """Read what is there."""
    for name in store.ids():
        store.load(name)
        list(store.events(name))


def exchange(recorder: Recorder, words: str) -> None:
    request = Request("m", (), ({"role": "user", "content": words},))
    said = Response(words, "m", ({"type": "text", "text": words},), (), "end_turn", Usage(1, 1))
    recorder.record(request, said, step="s")


def test_a_recording_cut_in_its_last_exchange_goes_on_behind_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "calc.jsonl.gz"
    recorder = Recorder(path, "calc", redact=str, clock=FakeClock())
    exchange(recorder, "first")
    before = path.stat().st_size
    exchange(recorder, "second")
    whole = path.read_bytes()
    for cut in cuts(whole, len(whole) - before):
        path.write_bytes(cut)
        exchange(Recorder(path, "calc", redact=str, clock=FakeClock()), "third")
        assert [e.response.content[0]["text"] for e in load(path).exchanges] == ["first", "third"], len(cut)
