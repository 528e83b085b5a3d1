"""The conversation of the iteration under way, stored as it happens, so that a killed run continues it.

Rows are written in the transactions of what they belong to: a response with its charge, a call's start and its
result with their audit rows. A new iteration replaces them.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from lopen.storage.database import Database

Kind = Literal["opening", "assistant", "user", "started", "stopped", "result"]
COMPRESSION = 1  # speed counts: rows are written within a turn


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored step of a conversation."""

    kind: Kind
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation as far as it came. `at_ns` is the wall-clock time of its last entry, in nanoseconds."""

    opening: dict[str, Any]
    entries: tuple[Entry, ...]
    at_ns: int


class ConversationStore:
    """The stored conversation of one session. `redact` removes secrets, as they are removed from what is sent."""

    def __init__(self, database: Database, session: str, redact: Callable[[str], str]) -> None:
        self._database = database
        self._session = session
        self._redact = redact
        self._next: int | None = None

    def begin(self, opening: dict[str, Any]) -> None:
        """Replace the stored conversation by a new one."""
        with self._database.transaction():
            self.clear()
            self._next = 0
            self.add("opening", opening)

    def add(self, kind: Kind, body: dict[str, Any]) -> None:
        """Store the next step, within the transaction that is open."""
        if self._next is None:
            self._next = self._count()
        text = self._redact(json.dumps(body, ensure_ascii=False))
        self._database.write(
            "INSERT INTO conversations (session, seq, at_ns, kind, body) VALUES (?, ?, ?, ?, ?)",
            (self._session, self._next, time.time_ns(), kind, _packed(text)),
        )
        self._next += 1
        self._database.on_rollback(self._forget)

    def load(self) -> StoredConversation | None:
        """Return the stored conversation; None where there is none that can be read."""
        rows = self._database.connection.execute(
            "SELECT at_ns, kind, body FROM conversations WHERE session=? ORDER BY seq", (self._session,)
        ).fetchall()
        try:
            entries = [Entry(row["kind"], json.loads(zlib.decompress(row["body"]))) for row in rows]
        except (zlib.error, ValueError):
            return None
        if not entries or entries[0].kind != "opening":
            return None
        return StoredConversation(entries[0].body, tuple(entries[1:]), rows[-1]["at_ns"])

    def clear(self) -> None:
        """Delete the stored conversation."""
        self._database.write("DELETE FROM conversations WHERE session=?", (self._session,))
        self._next = 0

    def _count(self) -> int:
        row = self._database.connection.execute(
            "SELECT coalesce(max(seq) + 1, 0) FROM conversations WHERE session=?", (self._session,)
        ).fetchone()
        return int(row[0])

    def _forget(self) -> None:
        self._next = None


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), COMPRESSION)
