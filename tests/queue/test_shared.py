"""The queue's tables: what a worker that has lost its lease can no longer do."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.queue.shared import BuildOrder, DatabaseAway, Fenced, SharedQueue

ALPHA = BuildOrder("alpha", "", {}, {}, "", "")


def test_the_holder_of_a_module_that_was_removed_and_ordered_again_is_fenced(tmp_path: Path) -> None:
    queue = SharedQueue(f"sqlite:///{tmp_path / 'queue.db'}", "project")
    queue.place(ALPHA, 1)
    before = queue.take("alpha", "one")
    assert before is not None
    queue.remove("alpha")
    queue.place(ALPHA, 1)
    assert queue.take("alpha", "two") != before
    with pytest.raises(Fenced):
        queue.renew("alpha", before)
    queue.close()


def test_a_worker_that_is_stopped_within_a_transaction_holds_nobody_up(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lopen.queue.shared.SILENCE_S", 0.2)
    one, two = SharedQueue(database, "project"), SharedQueue(database, "project")
    one.place(ALPHA, 1)
    fence = one.take("alpha", "one")
    assert fence is not None
    with pytest.raises(DatabaseAway), one.holding("alpha", fence):
        two.release("alpha", fence, "waiting", {})  # waits for the row
    assert two.take("alpha", "two") is not None
    one.close()
    two.close()
