"""The audit trail: a row per tool call, written before it runs and completed after it, and one per verification.

It is read back as values. See docs/reference/storage.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from lopen.store.database import Database
from lopen.store.sessions import SessionStore

TEST_RUNS = 20  # of which a session keeps the tests that ran
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

    def verification(self, result: VerifyResult) -> VerifyResult:
        """Record a result, as part of the call that runs; return it without secrets. One that has a number is replaced."""
        clean = replace(result, call=self._running, output=self._redact(result.output))
        body = {
            name: value for name, value in asdict(clean).items() if name not in ("number", "call", "task")
        }
        cursor = self._database.write(
            "INSERT OR REPLACE INTO verifications (seq, session, call, task, body) VALUES (?, ?, ?, ?, ?)",
            (
                clean.number or None,
                self._session,
                clean.call,
                clean.task,
                self._redact(json.dumps(body, ensure_ascii=False)),
            ),
        )
        return replace(clean, number=cursor.lastrowid or 0)

    def verified(self, tool: str, command: str, tree: str, base: str = "") -> VerifyResult | None:
        """Return the last result of a verify command on a tree, or of a check of the change from `base` to it."""
        wanted = "session=? AND body LIKE ? AND body LIKE ? ORDER BY seq DESC"
        like = (f'%"tool": "{tool}"%', f'%"tree": "{tree}"%')
        for row in _rows(self._database, wanted, self._session, *like):
            result = _result(row)
            if (result.tool, result.command, (result.found or {}).get("base", "")) == (tool, command, base):
                return result
        return None

    def tests_ran(self, tree: str, ran: Mapping[str, Any]) -> None:
        """Keep which tests ran on a tree: the session's first one and the latest `TEST_RUNS`."""
        self._database.write(
            "INSERT INTO test_runs (session, tree, body) VALUES (?, ?, ?)"
            " ON CONFLICT (session, tree) DO UPDATE SET body=excluded.body",
            (self._session, tree, self._redact(json.dumps(ran, ensure_ascii=False))),
        )
        self._database.write(
            "DELETE FROM test_runs WHERE session=?1 AND seq > (SELECT min(seq) FROM test_runs WHERE session=?1)"
            " AND seq NOT IN (SELECT seq FROM test_runs WHERE session=?1 ORDER BY seq DESC LIMIT ?2)",
            (self._session, TEST_RUNS),
        )

    def test_runs(self) -> dict[str, Mapping[str, Any]]:
        """Return which tests ran, by tree, the first run first."""
        sql = "SELECT tree, body FROM test_runs WHERE session=? ORDER BY seq"
        rows = self._database.connection.execute(sql, (self._session,))
        return {row["tree"]: json.loads(row["body"]) for row in rows}


def recorded_call(store: SessionStore, session: str, number: int) -> CallRecord | None:
    """Return a call of the session by its number; None if there is none any more."""
    sql = "SELECT * FROM tool_calls WHERE session=? AND seq=?"
    row = store.database.connection.execute(sql, (session, number)).fetchone()
    return None if row is None else _call(row)


def _call(row: Mapping[str, Any]) -> CallRecord:
    own = {name: value for name, value in dict(row).items() if name != "session"}
    return CallRecord(**own | {"started_at": datetime.fromisoformat(row["started_at"])})


SURVEY = "existing_tests"  # a run of the tests before the work
PREFIX = "verification-"  # of the number, where a person names one


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """The files that a command left in its room. Only `locked`, the lock files, are in the work tree now.

    `changed` are files of the tree, `added` others that neither git ignores nor a cache holds.
    """

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The result of a verify command, or of a check that lopen makes with the test command.

    `tree` is the work tree's id on which it ran, with verify-setup after it. `output` lacks its middle where it is long; as
    stored it has no secrets. `exit_code` is None where the command did not end by itself. `call` is the number of the tool
    call that ran it, None where lopen did. `found` are a check's findings, with the tree `base` that the change began from.
    `installed_on` is the tree on which verify-setup had run, "" where nothing was installed.
    """

    tool: str
    command: str
    passed: bool
    exit_code: int | None
    output: str
    tree: str
    seconds: float = 0.0
    hint: str = ""
    left: LeftFiles = LeftFiles()
    at: str = ""
    number: int = 0
    call: int | None = None
    task: str | None = None
    found: Mapping[str, Any] | None = None
    installed_on: str = ""

    @property
    def name(self) -> str:
        """The name by which a person refers to it."""
        return f"{PREFIX}{self.number}"

    @property
    def result(self) -> str:
        """The result in a few words."""
        if self.found is not None:  # of the mutants, or of earlier tests, and no command's
            return self.output.partition("\n")[0]
        if self.passed:
            return "passed"
        return f"failed ({'no exit code' if self.exit_code is None else f'exit {self.exit_code}'})"

    def excerpt(self, count: int = 10) -> str:
        """Return the command and the last lines of its output, without empty ones."""
        last = [line for line in self.output.splitlines() if line.strip()][-count:]
        return "\n".join(
            [f"{self.name} {self.tool} `{self.command}`: {self.result}", *(f"  | {x}" for x in last)]
        )


def verifications(store: SessionStore, session: str) -> Iterator[VerifyResult]:
    """Yield the session's verifications that are still there, in order."""
    return (_result(row) for row in list(_rows(store.database, "session=? ORDER BY seq", session)))


def last_failure(database: Database, session: str) -> VerifyResult | None:
    """Return the newest failed verification whose command has not passed since."""
    passed: set[str] = set()
    for row in _rows(database, "session=? ORDER BY seq DESC LIMIT 20", session):
        result = _result(row)
        if result.passed:
            passed.add(result.tool)
        elif result.tool not in {*passed, SURVEY}:
            return result
    return None


def _rows(database: Database, condition: str, *values: object) -> Iterator[Mapping[str, Any]]:
    return database.connection.execute(f"SELECT * FROM verifications WHERE {condition}", values)  # noqa: S608 - fixed words only


def _result(row: Mapping[str, Any]) -> VerifyResult:
    body = json.loads(row["body"])
    left = LeftFiles(**{kind: tuple(paths) for kind, paths in body.pop("left").items()})
    return VerifyResult(**body, left=left, number=row["seq"], call=row["call"], task=row["task"])
