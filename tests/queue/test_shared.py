"""The queue's tables: what a worker that has lost its lease can no longer do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lopen.core.errors import LopenError
from lopen.queue.engine import Executions
from lopen.queue.opening import OpenQueue, project_id
from lopen.queue.shared import BuildOrder, DatabaseAway, Fenced, SharedQueue
from tests.queue.conftest import taken
from tests.queue.postgres import PostgresServer

ALPHA = BuildOrder("alpha", "", {}, {}, "", "")


def test_the_holder_of_a_module_that_was_removed_and_ordered_again_is_fenced(tmp_path: Path) -> None:
    queue = SharedQueue(f"sqlite:///{tmp_path / 'queue.db'}", "project")
    queue.place(ALPHA, 1)
    before = taken(queue, "alpha", "one")
    queue.remove("alpha")
    queue.place(ALPHA, 1)
    assert taken(queue, "alpha", "two") > before
    with pytest.raises(Fenced):
        queue.renew("alpha", before)
    queue.close()


def test_a_worker_that_is_stopped_within_a_transaction_holds_nobody_up(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lopen.queue.shared.SILENCE_S", 0.2)
    one, two = SharedQueue(database, "project"), SharedQueue(database, "project")
    one.place(ALPHA, 1)
    fence = taken(one, "alpha", "one")
    with pytest.raises(DatabaseAway), one.holding("alpha", fence):
        two.release("alpha", fence, "waiting", {})  # waits for the row
    assert taken(two, "alpha", "two") > fence
    one.close()
    two.close()


def test_a_module_that_is_ordered_again_before_it_is_claimed_is_built_once(tmp_path: Path) -> None:
    queue = SharedQueue(f"sqlite:///{tmp_path / 'queue.db'}", "project")
    queue.place(ALPHA, 100)
    [first] = queue.ready()
    queue.place(ALPHA, 1)
    [again] = queue.ready()
    assert not queue.take("alpha", first.fence, "one")
    assert queue.take("alpha", again.fence, "one")
    queue.release("alpha", again.fence, "complete", {})
    assert not queue.take("alpha", again.fence, "two"), "its execution is claimed once more"
    queue.close()


def test_the_execution_of_a_worker_that_died_behind_the_last_word_of_its_build_is_ended(
    tmp_path: Path,
) -> None:
    file = tmp_path / "queue.db"
    shared = SharedQueue(f"sqlite:///{file}", "project")
    queue = OpenQueue(shared, Executions(shared.url, "project"))
    shared.place(ALPHA, 1)
    queue.begin_ready()
    [placed] = shared.placed()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE workflow_status SET status = 'PENDING'")  # as a worker claims it

    assert list(queue.take_over_dead(whole=True)) == []
    assert queue.executions.open() == {queue.executions.id(placed): ""}
    shared.take("alpha", placed.fence, "one")
    shared.release("alpha", placed.fence, "complete", {})
    assert list(queue.take_over_dead(whole=True)) == []
    assert queue.executions.open() == {}
    queue.close()


def test_a_worker_is_told_at_once_that_the_database_is_away(
    shared_postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, heard = SharedQueue(database, "project"), list[str]()

    def come_back(text: str) -> None:
        heard.append(text)
        shared_postgres.start()

    queue.warn = come_back
    monkeypatch.setattr("lopen.queue.shared.RETRY_S", 0.0)
    shared_postgres.stop()
    assert queue.placed() == []
    [told] = heard
    assert told.startswith(f"the queue's database {database}: "), told
    assert told.endswith("it is asked again for 120 s")
    queue.close()


def test_a_folder_without_commits_has_no_queue(tmp_path: Path) -> None:
    with pytest.raises(LopenError, match="is not in a git repository with a commit"):
        project_id(tmp_path)
