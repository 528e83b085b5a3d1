"""Text from outside made safe for one line of a message, and the commands that a person answers with."""

from __future__ import annotations

import shlex
import unicodedata

_ELLIPSIS = "…"
_SCANNED = 8  # read at most this many times the limit


def one_line(text: str, limit: int = 160) -> str:
    """Return `text` on one line of at most `limit` characters; control and format characters become blanks."""
    if len(text) <= limit and text.isprintable():  # the usual case, and much faster
        return " ".join(text.split())
    head = text[: limit * _SCANNED]
    safe = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"} else c for c in head)
    line = " ".join(safe.split())
    return line if len(line) <= limit and len(head) == len(text) else line[: limit - 1] + _ELLIPSIS


def times(count: int) -> str:
    """Return a count in words: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def listing(names: tuple[str, ...], limit: int = 5) -> str:
    """Return the first `limit` names, and how many more there are."""
    shown = ", ".join(one_line(n, 80) for n in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def confirm_command(session: str) -> str:
    """Return the command that confirms a pause."""
    return f"lopen confirm {shlex.quote(session)}"


def extend_command(module: str, tokens: int) -> str:
    """Return the command that grants a module `tokens` more, or resets its budget where `tokens` is 0."""
    budget = shlex.quote(f"module:{module}")
    if not tokens:
        return f"lopen budget reset {budget}"
    return f"lopen budget extend {budget} --tokens {tokens}"


def more_requests_command() -> str:
    """Return the command that raises the limit of requests; an extension grants tokens only."""
    return "lopen config set budget.premium_request_budget N"


def ack_command(circuit: str) -> str:
    """Return the command that closes a circuit."""
    return f"lopen circuit ack {shlex.quote(circuit)}"


def skip_command(task_id: str) -> str:
    """Return the command that skips a task."""
    return f"lopen skip {shlex.quote(task_id)}"


def plan_command(module: str) -> str:
    """Return the command that plans a module again."""
    return f"lopen plan {shlex.quote(module)} --new"


def resume_command(session: str) -> str:
    """Return the command that resumes a session."""
    return f"lopen resume {shlex.quote(session)}"
