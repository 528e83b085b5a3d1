"""The audit trail: one row per tool call, written before the call runs and completed after it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from lopen.storage.database import Database

MAX_STRING_CHARS = 200  # longer strings are replaced by their length and hash

Outcome = Literal["ok", "error", "refused", "timeout"]


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
        return cursor.lastrowid or 0

    def end(
        self, seq: int, *, seconds: float, outcome: Outcome, content_hash: str | None = None, error: str = ""
    ) -> None:
        """Record the outcome of a call."""
        self._database.write(
            "UPDATE tool_calls SET seconds=?, outcome=?, content_hash=?, error=? WHERE seq=?",
            (seconds, outcome, content_hash, self._redact(error), seq),
        )

    def calls(self, *, limit: int = 100) -> list[CallRecord]:
        """Return the session's last `limit` calls, oldest first."""
        rows = self._database.connection.execute(
            "SELECT * FROM (SELECT * FROM tool_calls WHERE session=? ORDER BY seq DESC LIMIT ?) ORDER BY seq",
            (self._session, limit),
        )
        return [
            CallRecord(
                r["seq"],
                r["iteration"],
                r["turn"],
                r["task"],
                r["tool"],
                r["arguments"],
                datetime.fromisoformat(r["started_at"]),
                r["seconds"],
                r["outcome"],
                r["content_hash"],
                r["error"],
            )
            for r in rows
        ]
