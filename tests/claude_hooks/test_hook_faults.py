"""What goes wrong around a hook process: malformed events, a store that is locked or gone, an input that never ends."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lopen.claude_hooks import entry
from lopen.claude_hooks.entry import HookTimedOut
from lopen.limits.redis_store import RedisStore, project_prefix
from lopen.store.database import Database
from tests.claude_hooks.process import COMMAND, HookedProject
from tests.limits.conftest import charged
from tests.limits.redis_server import RedisServer

BAD = {
    "nothing": b"",
    "no JSON": b"{'session_id': 1",
    "a list": b"[1, 2]",
    "no tool": b'{"session_id": "abc"}',
    "a session that is a path": b'{"session_id": "../../etc/passwd", "tool_name": "Read"}',
    "wrong kinds": b'{"session_id": 5, "tool_name": ["x"], "tool_input": 3}',
    "deep nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("what", BAD)
def test_a_malformed_event_allows_the_call_and_is_logged(project: HookedProject, what: str) -> None:
    for event, told in (("pre-tool-use", True), ("post-tool-use", False)):  # the person, once
        answered = project.raw(event, BAD[what])
        assert answered.code == 0
        assert ("nothing is held back" in answered.told) is told
    log = (project.root / ".lopen" / "logs" / "hooks.jsonl").read_text().splitlines()
    assert [json.loads(line)["level"] for line in log] == ["warning"]


def test_malformed_usage_is_left_out(project: HookedProject) -> None:
    usage: object
    for usage in (
        {"input_tokens": "many"},
        {"input_tokens": -5},
        [],
        {"output_tokens": 1e30},
        {"input_tokens": True},
    ):
        answered = project.send(
            "post-tool-use", tool_name="T", tool_input=None, tool_response={"usage": usage}
        )
        assert answered.code == 0
    assert project.budget().tokens_used == 0


def test_an_event_of_ten_megabytes_is_answered(project: HookedProject) -> None:
    content = "x = 1\n" * 1_750_000
    assert project.before("Write", {"file_path": "a.py", "content": content}).code == 0
    assert project.circuit().calls.iteration_count == 1


def test_a_call_that_is_not_read_in_time_is_refused(
    project: HookedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> str:
        raise HookTimedOut

    monkeypatch.setattr(entry, "forbidden", late)
    refused = project.bash("make")
    assert (refused.code, "shorter parts" in refused.out) == (2, True)


def test_an_event_that_names_a_session_of_lopens_own_changes_nothing(project: HookedProject) -> None:
    from lopen.limits.budget import BudgetSpec, Charge

    spec = BudgetSpec("session:auth-20260101-1", "session", 1_000, agent="builder")
    charged(project.store(), [spec], Charge(10), datetime.now(UTC))
    answered = project.send(
        "post-tool-use",
        session="auth-20260101-1",
        tool_name="T",
        tool_input={},
        tool_response={"usage": {"input_tokens": 900}},
    )
    assert answered.code == 0
    assert "a session of lopen's own" in answered.err
    assert project.budget("auth-20260101-1").tokens_used == 10


def test_a_store_of_a_newer_version_allows_and_is_left_alone(project: HookedProject) -> None:
    project.before("Read", {"file_path": "a"})
    connection = sqlite3.connect(project.root / ".lopen" / "state.db")
    connection.execute("PRAGMA user_version=9999")
    connection.close()
    answered = project.before("Read", {"file_path": "a"})
    assert answered.code == 0
    assert "newer lopen" in answered.err


def test_a_store_that_is_locked_damaged_or_missing_allows(project: HookedProject) -> None:
    project.environ["LOPEN_HOOKS__TIMEOUT_S"] = "1.2"
    project.before("Read", {"file_path": "a"})
    database = project.root / ".lopen" / "state.db"
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    locked = project.before("Read", {"file_path": "a"})
    holder.execute("ROLLBACK")
    holder.close()
    assert (locked.code, "nothing is held back" in locked.err) == (0, True)
    for file in (project.root / ".lopen").glob("state.db*"):
        file.unlink()
    database.write_bytes(b"no database" * 1_000)
    assert project.before("Read", {"file_path": "a"}).code == 0
    database.unlink()
    shutil.rmtree(project.root / ".lopen")
    missing = project.before("Read", {"file_path": "a"})
    assert (missing.code, "no .lopen folder" in missing.told) == (0, True)
    assert project.before("Read", {"file_path": "a"}).told == ""  # once


def test_standard_input_that_never_ends_is_given_up(project: HookedProject) -> None:
    project.environ["LOPEN_HOOKS__TIMEOUT_S"] = "0.3"
    with subprocess.Popen(
        [*COMMAND, "pre-tool-use"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project.root,
        env=project.env(),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"session_id"')
        process.stdin.flush()
        assert process.wait(timeout=120) == 0
        assert process.stderr is not None
        assert b"took too long" in process.stderr.read()


def test_an_unknown_event_is_allowed(project: HookedProject) -> None:
    answered = project.raw("worktree-create", b"{}")
    assert (answered.code, answered.out) == (0, "")
    assert "not an event of lopen's: worktree-create" in answered.err


def test_protected_edits_and_persons_commands_are_blocked_without_any_store(project: HookedProject) -> None:
    (project.root / ".lopen").rmdir()
    blocked = project.before("Write", {"file_path": ".claude/settings.json", "content": "{}"})
    assert (blocked.code, "protected" in blocked.err) == (2, True)
    assert project.before("Read", {"file_path": ".claude/settings.json"}).code == 0
    person = project.bash("cd /tmp && lopen approve auth")
    assert (person.code, "a person's command" in person.err) == (2, True)


def test_the_hooks_count_in_redis_where_the_person_says_so(project: HookedProject, tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    project.environ["LOPEN_BUDGET__STORE"] = server.url
    usage = {"usage": {"input_tokens": 5_000}}
    try:
        answered = project.send("post-tool-use", tool_name="T", tool_input={}, tool_response=usage)
        database = Database(tmp_path / "state.db")
        prefix = project_prefix("lopen", str(project.root))
        [state] = RedisStore(server.url, database, prefix=prefix).budgets()
    finally:
        server.stop()
    assert (answered.code, state.budget_id, state.tokens_used) == (0, "session:abc", 5_000)
    gone = project.before("Read", {"file_path": "a"})
    assert (gone.code, "nothing is held back" in gone.err) == (0, True)
