"""The root command: a table of commands, each loaded only when it is called.

`lopen --help` reads only the table. A command whose module is not installed is not listed.
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
from lopen.cli.examples import with_examples
from lopen.cli.parameters import Invocation, ProjectOption, VerboseOption
from lopen.core.errors import ExitCode


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command: its place (`module:attribute`, a function or a `Typer`) and a one-line description."""

    name: str
    place: str
    help: str
    group: str


BUILD, DECIDE, INSPECT, GUARD, SET_UP = (
    "Build",
    "Decide (only a person may run these)",
    "Inspect",
    "Guard",
    "Set up",
)

COMMANDS: tuple[CommandEntry, ...] = (
    CommandEntry(
        "init", "lopen.cli.commands.init:init", "Set up a project and detect its verify commands", SET_UP
    ),
    CommandEntry(
        "doctor",
        "lopen.cli.commands.doctor:doctor",
        "Try everything that lopen needs, and say how to fix it",
        SET_UP,
    ),
    CommandEntry(
        "config", "lopen.cli.commands.config:app", "Show settings with their sources, and set them", SET_UP
    ),
    CommandEntry(
        "demo",
        "lopen.cli.commands.demo:demo",
        "Build the bundled example from a recording, without an API key",
        SET_UP,
    ),
    CommandEntry(
        "spec", "lopen.cli.commands.run:spec", "Draft or refine a specification with the model", BUILD
    ),
    CommandEntry(
        "import",
        "lopen.cli.commands.import_:import_",
        "Make a specification from another tool's",
        BUILD,
    ),
    CommandEntry("check", "lopen.cli.commands.check:check", "Validate specifications", BUILD),
    CommandEntry(
        "run",
        "lopen.cli.commands.run:run",
        "Build a module: up to your approval, then to the end",
        BUILD,
    ),
    CommandEntry(
        "resume", "lopen.cli.commands.run:resume", "Continue after an interruption, a pause or a crash", BUILD
    ),
    CommandEntry(
        "attach", "lopen.cli.commands.attach:attach", "Follow a running session from any terminal", BUILD
    ),
    CommandEntry("plan", "lopen.cli.commands.run:plan", "Run only the planning phase", BUILD),
    CommandEntry("build", "lopen.cli.commands.run:build", "Run only the building phase", BUILD),
    CommandEntry(
        "approve",
        "lopen.cli.commands.approve:approve",
        "Approve a specification, so that it can be built",
        DECIDE,
    ),
    CommandEntry("answer", "lopen.cli.commands.decide:answer", "Answer the model's pending question", DECIDE),
    CommandEntry(
        "confirm",
        "lopen.cli.commands.decide:confirm",
        "Let a session continue that asks for confirmation",
        DECIDE,
    ),
    CommandEntry(
        "pause",
        "lopen.cli.commands.decide:pause",
        "Stop a running session at its next safe point",
        DECIDE,
    ),
    CommandEntry("skip", "lopen.cli.commands.decide:skip", "Skip a task; its criteria stay open", DECIDE),
    CommandEntry(
        "revert",
        "lopen.cli.commands.revert:revert",
        "Go back to the commit of the last completed task",
        DECIDE,
    ),
    CommandEntry("pr", "lopen.cli.commands.pr:pr", "Open a pull request with the report", DECIDE),
    CommandEntry(
        "merge",
        "lopen.cli.commands.merge:merge",
        "Merge a module's branch after its verify commands passed on the result",
        DECIDE,
    ),
    CommandEntry(
        "modules", "lopen.cli.commands.modules:modules", "List modules with state, progress and cost", INSPECT
    ),
    CommandEntry(
        "status",
        "lopen.cli.commands.status:status",
        "Show tasks, step, budgets, and what waits for you",
        INSPECT,
    ),
    CommandEntry(
        "show",
        "lopen.cli.commands.show:show",
        "Show a task, verdict or call with its output, diff and cost",
        INSPECT,
    ),
    CommandEntry("diff", "lopen.cli.commands.show:diff", "Show what a task or module changed", INSPECT),
    CommandEntry("log", "lopen.cli.commands.log:log", "Show what happened, in order", INSPECT),
    CommandEntry(
        "session",
        "lopen.cli.commands.session:app",
        "List, show, resume, delete, prune or export sessions",
        INSPECT,
    ),
    CommandEntry(
        "replay",
        "lopen.cli.commands.replay:replay",
        "Rebuild a session in a scratch clone and compare the result",
        INSPECT,
    ),
    CommandEntry(
        "serve", "lopen.cli.commands.serve:serve", "Serve the REST API, the dashboard and metrics", INSPECT
    ),
    CommandEntry(
        "mcp",
        "lopen.cli.commands.mcp:mcp",
        "Serve status, check, run and show to other agents over MCP",
        INSPECT,
    ),
    CommandEntry(
        "diagram", "lopen.cli.commands.diagram:diagram", "Print the workflow as a Mermaid diagram", INSPECT
    ),
    CommandEntry("budget", "lopen.cli.commands.budget:app", "Show, extend or reset budgets", GUARD),
    CommandEntry("circuit", "lopen.cli.commands.circuit:app", "Show, acknowledge or reset circuits", GUARD),
    CommandEntry("alerts", "lopen.cli.commands.alerts:app", "Show or acknowledge alerts", GUARD),
    CommandEntry("memory", "lopen.cli.commands.memory:app", "Show and clean what lopen keeps on disk", GUARD),
    CommandEntry("help", "lopen.cli.commands.help:help_", "Show the help of a command", SET_UP),
    CommandEntry(
        "hooks", "lopen.cli.commands.hooks:app", "Apply the same limits to Claude Code sessions", GUARD
    ),
)  # `lopen hook` is handled in `lopen.__main__`


def installed() -> list[CommandEntry]:
    """Return the commands whose modules are installed."""
    return [entry for entry in COMMANDS if find_spec(entry.place.partition(":")[0]) is not None]


def _load(entry: CommandEntry) -> Any:
    """Load the command of an entry."""
    module, _, attribute = entry.place.partition(":")
    found: typer.Typer | Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = get_command(found)
        group.name = entry.name
        return with_examples(group, entry.name)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(entry.name, short_help=entry.help)(found)
    return with_examples(get_command(single), entry.name)


class LazyCommand(TyperCommand):
    """An entry in the listing that loads its command when it is called."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.name, short_help=entry.help, help=entry.help, rich_markup_mode=None)
        self.entry = entry

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Return the context of the loaded command, which handles the rest."""
        return _load(self.entry).make_context(*args, **extra)


class LazyGroup(TyperGroup):
    """The root command, whose commands are those of the table."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = {entry.name: LazyCommand(entry) for entry in installed()}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group, in the order of the work."""
        for group in (SET_UP, BUILD, DECIDE, INSPECT, GUARD):
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

VersionOption = Annotated[bool, typer.Option("--version", help="Print the version and exit.")]


@app.callback()
def root(
    ctx: typer.Context,
    project: ProjectOption = None,
    verbose: VerboseOption = False,
    version: VersionOption = False,
) -> None:
    """Build a module from its specification: seven steps, one approval by a person, verified commits."""
    invocation = ctx.ensure_object(Invocation)
    invocation.project = project
    invocation.verbose = verbose or invocation.verbose
    if version:
        typer.echo(f"lopen {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def run(arguments: Sequence[str], invocation: Invocation) -> ExitCode:
    """Run one command line; raise failures instead of printing them."""
    result = with_examples(get_command(app), "").main(
        list(arguments), prog_name="lopen", standalone_mode=False, obj=invocation
    )
    return ExitCode(result or 0)
