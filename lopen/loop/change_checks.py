"""Checks of files that a model wrote. One that fails on them is an error in the work, not an internal error of lopen:
otherwise every resume of the session would end in the same place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from lopen.base.errors import LopenError
from lopen.oracle.verdict import Finding

T = TypeVar("T")


def attempted(what: str, check: Callable[[], T]) -> tuple[T | None, Finding | None]:
    """Return what `check` returns, or the finding that it failed. Failures of lopen itself propagate."""
    try:
        return check(), None
    except (LopenError, OSError, sqlite3.Error):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a text can cause
        message = (
            f"lopen could not check the change for {what} ({type(error).__name__}): a changed file could not be read;"
            " write it in a usual form"
        )
        return None, Finding("error", message)


def findings_of(checks: Mapping[str, Callable[[], Iterable[Finding]]]) -> tuple[Finding, ...]:
    """Return the findings of the checks, by what each looks for, and those of checks that failed."""
    found: list[Finding] = []
    for what, check in checks.items():
        results, failure = attempted(what, lambda check=check: list(check()))  # type: ignore[misc]
        found += [failure] if failure else results or ()
    return tuple(found)
