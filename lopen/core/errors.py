"""Errors with a message for the user, and their exit codes.

lopen has three kinds of failure. A message to the model is a tool's error result, not an exception. Of a `LopenError`
the user reads the message and the hint. Any other exception is a bug and propagates. The adapter that imports a
library translates the library's exceptions.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from enum import IntEnum
from urllib.parse import unquote, urlsplit


class ExitCode(IntEnum):
    """Process exit codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PERSON_NEEDED = 3
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class LopenError(Exception):
    """A failure. `message` describes it, `hint` names the next action."""

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class StorageError(LopenError):
    """lopen cannot read or write its state; the message contains the path and the system's error."""


class StoreUnreachable(LopenError):
    """The store of budgets and circuits does not answer. The limits allow the work and catch up later."""


class WrongUsage(LopenError):
    """The command line or the configuration is not valid."""

    exit_code = ExitCode.USAGE


class PersonNeeded(LopenError):
    """The work is saved and continues when a person enters `command` (exit code 3; the last line names it)."""

    exit_code = ExitCode.PERSON_NEEDED

    def __init__(self, message: str, *, command: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.command = command


class Stopped(BaseException):
    """SIGINT, SIGTERM or SIGHUP. It unwinds the stack, which saves the work; `except Exception` does not catch it."""

    def __init__(self, exit_code: ExitCode) -> None:
        super().__init__(f"stopped ({int(exit_code)})")
        self.exit_code = exit_code


def did_you_mean(wanted: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint for an unknown name: the most similar known name, else `otherwise`."""
    from difflib import get_close_matches  # only where something failed

    plain = {name.casefold(): name for name in known}
    near = get_close_matches(wanted.casefold(), plain, n=1, cutoff=0.7)
    return f"did you mean {plain[near[0]]}?" if near else otherwise


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the lopen that runs, from a checkout or a wheel (PEP 610)."""
    from importlib import metadata  # only where an extra is missing

    told = (found.read_text("direct_url.json") for found in metadata.distributions(name="lopen"))
    source = json.loads(next(filter(None, told), "{}"))
    address = urlsplit(str(source.get("url", "")))
    origin = unquote(address.path) if address.scheme == "file" else "lopen"
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    return f"{shlex.quote(sys.executable)} -m pip install {editable}{shlex.quote(f'{origin}[{extra}]')}"
