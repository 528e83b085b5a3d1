"""What the shell offers for a half-typed module, session or task. Standard library only.

Completion never says why it found nothing, and never writes: the database is opened read-only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lopen.application.command_context import find_root
from lopen.cli.command import Invocation

Offer = list[tuple[str, str]]


def modules(ctx: typer.Context, incomplete: str) -> Offer:
    """Modules that have a specification."""
    found = sorted(p.parent.name for p in (_root(ctx) / "specs").glob("*/SPECIFICATION.md"))
    return _offer([(name, "") for name in found], incomplete)


def sessions(ctx: typer.Context, incomplete: str) -> Offer:
    """Sessions, the latest first, with module and status."""
    query = "SELECT id, module || ', ' || status FROM sessions ORDER BY created_at DESC LIMIT 200"
    return _offer(_rows(_root(ctx), query), incomplete)


def tasks(ctx: typer.Context, incomplete: str) -> Offer:
    """Tasks of unfinished sessions, with their state."""
    query = (
        "SELECT tasks.id, tasks.state FROM tasks JOIN sessions ON sessions.id = tasks.session "
        "WHERE sessions.status != 'complete' ORDER BY sessions.created_at DESC, tasks.position LIMIT 500"
    )
    return _offer(_rows(_root(ctx), query), incomplete)


ModuleArgument = Annotated[str, typer.Argument(help="The module: its folder's name.", autocompletion=modules)]
OptionalModule = Annotated[
    str | None, typer.Argument(help="The module; all of them without.", autocompletion=modules)
]
StandingModule = Annotated[
    str | None,
    typer.Argument(
        help="The module; without, all that is unfinished, or the newest.", autocompletion=modules
    ),
]
LatestModule = Annotated[
    str | None, typer.Argument(help="The module; that of the latest session without.", autocompletion=modules)
]
SessionArgument = Annotated[str, typer.Argument(help="The session's id.", autocompletion=sessions)]
OptionalSession = Annotated[
    str | None, typer.Argument(help="The session; the latest without.", autocompletion=sessions)
]
TaskArgument = Annotated[str, typer.Argument(help="The task's id.", autocompletion=tasks)]


def _root(ctx: typer.Context) -> Path:
    given = ctx.params.get("project") or (ctx.parent.params.get("project") if ctx.parent else None)
    invocation = ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()
    try:
        return find_root(Path(given or invocation.project or Path.cwd()))
    except FileNotFoundError:  # the current folder is gone
        return Path(os.devnull)


def _rows(root: Path, query: str) -> Sequence[tuple[str, str]]:
    uri = (root / ".lopen" / "state.db").as_uri() + "?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=0.2)) as connection:
            return [(str(name), str(note)) for name, note in connection.execute(query)]
    except sqlite3.Error:  # none yet, locked, or from another version: nothing to offer
        return []


def _offer(found: Sequence[tuple[str, str]], incomplete: str) -> Offer:
    return [(name, note) for name, note in found if name.startswith(incomplete) and name.isprintable()]
