"""Commands for typer: the options that all of them share, and the context each is called with.

`@command` turns `def check(context, module=None)` into a command that also takes `-C`, `--json` and `-v`,
so that no command file spells them out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from lopen.application.command_context import CommandContext, find_root, is_root
from lopen.base.errors import ExitCode, WrongUsage
from lopen.base.trusted_programs import distrust
from lopen.cli.presentation import TerminalPresentation

P = ParamSpec("P")

ProjectOption = Annotated[
    Path | None, typer.Option("-C", "--project", metavar="DIR", help="Work on the project in DIR.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Say more; show a traceback for a bug.")]


@dataclass
class Invocation:
    """The options that stand for the whole command line, wherever on it they were given."""

    project: Path | None = None
    json: bool = False
    verbose: bool = False


def open_context(invocation: Invocation) -> CommandContext:
    """The context for a command line; `WrongUsage` where `-C` names no folder, or the current one is gone."""
    try:
        start = invocation.project or Path.cwd()
    except FileNotFoundError as error:
        raise WrongUsage(
            "the current folder does not exist any more", hint="cd into one that does, or name it: -C DIR"
        ) from error
    if not start.is_dir():
        raise WrongUsage(f"-C {start}: there is no such folder")
    root = find_root(start)
    if is_root(root):
        distrust(root)
    return CommandContext(root, invocation.json, invocation.verbose, TerminalPresentation())


def command(
    function: Callable[Concatenate[CommandContext, P], ExitCode | None],
) -> Callable[..., ExitCode | None]:
    """A command out of a function whose first parameter is the context; its result is the exit code.

    A parameter that is a dataclass stands for as many options as it has fields.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    bundles: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}
    own = [expanded for p in own for expanded in (_fields(bundles[p.name]) if p.name in bundles else [p])]
    call: Callable[..., ExitCode | None] = function

    @wraps(function)
    def run(ctx: typer.Context, **options: Any) -> ExitCode | None:
        given = {name: options.pop(name) for name in ("project", "json", "verbose")}
        invocation = taken_in(ctx, **given)
        for name, bundle in bundles.items():
            given = {field.name: options.pop(field.name) for field in fields(bundle)}
            options[name] = bundle(**given)
        return call(open_context(invocation), **options)

    shared = {
        "project": (ProjectOption, None),
        "json": (JsonOption, False),
        "verbose": (VerboseOption, False),
    }
    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in shared.items()
        ),
    ]
    # typer reads the signature and, for what is not `Annotated`, the annotations
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks for
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _fields(bundle: Any) -> list[inspect.Parameter]:
    """Return an option for each field, as `OPTIONS` spells it."""
    from lopen.cli.options import OPTIONS

    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=OPTIONS[field.name])
        for field in fields(bundle)
    ]


def group(help_text: str) -> typer.Typer:
    """A command with subcommands, dressed as the root is; the shared options may stand before the subcommand too."""
    app = typer.Typer(
        help=help_text, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )

    @app.callback()
    def shared(
        ctx: typer.Context,
        project: ProjectOption = None,
        json: JsonOption = False,
        verbose: VerboseOption = False,
    ) -> None:
        taken_in(ctx, project, json=json, verbose=verbose)

    return app


def taken_in(ctx: typer.Context, project: Path | None, *, json: bool, verbose: bool) -> Invocation:
    """The invocation with what stands at this place of the command line; what is not given here stays as it is."""
    invocation = ctx.ensure_object(Invocation)
    invocation.project = project or invocation.project
    invocation.json = json or invocation.json
    invocation.verbose = verbose or invocation.verbose
    return invocation
