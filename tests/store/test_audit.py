"""The audit trail: a row a tool call, long arguments by hash, secrets never."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st

from lopen.core.redaction import redact
from lopen.store.audit import (
    MAX_STRING_CHARS,
    TEST_RUNS,
    AuditTrail,
    CallRecord,
    recorded_call,
)
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KEY = 'k"e\\y\nwith-odd-characters'


@pytest.fixture
def audit(database: Database) -> AuditTrail:
    for session in ("calc-20260301-1", "calc-20260301-2"):
        SessionStore(database).save(Session(session, "calc", NOW), NOW)
    return AuditTrail(database, "calc-20260301-1", lambda text: redact(text, [KEY]))


def begin(audit: AuditTrail, **arguments: object) -> int:
    return audit.start(iteration=1, turn=2, task="calc-t1", tool="write_file", arguments=arguments, at=NOW)


def kept(database: Database, seq: int) -> CallRecord:
    found = recorded_call(SessionStore(database), "calc-20260301-1", seq)
    assert found is not None
    return found


def test_a_call_is_there_before_it_runs_and_without_an_outcome_until_it_ended(
    audit: AuditTrail, database: Database
) -> None:
    seq = begin(audit, path="a.py")
    begun = kept(database, seq)
    assert (begun.seq, begun.iteration, begun.turn, begun.task, begun.tool) == (
        seq,
        1,
        2,
        "calc-t1",
        "write_file",
    )
    assert (begun.outcome, begun.seconds, begun.started_at) == (None, None, NOW)
    audit.end(seq, seconds=0.5, outcome="refused", content_hash="h", error="no")
    ended = kept(database, seq)
    assert (ended.outcome, ended.seconds, ended.content_hash, ended.error) == ("refused", 0.5, "h", "no")


def test_long_arguments_are_kept_as_length_and_hash(audit: AuditTrail, database: Database) -> None:
    content = "x" * (MAX_STRING_CHARS + 1)
    seq = begin(audit, path="a.py", content=content, nested=[{"deep": content}])
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    said = f"<{len(content)} characters, sha256 {digest}>"
    assert json.loads(kept(database, seq).arguments) == {
        "path": "a.py",
        "content": said,
        "nested": [{"deep": said}],
    }


SHORT = st.text(max_size=MAX_STRING_CHARS)


def test_a_known_secret_is_kept_in_no_spelling(audit: AuditTrail, database: Database) -> None:
    seq = begin(audit, command=f"curl -H 'x: {KEY}' http://x")
    audit.end(seq, seconds=0.1, outcome="error", error=f"401 for {KEY}")
    (row,) = database.connection.execute("SELECT * FROM tool_calls").fetchall()
    assert "odd-characters" not in "".join(str(v) for v in tuple(row))
    assert json.loads(row["arguments"])["command"] == "curl -H 'x: [redacted:known]' http://x"


def test_the_first_and_the_latest_test_runs_are_kept_for_the_next_process(
    audit: AuditTrail, database: Database
) -> None:
    first, other = audit, AuditTrail(database, "calc-20260301-2", str)
    for number in range(TEST_RUNS + 5):
        first.tests_ran(f"tree {number}", {"command": "make test", "count": number})
    other.tests_ran("tree 1", {"command": "make test", "count": 0})
    first.tests_ran(
        f"tree {TEST_RUNS + 4}", {"command": "make test", "count": 99}
    )  # once more on the same tree

    kept = AuditTrail(database, "calc-20260301-1", str).test_runs()

    assert list(kept) == ["tree 0", *(f"tree {number}" for number in range(5, TEST_RUNS + 5))]
    assert [run["count"] for run in kept.values()] == [0, *range(5, TEST_RUNS + 4), 99]
