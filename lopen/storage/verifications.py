"""The verifications of a session with their output: each run of a verify command, by the model's call or by lopen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from lopen.storage.database import Database
from lopen.storage.segments import moved_rows
from lopen.storage.sessions import SessionStore

PREFIX = "verification-"  # of the number, where a person names one


@dataclass(frozen=True, slots=True)
class VerificationRecord:
    """A run of a verify command. `call` is the number of the tool call that ran it, None where lopen did.

    `tree` is the work tree's id after it; `output` has no secrets, and lacks its middle where it is long. `mutation` is
    what a run on mutants found, with the tree that it began from.
    """

    number: int
    call: int | None
    task: str | None
    tool: str
    command: str
    passed: bool
    exit_code: int | None
    seconds: float
    tree: str
    at: str
    hint: str
    output: str
    mutation: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The name by which a person refers to it."""
        return f"{PREFIX}{self.number}"

    @property
    def result(self) -> str:
        """The result in a few words."""
        if self.passed:
            return "passed"
        return f"failed ({'no exit code' if self.exit_code is None else f'exit {self.exit_code}'})"

    def excerpt(self, count: int = 10) -> str:
        """Return what ran and the last lines of what it printed, without empty ones."""
        last = [line for line in self.output.splitlines() if line.strip()][-count:]
        return "\n".join(
            [f"{self.name} {self.tool} `{self.command}`: {self.result}", *(f"  | {x}" for x in last)]
        )


def verifications(store: SessionStore, session: str) -> Iterator[VerificationRecord]:
    """Yield the session's verifications in order, including those that were moved out of the database."""
    # The database first: a row that is moved meanwhile is in its segment before it is deleted here.
    current = [dict(row) for row in _rows(store.database, "session=? ORDER BY seq", session)]
    first = current[0]["seq"] if current else None
    older = moved_rows(store.archives, session, "verifications", before=first)
    return (_record(row) for row in chain(older, current))


def last_failure(database: Database, session: str) -> VerificationRecord | None:
    """Return the newest failed verification whose command has not passed since."""
    passed: set[str] = set()
    for row in _rows(database, "session=? ORDER BY seq DESC LIMIT 20", session):
        record = _record(row)
        if record.passed:
            passed.add(record.tool)
        elif record.tool not in passed:
            return record
    return None


def mutation_checked(
    database: Database, session: str, base: str, tree: str, command: str
) -> Mapping[str, Any] | None:
    """Return what the command found on mutants of the change from `base` to `tree`, None if it did not run on them."""
    for row in _rows(database, "session=? AND body LIKE '%\"mutation\": {%' ORDER BY seq DESC", session):
        record = _record(row)
        found = record.mutation
        if found is not None and (found["base"], record.tree, record.command) == (base, tree, command):
            return found
    return None


def _rows(database: Database, condition: str, *values: object) -> Iterator[Mapping[str, Any]]:
    return database.connection.execute(f"SELECT * FROM verifications WHERE {condition}", values)  # noqa: S608 - fixed words only


def _record(row: Mapping[str, Any]) -> VerificationRecord:
    return VerificationRecord(row["seq"], row["call"], row["task"], **json.loads(row["body"]))
