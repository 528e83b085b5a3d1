"""The journal: state and events change together or not at all, and are shown only once they are durable."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest

from lopen.core.errors import StorageError
from lopen.core.events import ModelText, Notice, Recorded
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from lopen.workflow.task_tree import TaskTree
from tests.fakes import FakeClock
from tests.sessions import changed
from tests.workflow.trees import tree_of

ID = "calc-20260301-1"


class Heard:
    """A subscriber that looks, through a connection of its own, whether what it hears of is there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.messages: list[str] = []

    def __call__(self, record: Recorded) -> None:
        event = record.event
        assert isinstance(event, Notice | ModelText)
        self.messages.append(event.message if isinstance(event, Notice) else event.text)
        if not event.durable:
            assert record.seq == 0
            return
        with closing(Database(self._database.path)) as other:
            kept = [r.seq for r in SessionStore(other).events(ID)]
        assert record.seq in kept, "heard of before it was durable"


@pytest.fixture
def heard(database: Database) -> Heard:
    return Heard(database)


@pytest.fixture
def journal(database: Database, heard: Heard) -> Journal:
    session = Session(ID, "calc", datetime(2026, 3, 1, tzinfo=UTC))
    begun = Journal(
        SessionStore(database),
        session,
        FakeClock(),
        redact=lambda text: text.replace("hunter2", "[redacted]"),
        subscribers=(heard,),
    )
    begun.save(session)
    return begun


def note(message: str) -> Notice:
    return Notice("info", message)


def kept(database: Database) -> tuple[int, TaskTree, list[str]]:
    """What another process sees: iterations, tree, messages."""
    with closing(Database(database.path)) as other:
        store = SessionStore(other)
        session = store.load(ID)
        messages = [r.event.message for r in store.events(ID) if isinstance(r.event, Notice)]
    return session.limits.iterations, session.tree, messages


def test_state_and_events_become_durable_in_one_transaction(
    journal: Journal, database: Database, heard: Heard
) -> None:
    commits: list[str] = []
    database.connection.set_trace_callback(lambda s: commits.append(s) if s == "COMMIT" else None)
    with journal.transaction():
        journal.save(changed(journal.session, iterations=1), note("one"))
        journal.tell(note("two"))
        assert heard.messages == []
        assert journal.session.limits.iterations == 1, "what follows inside sees it"
    database.connection.set_trace_callback(None)
    assert commits == ["COMMIT"]
    assert heard.messages == ["one", "two"]
    assert kept(database) == (1, TaskTree(), ["one", "two"])


def test_an_exception_takes_back_both_and_nobody_hears_of_it(
    journal: Journal, database: Database, heard: Heard
) -> None:
    def fail() -> None:
        with journal.transaction():
            journal.save(changed(journal.session, iterations=1, tree=tree_of(1, 1)), note("one"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert journal.session.limits.iterations == 0
    assert heard.messages == []
    assert kept(database) == (0, TaskTree(), [])
    journal.save(changed(journal.session, iterations=2, tree=tree_of(2, 1)), note("two"))
    assert kept(database) == (2, tree_of(2, 1), ["two"])


def test_a_save_that_fails_leaves_the_session_as_the_file_has_it(
    journal: Journal, database: Database, heard: Heard
) -> None:
    with closing(Database(database.path)) as other, other.transaction():
        database.connection.execute("PRAGMA busy_timeout=10")
        with pytest.raises(StorageError, match="locked"):
            journal.save(changed(journal.session, iterations=1), note("one"))
    assert journal.session.limits.iterations == 0
    assert journal.reload().limits.iterations == 0
    journal.save(changed(journal.session, iterations=1), note("two"))
    assert (heard.messages, kept(database)[0]) == (["two"], 1)


def test_passing_events_are_shown_and_not_kept(journal: Journal, database: Database, heard: Heard) -> None:
    journal.tell(ModelText("str"), ModelText("eam"))
    assert heard.messages == ["str", "eam"]
    assert kept(database)[2] == []
