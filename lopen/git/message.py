"""Commit messages: the subject and the trailers (docs/reference/git.md). Pure.

A name comes from a model or a person and is folded to one line before it goes in, so it can neither end the
subject nor forge a trailer.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Convention = Literal["conventional", "plain"]

MAX_NAME_CHARS = 72
SESSION = "Lopen-Session"
TASK = "Lopen-Task"
VERDICT = "Lopen-Verdict"

_UNSEEN = frozenset(
    {"Cc", "Cf", "Cs", "Zl", "Zp"}
)  # control, format (bidirectional too), surrogate, separators


def folded(name: str) -> str:
    """`name` on one line, without characters that are not seen, at most 72 characters."""
    seen = "".join(" " if unicodedata.category(char) in _UNSEEN else char for char in name)
    line = re.sub(r"\s+", " ", seen).strip()
    return line if len(line) <= MAX_NAME_CHARS else line[: MAX_NAME_CHARS - 1].rstrip() + "…"


def completion(
    *,
    module: str,
    task: str,
    component: str,
    session: str,
    task_id: str,
    verdict: str,
    convention: Convention = "conventional",
) -> str:
    """The message of a completed task's commit. `verdict` reads `passed (<confidence>)`."""
    done = f"complete {folded(task)} in {folded(component)}"
    subject = (
        f"feat({folded(module)}): {done}" if convention == "conventional" else done[0].upper() + done[1:]
    )
    return _with_trailers(subject, {SESSION: session, TASK: task_id, VERDICT: verdict})


def approval(*, module: str, session: str, convention: Convention = "conventional") -> str:
    """The message of a branch's first commit, which carries the specification and its research."""
    name = folded(module)
    plain = f"Approve the specification of {name}"
    subject = f"docs({name}): approve specification" if convention == "conventional" else plain
    return _with_trailers(subject, {SESSION: session})


def with_trailers_of(original: str, rewritten: str) -> str:
    """`rewritten` (a hook's work on `original`) with those of lopen's trailers that it lost."""
    lost = [
        line
        for line in original.splitlines()
        if line.startswith((f"{SESSION}: ", f"{TASK}: ", f"{VERDICT}: "))
        and line not in rewritten.splitlines()
    ]
    if not lost:
        return rewritten
    return rewritten.rstrip() + "\n\n" + "\n".join(lost) + "\n"


def _with_trailers(subject: str, trailers: dict[str, str]) -> str:
    lines = "".join(f"{name}: {folded(value)}\n" for name, value in trailers.items())
    return f"{subject}\n\n{lines}"
