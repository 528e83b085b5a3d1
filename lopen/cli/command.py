"""The frame of every command: the shared options, and the context that it is called with.

`@command` turns `def check(context, module=None)` into a command that also takes `-C`, `--json` and `-v`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, cast, get_type_hints

import typer
from typer.core import TyperGroup

from lopen.application.command_context import CommandContext, find_root, is_root
from lopen.cli.parameters import OPTIONS, Invocation, JsonOption, ProjectOption, VerboseOption
from lopen.cli.terminal import TerminalPresentation
from lopen.core.errors import ExitCode, StorageError, WrongUsage
from lopen.core.person import PERSONS_COMMANDS
from lopen.core.trusted_programs import distrust
from lopen.git.errors import GitError

P = ParamSpec("P")
READS_BUILDS = ("status", "show", "diff", "report", "pr", "merge")
DRIVES = ("run", "plan", "resume")
SENT_TO_WORKERS = ("answer", "confirm", "pause", "skip", "tell", "budget extend")
SHARED_OPTIONS = {
    "project": (ProjectOption, None),
    "json": (JsonOption, False),
    "verbose": (VerboseOption, False),
}


def open_context(invocation: Invocation) -> CommandContext:
    """Return the context of a command line.

    Raises:
        WrongUsage: `-C` does not name a folder, or the current folder does not exist any more.
    """
    given = str(invocation.project) if invocation.project else ""
    try:
        start = invocation.project or Path.cwd()
    except FileNotFoundError as error:
        raise WrongUsage(
            "the current folder does not exist any more",
            hint="change to an existing folder, or name one with -C DIR",
        ) from error
    if not start.is_dir():
        raise WrongUsage(f"-C {start}: no such folder", hint="name an existing folder")
    root = find_root(start)
    if is_root(root):
        distrust(root)
    return CommandContext(root, invocation.json, invocation.verbose, TerminalPresentation(), given)


def command(
    function: Callable[Concatenate[CommandContext, P], ExitCode | None],
    allow: Callable[[str, Path], None] | None = None,
) -> Callable[..., ExitCode | None]:
    """Make a command of a function whose first parameter is the context; it returns the exit code.

    A parameter whose type is a dataclass becomes one option per field. A person's command refuses inside a session of
    lopen or of Claude Code. `allow` is called with the command's name and the project, and raises where it may not run.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    bundles: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}
    call: Callable[..., ExitCode | None] = function

    @wraps(function)
    def run(ctx: typer.Context, **options: Any) -> ExitCode | None:
        invocation = with_options(ctx, **{name: options.pop(name) for name in SHARED_OPTIONS})
        for name, bundle in bundles.items():
            options[name] = bundle(**{field.name: options.pop(field.name) for field in fields(bundle)})
        context = open_context(invocation)
        name = ctx.command_path.partition(" ")[2]
        if name in PERSONS_COMMANDS:
            from lopen.application.decisions import require_person

            require_person(name, context.root)
            if name in SENT_TO_WORKERS and _is_sent(context, name, options):
                return ExitCode.OK
        if name in READS_BUILDS or name in DRIVES:
            bring_home(context, _named(options), drives=name in DRIVES)
        if allow is not None:
            allow(name, context.root)
        return call(context, **options)

    parameters = [_parameter("ctx", typer.Context)]
    for each in own:
        parameters += _fields(bundles[each.name]) if each.name in bundles else [each]
    parameters += [_parameter(name, *shared) for name, shared in SHARED_OPTIONS.items()]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    # typer reads the signature and the annotations
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks for
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _is_sent(context: CommandContext, name: str, options: dict[str, Any]) -> bool:
    """Return True for a command on a build that only the queue knows, which has been sent to its worker."""
    if not context.has_queue:
        return False
    from lopen.queue.messages import sent

    return sent(context, name, options)


def _named(options: dict[str, Any]) -> Sequence[str | None]:
    """Return the modules that a command names, None for `--all`."""
    one = next((v for k in ("module", "wanted", "task", "session") if (v := options.get(k))), None)
    return [one] if one else options.get("modules") or ([None] if options.get("all") else [])


def bring_home(context: CommandContext, modules: Sequence[str | None], *, drives: bool) -> None:
    """Bring what the queue's workers have completed of these modules; None stands for every one.

    `drives`: the command would build, which it may not do with what is in the queue, nor without knowing that.
    """
    if not modules or not context.has_queue:
        return
    from lopen.queue import opening

    try:
        for module in modules:
            opening.bring_home(context, module, drives=drives)
    except (GitError, StorageError) as error:
        if drives:
            raise
        context.warn(f"what workers have completed since is not shown: {error.message}")


def outside_command(
    function: Callable[Concatenate[CommandContext, P], ExitCode | None],
) -> Callable[..., ExitCode | None]:
    """Make a command that refuses to run inside the lopen session that works on the project."""

    def require(name: str, root: Path) -> None:
        from lopen.application.decisions import require_outside_session

        require_outside_session(name, root)

    return command(function, require)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _fields(bundle: Any) -> list[inspect.Parameter]:
    """Return one option per field, as its annotation or `OPTIONS` defines it."""
    own = get_type_hints(bundle, include_extras=True)
    return [_parameter(f.name, OPTIONS.get(f.name, own[f.name]), f.default) for f in fields(bundle)]


class WholeHelpGroup(TyperGroup):
    """A command with subcommands, each listed with its first sentence, which no "…" cuts."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the subcommands in the order in which they are defined."""
        every = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        listed = [(name, found) for name, found in every if found and not found.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(found.help or "")) for name, found in listed])


def _first_sentence(text: str) -> str:
    """Return the first sentence of a help text; a full stop ends it only before a blank."""
    return f"{' '.join(text.split()).partition('. ')[0].rstrip('.')}."


def group(help_text: str, default: str = "") -> typer.Typer:
    """Return a command with subcommands; without one it runs `default`, or prints its help.

    The shared options are also allowed before the subcommand.
    """
    app = typer.Typer(
        cls=WholeHelpGroup,
        help=help_text,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def shared(
        ctx: typer.Context,
        project: ProjectOption = None,
        json: JsonOption = False,
        verbose: VerboseOption = False,
    ) -> ExitCode | None:
        with_options(ctx, project, json=json, verbose=verbose)
        if ctx.invoked_subcommand is not None:
            return None
        if not default:
            typer.echo(ctx.get_help())
            return None
        chosen = cast(Any, ctx.command).get_command(ctx, default)
        with chosen.make_context(default, [], parent=ctx) as inner:
            return cast("ExitCode | None", chosen.invoke(inner))

    return app


def with_options(ctx: typer.Context, project: Path | None, *, json: bool, verbose: bool) -> Invocation:
    """Merge the shared options given at one place of the command line into the invocation."""
    invocation = ctx.ensure_object(Invocation)
    invocation.project = project or invocation.project
    invocation.json = json or invocation.json
    invocation.verbose = verbose or invocation.verbose
    return invocation
