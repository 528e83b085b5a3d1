"""Checks of files that a model wrote. A check that fails does not end the session, which would fail so on every resume.

The traceback is kept in `.lopen/logs`. A file that makes a check fail by itself is an error that names it. Where no file
does, lopen is at fault, and the judge gets a warning.
"""

from __future__ import annotations

import os
import sqlite3
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from lopen.core.errors import LopenError
from lopen.core.files import store_text
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.store.folder import state_folder
from lopen.verification.findings import Finding
from lopen.verification.test_files import FileChange

T = TypeVar("T")
OfOne = Callable[[FileChange], object]
ONE_FILE = "lopen cannot check this file for {what} ({error}): write it in a usual form"
NO_FILE = "lopen could not check the change for {what} ({error}); no changed file causes it by itself: look for that yourself"
NONE: Mapping[str, OfOne] = {}
_LOWER = (LopenError, OSError, sqlite3.Error)  # failures of lopen or the machine


@dataclass(frozen=True)
class ChangeChecks:
    """The checks of one change. `home` is the folder with `.lopen`."""

    home: Path
    changes: Sequence[FileChange]

    def attempted(
        self, what: str, check: Callable[[], T], of_one: OfOne | None = None
    ) -> tuple[T | None, tuple[Finding, ...]]:
        """Return what `check` returns, or None with the findings that it failed. Failures of lopen itself propagate.

        `of_one` is the check of one changed file.
        """
        try:
            return check(), ()
        except _LOWER:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a text can cause
            self._log(error)
            at_fault = tuple(self._alone(what, of_one)) if of_one is not None else ()
            return None, at_fault or (
                Finding("warning", NO_FILE.format(what=what, error=type(error).__name__)),
            )

    def _alone(self, what: str, of_one: OfOne) -> Iterable[Finding]:
        """Yield an error for each file that makes the check fail by itself."""
        for change in self.changes:
            try:
                of_one(change)
            except _LOWER:
                raise
            except Exception as error:  # noqa: BLE001 - as above
                yield Finding("error", ONE_FILE.format(what=what, error=type(error).__name__), change.path)

    def findings(
        self, checks: Mapping[str, Callable[[], Iterable[Finding]]], of_one: Mapping[str, OfOne] = NONE
    ) -> tuple[Finding, ...]:
        """Return the findings of the checks, by what each looks for, and those of checks that failed."""
        found: list[Finding] = []
        for what, check in checks.items():
            results, failures = self.attempted(what, lambda check=check: list(check()), of_one.get(what))  # type: ignore[misc]
            found += [*failures, *(results or ())]
        return tuple(found)

    def _log(self, error: Exception) -> None:
        """Keep the traceback without known secrets."""
        text = KnownSecrets(self.home, os.environ).redact("".join(traceback.format_exception(error)))
        with suppress(OSError, LopenError):
            name = f"check-{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.txt"
            store_text(state_folder(self.home) / "logs" / name, text)
