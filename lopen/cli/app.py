"""The root command: a table of commands, each loaded only when it is called.

`lopen --help` reads only the table.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from lopen import __version__
from lopen.cli.parameters import Invocation, ProjectOption, VerboseOption
from lopen.core.errors import ExitCode


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command: its place (`module:attribute`, a function or a `Typer`) and a one-line description."""

    name: str
    place: str
    help: str

    @property
    def examples(self) -> list[str]:
        """Return the examples of this command."""
        return [example for example in EXAMPLES if example.split()[1] == self.name]


SET_UP, BUILD, DECIDE = "Set up", "Build", "Decide (only a person may run these)"
INSPECT, GUARD = "Inspect", "Guard"
GROUPS: dict[str, tuple[CommandEntry, ...]] = {
    SET_UP: (
        CommandEntry("init", "init:init", "Set up a project and detect its verify commands"),
        CommandEntry("doctor", "doctor:doctor", "Try everything that lopen needs, and say how to fix it"),
        CommandEntry("config", "config:app", "Show settings with their sources, and set them"),
        CommandEntry("demo", "demo:demo", "Build the bundled example from a recording, without an API key"),
    ),
    BUILD: (
        CommandEntry("spec", "drive:spec", "Draft or refine a specification with the model"),
        CommandEntry("check", "check:check", "Validate specifications"),
        CommandEntry("run", "drive:run", "Build a module: up to your approval, then to the end"),
        CommandEntry("resume", "drive:resume", "Continue after an interruption, a pause or a crash"),
        CommandEntry("attach", "attach:attach", "Follow a running session from any terminal"),
        CommandEntry("plan", "drive:plan", "Run only the planning phase"),
        CommandEntry("queue", "queue:app", "Order builds for workers, and see what they do"),
        CommandEntry("worker", "queue:worker", "Build what the queue has, until it is stopped"),
    ),
    DECIDE: (
        CommandEntry("approve", "approve:approve", "Approve a specification, so that it can be built"),
        CommandEntry("answer", "decide:answer", "Answer the model's pending question"),
        CommandEntry("confirm", "decide:confirm", "Accept what could not be told, or let a session go on"),
        CommandEntry("tell", "decide:tell", "Tell the model something with its next turn"),
        CommandEntry("pause", "decide:pause", "Stop a running session at its next safe point"),
        CommandEntry("skip", "decide:skip", "Skip a task; its criteria stay open"),
        CommandEntry("revert", "revert:revert", "Go back to the commit of the last completed task"),
        CommandEntry("pr", "pr:pr", "Open a pull request with the report"),
        CommandEntry(
            "merge", "merge:merge", "Merge a module's branch after its verify commands passed on the result"
        ),
    ),
    INSPECT: (
        CommandEntry("status", "status:status", "Show modules, tasks, step, budgets, and what waits for you"),
        CommandEntry("show", "show:show", "Show a task, verdict or call with its output, diff and cost"),
        CommandEntry("report", "report:report", "Show what proves each criterion; --html for a reviewer"),
        CommandEntry("diff", "show:diff", "Show what a task or module changed"),
        CommandEntry("log", "log:log", "Show what happened, in order"),
        CommandEntry("session", "sessions:app", "List or delete sessions"),
        CommandEntry(
            "replay", "replay:replay", "Rebuild a session in a scratch clone and compare the result"
        ),
        CommandEntry("serve", "serve:serve", "Serve the REST API, the dashboard and metrics"),
        CommandEntry("diagram", "diagram:diagram", "Print the workflow as a Mermaid diagram"),
    ),
    GUARD: (
        CommandEntry("budget", "limits:budgets", "Show, extend or reset budgets"),
        CommandEntry("circuit", "limits:circuits", "Show, acknowledge or reset circuits"),
        CommandEntry("alerts", "limits:alerts", "Show or acknowledge alerts"),
        CommandEntry("memory", "memory:memory", "Show what lopen keeps on disk"),
        CommandEntry("hooks", "hooks:app", "Apply the same limits to Claude Code sessions"),
    ),
}  # `lopen hook` is handled in `lopen.__main__`
MEANT = {"build": "run", "start": "run", "continue": "resume"}  # a word of other tools → the command
COMMANDS: dict[str, CommandEntry] = {entry.name: entry for entries in GROUPS.values() for entry in entries}


EXAMPLES = (  # at the end of each command's help
    "lopen init calc",
    "lopen init --example",
    "lopen doctor --online",
    "lopen config show budget --explain",
    "lopen config set --user models.building sonnet",
    "lopen demo",
    "lopen spec calc -p 'A calculator for whole numbers'",
    "lopen check calc",
    "lopen run calc --dry-run",
    "lopen run calc --detach --max-cost 5",
    "lopen resume calc -p 'Keep it simple'",
    "lopen approve calc --run",
    "lopen answer calc 'whole numbers only'",
    "lopen confirm calc --note 'try another library'",
    "lopen tell calc 'use integers, no floats'",
    "lopen skip calc-t3 --reason 'not needed any more'",
    "lopen revert --to calc-t2",
    "lopen revert --undo",
    "lopen pr calc --draft",
    "lopen merge calc --into main",
    "lopen show calc-t2",
    "lopen show call-17",
    "lopen diff calc-t2",
    "lopen report calc --html calc.html",
    "lopen log calc -f",
    "lopen serve --open",
    "lopen diagram > workflow.mmd",
    "lopen budget extend --tokens 100000",
    "lopen circuit ack",
    "lopen alerts ack all",
    "lopen memory",
)


def load_command(entry: CommandEntry) -> Any:
    """Load the command of an entry, with its examples at the end of its help."""
    module, _, attribute = entry.place.partition(":")
    found: typer.Typer | Callable[..., Any] = getattr(
        importlib.import_module(f"lopen.cli.commands.{module}"), attribute
    )
    if isinstance(found, typer.Typer):
        loaded = get_command(found)
        loaded.name = entry.name
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(entry.name, short_help=entry.help)(found)
        loaded = get_command(single)
    for argument in loaded.params:
        if isinstance(argument, TyperArgument):  # as the error for a missing one spells it
            argument.metavar = (argument.metavar or argument.name or "").upper().removesuffix("...")
            # The metavar says it: a reader does not need Python's type beside it
            argument.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
    if entry.examples:  # \b keeps click from filling the lines of a paragraph
        loaded.epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in entry.examples)
    return loaded


class LazyCommand(TyperCommand):
    """An entry in the listing that loads its command when it is called."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.name, short_help=entry.help, help=entry.help, rich_markup_mode=None)
        self.entry = entry

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Return the context of the loaded command, which handles the rest."""
        return load_command(self.entry).make_context(*args, **extra)


class LazyGroup(TyperGroup):
    """The root command; the table holds its commands."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = {name: LazyCommand(entry) for name, entry in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; refuse a word near one of `MEANT` with the command that it means."""
        from difflib import get_close_matches

        if args[0] not in self.commands and (near := get_close_matches(args[0], MEANT, n=1, cutoff=0.8)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{MEANT[near[0]]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group, in the order of the work."""
        for group, entries in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(entry.name, entry.help) for entry in entries])


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
    result = get_command(app).main(list(arguments), prog_name="lopen", standalone_mode=False, obj=invocation)
    return ExitCode(result or 0)
