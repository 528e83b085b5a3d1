"""Tokens that an event carried and no store took: counted later, once, by an event or a command."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lopen.claude_hooks import config, pending_usage
from lopen.claude_hooks.pending_usage import Owed
from lopen.limits.budget import BudgetSpec, Charge
from tests.claude_hooks.process import Answered, HookedProject
from tests.limits.conftest import charged
from tests.project import Project

NOW = datetime.now(UTC)


@contextmanager
def locked(project: HookedProject) -> Iterator[None]:
    holder = sqlite3.connect(project.root / ".lopen" / "state.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    project.environ["LOPEN_HOOKS__TIMEOUT_S"] = "2"  # half of it waits for the lock
    try:
        yield
    finally:
        del project.environ["LOPEN_HOOKS__TIMEOUT_S"]
        holder.execute("ROLLBACK")
        holder.close()


def used(project: HookedProject, tokens: int, session: str = "abc") -> Answered:
    response = {"model": "claude-opus-5-5", "usage": {"input_tokens": tokens}}
    return project.send("post-tool-use", session, tool_name="T", tool_input={}, tool_response=response)


def kept(project: HookedProject) -> list[Path]:
    return sorted((project.root / ".lopen" / "owed").glob("*"))


@pytest.fixture
def begun(project: HookedProject) -> HookedProject:
    used(project, 1_000)
    return project


def test_what_a_locked_store_missed_the_next_event_counts_once(begun: HookedProject) -> None:
    with locked(begun):
        missed = used(begun, 1_600_000)
        assert (missed.code, "counted with the next event or command" in missed.err) == (0, True)
    assert len(kept(begun)) == 1
    told = begun.send("user-prompt-submit", prompt="on")
    assert "1,601,000 / 2,000,000" in told.context
    assert "Token usage at 80%" in told.context
    assert kept(begun) == []
    assert "1,601,000 / 2,000,000" in begun.send("user-prompt-submit", prompt="on").context
    assert [(s.model, s.requests) for s in begun.store().spend("session:abc")] == [("claude-opus-5-5", 2)]


def test_a_command_counts_it_too_and_another_session_s_event(begun: HookedProject) -> None:
    with locked(begun):
        used(begun, 5_000, "one")
    ran = Project(begun.root).lopen("budget", "show", "session:one", "--json", HOME=str(begun.home))
    assert ran.events[0]["tokens_used"] == 5_000, ran.err
    with locked(begun):
        used(begun, 7_000, "two")
    begun.send("session-start", "three", source="startup")
    assert begun.budget("two").tokens_used == 7_000
    assert kept(begun) == []


def test_what_a_time_out_interrupted_is_counted_once(project: HookedProject) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes the connection and never answers
        project.environ["LOPEN_BUDGET__STORE"] = f"redis://127.0.0.1:{mute.getsockname()[1]}/0"
        project.environ["LOPEN_HOOKS__TIMEOUT_S"] = "0.45"  # the store is given 0.5 s
        missed = used(project, 5_000)
    assert (missed.code, "took too long" in missed.err) == (0, True)
    project.environ.clear()
    for _ in range(2):
        assert "5,000 / 2,000,000" in project.send("user-prompt-submit", prompt="on").context


def test_what_was_counted_and_kept_all_the_same_is_not_counted_again(begun: HookedProject) -> None:
    """The process was interrupted between the commit and its answer."""
    debt = Owed("0123456789abcdef", "abc", "m", (500, 0, 0, 0))
    settings = config.load(str(begun.root), {})[0]
    for _ in range(2):
        pending_usage.keep(str(begun.root), debt)
        store = begun.store()
        store.atomically(lambda rows: pending_usage.count(rows, [debt], settings, NOW))
    pending_usage.settle(begun.store(), settings, str(begun.root), NOW)
    assert begun.budget().tokens_used == 1_500
    assert kept(begun) == []


def test_what_a_repository_brought_along_charges_nobody(begun: HookedProject) -> None:
    folder = begun.root / ".lopen" / "owed"
    debt = {"event_id": "a" * 16, "session": "abc", "model": "m", "counts": [9_000, 0, 0, 0], "seal": "00"}
    texts = {"a" * 16: json.dumps(debt), "b" * 16: "[]", "c" * 16: "{" * 9_000, "d" * 16: ""}
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    (folder / "link.json").symlink_to("/dev/zero")
    assert "1,000 / 2,000,000" in begun.send("user-prompt-submit", prompt="on").context
    assert pending_usage.waiting(str(begun.root)) == []


def test_a_session_of_lopens_own_is_not_charged(begun: HookedProject) -> None:
    charged(begun.store(), [BudgetSpec("session:own", "session", 9, agent="builder")], Charge(1), NOW)
    with locked(begun):
        used(begun, 7_000, "own")
    begun.send("session-start", source="startup")
    assert begun.budget("own").tokens_used == 1


def test_without_a_state_folder_nothing_is_kept(project: HookedProject) -> None:
    (project.root / ".lopen").rmdir()
    assert used(project, 5).code == 0
    assert not (project.root / ".lopen").exists()
