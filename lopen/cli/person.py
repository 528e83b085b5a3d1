"""A person's commands: refused anywhere under a lopen session's own processes (contract §2, Gate).

Marks tell: the variable that every command of a session carries, the marker inside the sandbox, and, where both
were taken away, an ancestor process that is lopen itself or holds a module's lock.
"""

from __future__ import annotations

from pathlib import Path

from lopen.errors import LopenError
from lopen.sandbox.ancestry import below_lopen, descends_from, under_session


class NotAPerson(LopenError):
    """A person's command was given by a session's own processes."""


def require_person(command: str, root: Path | None = None) -> None:
    """Refuse `lopen <command>` where a session runs it; `root` is the project whose sessions are looked for."""
    holders = _holders(root) if root is not None else {}
    held = descends_from(holders, holders) is not None
    if under_session() is not None or held or below_lopen():
        raise NotAPerson(
            f"`lopen {command}` is a person's command; it was given from inside a lopen session",
            hint="give it yourself, in a terminal of your own",
        )


def _holders(root: Path) -> dict[int, int]:
    """Process → when it started, of all who hold or held a lock here; without the time a number means nobody."""
    from lopen.storage.lock import holder

    folder = root / ".lopen" / "locks"
    found = (
        (who.get("pid"), who.get("started"))
        for path in folder.glob("*.holder")
        for who in [holder(folder, path.stem)]
    )
    return {pid: started for pid, started in found if isinstance(pid, int) and isinstance(started, int)}
