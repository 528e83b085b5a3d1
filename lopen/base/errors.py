"""What can go wrong in a way that a person is told about, and the exit code it carries.

Three kinds of failure exist in lopen: a message to the model (a tool's error result, no exception),
a `LopenError` (a person reads its message and its hint), and a bug (any other exception, which
propagates). Foreign exceptions are translated once, in the adapter that imports their library.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PERSON_NEEDED = 3
    INTERRUPTED = 130
    TERMINATED = 143


class LopenError(Exception):
    """Something failed. `message` says what happened, `hint` what to do next."""

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class StorageError(LopenError):
    """lopen cannot read or write its state; the message holds the path and the system's own words."""


class StoreUnreachable(LopenError):
    """The store of budgets and circuits does not answer. The limits allow the work and catch up later."""


class WrongUsage(LopenError):
    """The command line or the configuration asks for something that cannot be."""

    exit_code = ExitCode.USAGE


class PersonNeeded(LopenError):
    """Work stopped, saved, until a person gives `command` (exit 3; the last line names it)."""

    exit_code = ExitCode.PERSON_NEEDED

    def __init__(self, message: str, *, command: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.command = command


class Stopped(BaseException):
    """SIGINT or SIGTERM arrived; unwinds, saves, exits. No `except Exception` can swallow it."""

    def __init__(self, exit_code: ExitCode) -> None:
        super().__init__(f"stopped ({int(exit_code)})")
        self.exit_code = exit_code
