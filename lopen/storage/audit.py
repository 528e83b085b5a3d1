"""The audit trail: a row per tool call, written before it runs and completed after it, and one per verification."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from lopen.storage.database import Database
from lopen.storage.segments import moved_rows
from lopen.storage.sessions import SessionStore
from lopen.storage.verifications import VerificationRecord, mutation_checked

MAX_STRING_CHARS = 200  # longer strings are replaced by their length and hash

Outcome = Literal[
    "ok", "failed", "error", "refused", "timeout"
]  # failed: its command ended with another code than 0


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A recorded tool call. `outcome` is None if the process died while the call ran."""

    seq: int
    iteration: int
    turn: int
    task: str | None
    tool: str
    arguments: str
    started_at: datetime
    seconds: float | None
    outcome: Outcome | None
    content_hash: str | None
    error: str


def shorten_strings(value: Any) -> Any:
    """Return `value` with every long string replaced by its length and SHA-256 (first 16 hex digits)."""
    if isinstance(value, str) and len(value) > MAX_STRING_CHARS:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"<{len(value)} characters, sha256 {digest}>"
    if isinstance(value, Mapping):
        return {str(k): shorten_strings(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [shorten_strings(v) for v in value]
    return value


class AuditTrail:
    """The tool calls of one session."""

    def __init__(self, database: Database, session: str, redact: Callable[[str], str]) -> None:
        self._database = database
        self._session = session
        self._redact = redact
        self._running: int | None = None  # the call that runs and may verify

    def start(
        self, *, iteration: int, turn: int, task: str | None, tool: str, arguments: Any, at: datetime
    ) -> int:
        """Record the start of a call; return its number."""
        text = self._redact(json.dumps(shorten_strings(arguments), ensure_ascii=False, default=str))
        cursor = self._database.write(
            "INSERT INTO tool_calls (session, iteration, turn, task, tool, arguments, started_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._session, iteration, turn, task, tool, text, at.isoformat()),
        )
        self._running = cursor.lastrowid
        return cursor.lastrowid or 0

    def end(
        self, seq: int, *, seconds: float, outcome: Outcome, content_hash: str | None = None, error: str = ""
    ) -> None:
        """Record the outcome of a call."""
        self._running = None
        self._database.write(
            "UPDATE tool_calls SET seconds=?, outcome=?, content_hash=?, error=? WHERE seq=?",
            (seconds, outcome, content_hash, self._redact(error), seq),
        )

    def verification(self, record: VerificationRecord) -> VerificationRecord:
        """Record a verification under its number, as part of the call that runs; return it without secrets."""
        clean = replace(record, call=self._running, output=self._redact(record.output))
        body = {
            name: value for name, value in asdict(clean).items() if name not in ("number", "call", "task")
        }
        cursor = self._database.write(
            "INSERT INTO verifications (session, call, task, body) VALUES (?, ?, ?, ?)",
            (self._session, clean.call, clean.task, self._redact(json.dumps(body, ensure_ascii=False))),
        )
        return replace(clean, number=cursor.lastrowid or 0)

    def mutation_checked(self, base: str, tree: str, command: str) -> Mapping[str, Any] | None:
        """Return what the session's test command found on mutants of this change, None if it did not run on them."""
        return mutation_checked(self._database, self._session, base, tree, command)

    def calls(self, *, limit: int = 100) -> list[CallRecord]:
        """Return the session's last `limit` calls, oldest first."""
        rows = self._database.connection.execute(
            "SELECT * FROM (SELECT * FROM tool_calls WHERE session=? ORDER BY seq DESC LIMIT ?) ORDER BY seq",
            (self._session, limit),
        )
        return [_call(row) for row in rows]


def recorded_call(store: SessionStore, session: str, number: int) -> CallRecord | None:
    """Return a call of the session by its number, also one that was moved out of the database."""
    sql = "SELECT * FROM tool_calls WHERE session=? AND seq=?"
    row = store.database.connection.execute(sql, (session, number)).fetchone()
    if row is None:
        moved = moved_rows(store.archives, session, "calls", after=number - 1, before=number + 1)
        row = next(moved, None)
    return None if row is None else _call(row)


def _call(row: Mapping[str, Any]) -> CallRecord:
    return CallRecord(
        row["seq"],
        row["iteration"],
        row["turn"],
        row["task"],
        row["tool"],
        row["arguments"],
        datetime.fromisoformat(row["started_at"]),
        row["seconds"],
        row["outcome"],
        row["content_hash"],
        row["error"],
    )
