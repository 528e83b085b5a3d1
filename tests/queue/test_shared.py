"""The queue's tables: what a worker that has lost its lease can no longer do."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.queue.shared import BuildOrder, DatabaseAway, Fenced, SharedQueue
from tests.queue.conftest import taken

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
