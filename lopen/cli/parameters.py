"""Arguments and options that several commands share, with shell completion. Imports no heavy library.

Completion writes nothing and reports no failure: the database is opened read-only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lopen.application.command_context import find_root
from lopen.core.money import MOST_USD

Candidates = list[tuple[str, str]]


ProjectOption = Annotated[
    Path | None, typer.Option("-C", "--project", metavar="DIR", help="Work on the project in DIR.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show more detail, and a traceback on an internal error.")
]


@dataclass
class Invocation:
    """The shared options, wherever on the command line they are given."""

    project: Path | None = None
    json: bool = False
    verbose: bool = False


def modules(ctx: typer.Context, incomplete: str) -> Candidates:
    """Complete modules that have a specification."""
    found = sorted(p.parent.name for p in (_root(ctx) / "specs").glob("*/SPECIFICATION.md"))
    return _matching([(name, "") for name in found], incomplete)


def sessions(ctx: typer.Context, incomplete: str) -> Candidates:
    """Complete sessions, newest first, with module and status."""
    query = "SELECT id, module || ', ' || status FROM sessions ORDER BY created_at DESC LIMIT 200"
    return _matching(_rows(_root(ctx), query), incomplete)


def tasks(ctx: typer.Context, incomplete: str) -> Candidates:
    """Complete tasks of unfinished sessions, with their state."""
    from lopen.store.database import RECORDED_TASKS

    query = (
        f"SELECT t.id, t.state FROM {RECORDED_TASKS} t JOIN sessions ON sessions.id = t.session "  # noqa: S608 - fixed words only
        "WHERE status != 'complete' ORDER BY created_at DESC LIMIT 500"
    )
    return _matching(_rows(_root(ctx), query), incomplete)


def shown(ctx: typer.Context, incomplete: str) -> Candidates:
    """Complete everything that `lopen show` takes: tasks, criteria, verdicts and verifications, newest sessions first."""
    from lopen.store.database import RECORDED_TASKS

    queries = (
        f"SELECT t.id, t.state FROM {RECORDED_TASKS} t JOIN sessions ON sessions.id = t.session "  # noqa: S608 - fixed words only
        "ORDER BY created_at DESC LIMIT 500",
        "SELECT id, text FROM criteria",
        "SELECT 'verdict-' || substr(evidence_hash, 1, 8), subject FROM verdicts ORDER BY rowid DESC LIMIT 200",
        "SELECT 'verification-' || seq, tool FROM verifications ORDER BY seq DESC LIMIT 200",
    )
    return [found for query in queries for found in _matching(_rows(_root(ctx), query), incomplete)]


ModuleArgument = Annotated[
    str, typer.Argument(help="Module: the name of its folder in specs/.", autocompletion=modules)
]
SeveralModules = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODULE...", help="Modules: the names of their folders in specs/.", autocompletion=modules
    ),
]
OptionalModule = Annotated[
    str | None, typer.Argument(help="Module to check, or a path (default: all).", autocompletion=modules)
]
StatusArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE|SESSION",
        help="Module for its latest session, or session id (default: all unfinished ones, else the latest).",
        autocompletion=modules,
    ),
]
LatestModule = Annotated[
    str | None, typer.Argument(help="Module (default: that of the latest session).", autocompletion=modules)
]
SessionArgument = Annotated[
    str, typer.Argument(help="Session id, or module for its latest.", autocompletion=sessions)
]
OptionalSession = Annotated[
    str | None,
    typer.Argument(
        help="Session id, or module for its latest (default: the latest).", autocompletion=sessions
    ),
]
TaskArgument = Annotated[str, typer.Argument(help="Task id.", autocompletion=tasks)]


NO_REASON = "no reason given"
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Reason, stored and reported.", show_default=False)
]
QuietOption = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print only alerts, questions and the result.")
]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="Print no colours (also NO_COLOR).")]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Modules that are built at the same time (default: half the cores, at least 2).",
    ),
]
SandboxOption = Annotated[
    str,
    typer.Option(
        "--sandbox",
        metavar="MODE",
        help="Sandbox for commands: auto, bwrap, landlock or none.",
    ),
]
NetworkOption = Annotated[bool, typer.Option("--allow-network", help="Allow commands to use the network.")]

# Field of `ResumeOptions` and `RunOptions` → its option, which `lopen.cli.command` adds to a command
OPTIONS: dict[str, Any] = {
    "prompt": Annotated[
        str, typer.Option("-p", "--prompt", metavar="TEXT", help="Request to the model, in your own words.")
    ],
    "model": Annotated[
        str,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Model for every phase, or replay:FILE.",
        ),
    ],
    "unattended": Annotated[
        bool, typer.Option("--unattended", help="Answer the model's questions with their defaults.")
    ],
    "max_iterations": Annotated[
        int | None,
        typer.Option(
            "--max-iterations", min=1, metavar="N", help="Maximum number of iterations of this session."
        ),
    ],
    "max_cost": Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            min=0,
            max=MOST_USD,
            metavar="USD",
            help="Maximum cost of the session in USD, judge included (0: no limit).",
        ),
    ],
    "quiet": QuietOption,
    "no_color": NoColorOption,
    "sandbox": SandboxOption,
    "allow_network": NetworkOption,
    "record": Annotated[
        bool | None, typer.Option("--record/--no-record", help="Record the model exchanges.")
    ],
    "group": Annotated[str, typer.Option("--group", hidden=True)],
    "new": Annotated[
        bool, typer.Option("--new", help="Start a new session instead of resuming an unfinished one.")
    ],
}


def _root(ctx: typer.Context) -> Path:
    given = ctx.params.get("project") or (ctx.parent.params.get("project") if ctx.parent else None)
    invocation = ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()
    try:
        return find_root(Path(given or invocation.project or Path.cwd()))
    except FileNotFoundError:  # the current folder does not exist any more
        return Path(os.devnull)


def _rows(root: Path, query: str) -> Sequence[tuple[str, str]]:
    import sqlite3  # no command but completion reads the database this way

    uri = (root / ".lopen" / "state.db").as_uri() + "?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=0.2)) as connection:
            return [(str(name), str(note)) for name, note in connection.execute(query)]
    except sqlite3.Error:  # missing, locked, or from another version
        return []


def _matching(found: Sequence[tuple[str, str]], incomplete: str) -> Candidates:
    return [(name, note) for name, note in found if name.startswith(incomplete) and name.isprintable()]
