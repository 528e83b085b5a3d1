"""Foreign text in lopen's own sentences: one line, inert, short; and the commands that a person may answer with."""

from __future__ import annotations

import shlex
import unicodedata

_ELLIPSIS = "…"
_SCANNED = 8  # input beyond this many times the limit is not even looked at


def one_line(text: str, limit: int = 160) -> str:
    """`text` on one line of at most `limit` characters; control and formatting characters become blanks."""
    if len(text) <= limit and text.isprintable():  # nearly always, and much cheaper
        return " ".join(text.split())
    head = text[: limit * _SCANNED]
    inert = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"} else c for c in head)
    line = " ".join(inert.split())
    return line if len(line) <= limit and len(head) == len(text) else line[: limit - 1] + _ELLIPSIS


def times(count: int) -> str:
    """A count in words: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def listing(names: tuple[str, ...], limit: int = 5) -> str:
    """The first `limit` names, and how many more there are."""
    shown = ", ".join(one_line(n, 80) for n in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def confirm_command(session: str) -> str:
    """What lets a pause for confirmation go on."""
    return f"lopen confirm {shlex.quote(session)}"


def extend_command(module: str, tokens: int) -> str:
    """What gives a module `tokens` more; 0 where counting anew is what helps."""
    budget = shlex.quote(f"module:{module}")
    if not tokens:
        return f"lopen budget reset {budget}"
    return f"lopen budget extend {budget} --tokens {tokens} --reason TEXT"


def more_requests_command() -> str:
    """What gives a module more requests: extensions are in tokens, so the limit itself is raised."""
    return "lopen config set budget.premium_request_budget N"


def ack_command(circuit: str) -> str:
    """What closes a circuit that waits for a person."""
    return f"lopen circuit ack {shlex.quote(circuit)}"


def skip_command(task_id: str) -> str:
    """What gives a task up."""
    return f"lopen skip {shlex.quote(task_id)} --reason TEXT"


def plan_command(module: str) -> str:
    """What plans a module anew."""
    return f"lopen plan {shlex.quote(module)} --new"


def resume_command(session: str) -> str:
    """What goes on with a session."""
    return f"lopen resume {shlex.quote(session)}"
