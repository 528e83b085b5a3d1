"""What a person asks of a running session."""

from __future__ import annotations

import os
from pathlib import Path

from lopen.store.database import Database
from lopen.store.journal import PersonRequest, add_request, drop_pauses, take_requests

SESSION = "calc-20260301-1"


def test_a_process_that_starts_forgets_the_pauses_asked_of_others_alone(tmp_path: Path) -> None:
    """A person may ask a process for a pause while it still starts."""
    database = Database(tmp_path / "state.db")
    own, skip = PersonRequest("pause", {"pid": str(os.getpid())}), PersonRequest("skip", {"task": "calc-t1"})
    for request in (PersonRequest("pause", {"pid": "1"}), skip, own):
        add_request(database, SESSION, request)

    drop_pauses(database, SESSION)

    assert take_requests(database, SESSION) == [skip, own]
