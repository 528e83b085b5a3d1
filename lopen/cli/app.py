"""The root command: a table of commands, each loaded only when it is the one that was asked for.

`lopen --help` reads the table alone. A command of the table whose module does not exist is not listed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from lopen import __version__
from lopen.base.errors import ExitCode
from lopen.cli.parameters import Invocation, ProjectOption, VerboseOption


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command: where it lives (`module:attribute`, a function or a `Typer`), and one line on it."""

    name: str
    place: str
    help: str
    group: str


BUILD, DECIDE, LOOK, GUARD, SET_UP = (
    "Build",
    "Decide (a person's commands)",
    "Look",
    "Guard",
    "Set up",
)

COMMANDS: tuple[CommandEntry, ...] = (
    CommandEntry(
        "init", "lopen.cli.commands.init:init", "Lay out a project, with verify commands detected", SET_UP
    ),
    CommandEntry(
        "doctor",
        "lopen.cli.commands.doctor:doctor",
        "What works here, proved by trying, and how to mend it",
        SET_UP,
    ),
    CommandEntry(
        "config", "lopen.cli.commands.config:app", "Every setting with the source it came from", SET_UP
    ),
    CommandEntry(
        "demo",
        "lopen.cli.commands.demo:demo",
        "Build the bundled example from a recording, without a key",
        SET_UP,
    ),
    CommandEntry(
        "spec", "lopen.cli.commands.run:spec", "Draft or refine a specification in conversation", BUILD
    ),
    CommandEntry("check", "lopen.cli.commands.check:check", "Validate specifications", BUILD),
    CommandEntry(
        "run",
        "lopen.cli.commands.run:run",
        "The whole workflow: to the gate, and from the gate to the end",
        BUILD,
    ),
    CommandEntry(
        "resume", "lopen.cli.commands.run:resume", "Go on after an interruption, a pause or a crash", BUILD
    ),
    CommandEntry("plan", "lopen.cli.commands.run:plan", "Only the planning phase", BUILD),
    CommandEntry("build", "lopen.cli.commands.run:build", "Only the building phase", BUILD),
    CommandEntry(
        "approve", "lopen.cli.commands.approve:approve", "Open the gate for a specification", DECIDE
    ),
    CommandEntry("answer", "lopen.cli.commands.answer:answer", "Answer the model's pending question", DECIDE),
    CommandEntry(
        "confirm", "lopen.cli.commands.confirm:confirm", "Answer a pause that asks for confirmation", DECIDE
    ),
    CommandEntry("skip", "lopen.cli.commands.skip:skip", "Give a task up; its criteria stay open", DECIDE),
    CommandEntry(
        "revert", "lopen.cli.commands.revert:revert", "Back to the last completed task's commit", DECIDE
    ),
    CommandEntry(
        "modules", "lopen.cli.commands.modules:modules", "Every module, its state, progress and cost", LOOK
    ),
    CommandEntry(
        "status",
        "lopen.cli.commands.status:status",
        "Task tree, step, budget, and what waits for a person",
        LOOK,
    ),
    CommandEntry("log", "lopen.cli.commands.log:log", "What happened, in order", LOOK),
    CommandEntry(
        "session",
        "lopen.cli.commands.session:app",
        "List, show, resume, delete, prune or export sessions",
        LOOK,
    ),
    CommandEntry(
        "replay", "lopen.cli.commands.replay:replay", "Rebuild a session in a scratch clone and compare", LOOK
    ),
    CommandEntry("serve", "lopen.cli.serve:serve", "REST API, dashboard and metrics", LOOK),
    CommandEntry("diagram", "lopen.cli.commands.diagram:diagram", "The state machine as Mermaid", LOOK),
    CommandEntry("budget", "lopen.cli.commands.budget:app", "Show, extend or reset budgets", GUARD),
    CommandEntry("circuit", "lopen.cli.commands.circuit:app", "Show, acknowledge or reset circuits", GUARD),
    CommandEntry("alerts", "lopen.cli.commands.alerts:app", "Show or acknowledge alerts", GUARD),
    CommandEntry(
        "memory", "lopen.cli.commands.memory:app", "What lopen keeps on disk, and cleaning it", GUARD
    ),
    CommandEntry(
        "hooks", "lopen.cli.commands.hooks:app", "Guard Claude Code sessions with the same limits", GUARD
    ),
)  # `lopen hook` never comes here: see `lopen.__main__`


def listed() -> list[CommandEntry]:
    """The commands that exist."""
    return [entry for entry in COMMANDS if find_spec(entry.place.partition(":")[0]) is not None]


def _loaded(entry: CommandEntry) -> Any:
    """The real command behind an entry."""
    module, _, attribute = entry.place.partition(":")
    found: typer.Typer | Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = get_command(found)
        group.name = entry.name
        return group
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(entry.name, short_help=entry.help)(found)
    return get_command(single)


class LazyCommand(TyperCommand):
    """Stands in the listing for a command; becomes the real one when it is called."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.name, short_help=entry.help, help=entry.help, rich_markup_mode=None)
        self.entry = entry

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """The real command's context: everything after this point is its own."""
        return _loaded(self.entry).make_context(*args, **extra)


class LazyGroup(TyperGroup):
    """The root: its commands are the table's."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = {entry.name: LazyCommand(entry) for entry in listed()}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section a group, in the order of the work."""
        for group in (SET_UP, BUILD, DECIDE, LOOK, GUARD):
            rows = [(e.name, e.help) for e in COMMANDS if e.group == group and e.name in self.commands]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


app = typer.Typer(
    name="lopen",
    cls=LazyGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

VersionOption = Annotated[bool, typer.Option("--version", help="Print the version.")]


@app.callback()
def root(
    ctx: typer.Context,
    project: ProjectOption = None,
    verbose: VerboseOption = False,
    version: VersionOption = False,
) -> None:
    """Builds a module from its specification: seven steps, one human gate, verified commits."""
    invocation = ctx.ensure_object(Invocation)
    invocation.project = project
    invocation.verbose = verbose or invocation.verbose
    if version:
        typer.echo(f"lopen {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def run(arguments: Sequence[str], invocation: Invocation) -> ExitCode:
    """Run one command line; failures are raised, never printed."""
    result = get_command(app).main(list(arguments), prog_name="lopen", standalone_mode=False, obj=invocation)
    return ExitCode(result or 0)
