"""What every command gets: the project it works on, its settings, and where its words go.

`@command` turns `def check(context, module=None)` into a command that also takes `-C`, `--json` and `-v`,
so that no command file spells them out.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Concatenate, ParamSpec, get_type_hints

import typer

from lopen.cli.rendering.inert import inert
from lopen.errors import ExitCode, WrongUsage
from lopen.own_programs import distrust

if TYPE_CHECKING:
    from lopen.settings.sources import Loaded

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


@dataclass(frozen=True)
class CommandContext:
    """One run of one command."""

    root: Path
    json: bool = False
    verbose: bool = False
    resumable: ClassVar[bool] = True  # `lopen resume` goes on with what the command began

    def load(self, flags: Mapping[str, Any] | None = None) -> Loaded:
        """The settings in force; what a person should hear about them is said."""
        from lopen.settings.sources import load

        loaded = load(self.root, flags=flags)
        for warning in loaded.warnings:
            self.warn(warning)
        return loaded

    def say(self, text: str) -> None:
        """A line for people: standard output, but standard error under `--json`. Shown inert."""
        _write(sys.stderr if self.json else sys.stdout, inert(text, lines=True))

    def warn(self, text: str) -> None:
        """A warning for people, on standard error."""
        _write(sys.stderr, f"warning: {inert(text, lines=True)}")

    def emit(self, event: str, *, session: str = "", **fields: Any) -> None:
        """One line for programs, under `--json` alone: `ts`, `event`, `session`, then the fields."""
        if self.json:
            _write(sys.stdout, json_line(event, session=session, **fields))


def json_line(event: str, *, session: str = "", **fields: Any) -> str:
    """The shape of every line on standard output under `--json` (contract §3)."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"ts": now, "event": event, "session": session} | fields, default=str)


def _write(stream: Any, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def find_root(start: Path) -> Path:
    """The project `start` lies in: the nearest parent that holds `.lopen/` or `.git`, else `start`.

    Folder and marker must be the person's own: a marker that somebody else left in a shared parent (`/tmp`)
    must not decide whose configuration counts.
    """
    start = Path(os.path.realpath(start))
    return next((folder for folder in (start, *start.parents) if _is_root(folder)), start)


def _is_root(folder: Path) -> bool:
    return any(
        _own(marker) and (marker.name == ".git" or marker.is_dir()) and _own(folder)
        for marker in (folder / ".lopen", folder / ".git")
    )


def _own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


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
    if _is_root(root):
        distrust(root)
    return CommandContext(root, invocation.json, invocation.verbose)


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
    """An option for each field, as its annotation describes it."""
    hints = get_type_hints(bundle, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, keyword, default=field.default, annotation=hints[field.name])
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
