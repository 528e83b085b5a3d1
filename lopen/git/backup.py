"""Going back without losing anything: the old head and uncommitted work are kept under a backup reference."""

from __future__ import annotations

import re

from lopen.git.refs import References

BACKUPS = "refs/lopen/backup/"
_TRIES = 20

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


def folder_of(session_id: str) -> str:
    """Where a session's backups lie: `refs/lopen/backup/<session>/`."""
    return f"{BACKUPS}{_UNFIT.sub('-', session_id).strip('-') or 'session'}/"


def next_name(references: References, session_id: str) -> str:
    """The first free `refs/lopen/backup/<session>/<n>`, counted from 1."""
    prefix = folder_of(session_id)
    taken = [name.removeprefix(prefix) for name in references.names(prefix)]
    return f"{prefix}{max((int(n) for n in taken if n.isdecimal()), default=0) + 1}"
