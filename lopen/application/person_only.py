"""A person's commands: refused under a lopen session's processes, and under Claude Code's.

Marks tell: the variable that the model's commands carry (trusted ones, such as verify commands, do not), the marker
inside the sandbox, and, without both, an ancestor process that is lopen itself or holds a module's lock. Of Claude
Code: the variables that it gives to what it runs, and an ancestor that is `claude`.

See docs/reference/workflow.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lopen.core.errors import LopenError
from lopen.sandbox.ancestry import ancestor_commands, enclosing_session, nearest_ancestor_in, runs_below_lopen
from lopen.store.folder import is_locked, lock_holder

# Claude Code sets these for every command that it runs; its other variables are a person's settings too.
CLAUDE_VARIABLES = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
_RUNTIMES = ("node", "nodejs", "bun", "deno")


class NotAPerson(LopenError):
    """A process of a session ran a command that only a person may run."""


def require_person(command: str, root: Path | None = None) -> None:
    """Raise `NotAPerson` if a session runs `lopen <command>`; `root` is the project whose sessions are checked."""
    holders = _holders(root) if root is not None else {}
    held = nearest_ancestor_in(holders, holders) is not None
    if enclosing_session() is not None or held or runs_below_lopen():
        raise NotAPerson(
            f"`lopen {command}` is a person's command and cannot run inside a lopen session",
            hint="run it yourself in your own terminal",
        )
    if trace := under_claude_code():
        raise NotAPerson(
            f"`lopen {command}` is a person's command and cannot run inside a Claude Code session ({trace})",
            hint="run it yourself in a terminal that Claude Code did not start",
        )


def require_outside_session(command: str, root: Path) -> None:
    """Raise `NotAPerson` if a process of a session that works in this project runs `lopen <command>`."""
    if not is_locked(root):
        return
    holders = _drivers(root)
    if enclosing_session() is not None or nearest_ancestor_in(holders, holders) is not None:
        raise NotAPerson(
            f"`lopen {command}` cannot run inside the lopen session that works on this project",
            hint="the session continues by itself; run other commands of lopen in your own terminal",
        )


def under_claude_code(environ: Mapping[str, str] = os.environ) -> str:
    """Return the evidence that a Claude Code session runs this process; "" if there is none."""
    name = next((name for name in CLAUDE_VARIABLES if environ.get(name)), "")
    if name:
        return f"{name} is set"
    return "below a `claude` process" if any(_is_claude(p, a) for p, a in ancestor_commands()) else ""


def _is_claude(program: str, arguments: Sequence[str]) -> bool:
    """True if a process is Claude Code: its own binary, or a JavaScript runtime that runs its script.

    An editor, a pager or a multiplexer with that name in its arguments is not.
    """
    first = os.path.basename(arguments[0]) if arguments else ""
    if "claude" in (first, os.path.basename(program)) or "/claude/versions/" in program:
        return True
    runtime = os.path.basename(program) or first
    if not runtime.startswith(_RUNTIMES):
        return False
    script = next((a for a in arguments[1:] if not a.startswith("-")), "")
    return os.path.basename(script) == "claude" or "/claude-code/" in script


def _drivers(root: Path) -> dict[int, int]:
    """Process → when it started, of all who hold a module's lock now: a server, or who starts a run apart, held one once."""
    return _started(root, "module-*.holder", released=False)


def _holders(root: Path) -> dict[int, int]:
    """Process → when it started, of all who hold or held a lock here; without the time a number means nobody."""
    return _started(root, "*.holder", released=True)


def _started(root: Path, pattern: str, *, released: bool) -> dict[int, int]:
    folder = root / ".lopen" / "locks"
    found = (
        (who.get("pid"), who.get("started"))
        for path in folder.glob(pattern)
        for who in [lock_holder(folder, path.stem)]
        if released or not who.get("released")
    )
    return {pid: started for pid, started in found if isinstance(pid, int) and isinstance(started, int)}
