"""`lopen run`, `resume`, `plan` and `spec`: drive a session."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext, ResumeOptions, RunOptions
from lopen.cli.command import outside_command
from lopen.cli.parameters import ModuleArgument, OptionalSession
from lopen.core.errors import ExitCode

DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what it may cost, the limits and where it would begin; send nothing.",
    ),
]

DetachOption = Annotated[
    bool,
    typer.Option("--detach", help="Run in the background; lopen attach follows it, lopen pause stops it."),
]


@outside_command
def run(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
    dry_run: DryRunOption = False,
    detach: DetachOption = False,
) -> ExitCode:
    """Build a module from its specification: up to your approval, then to the end.

    An unfinished session of the module is resumed. Without a specification, describe with -p what to draft.
    Exit codes: 0 complete, 1 failed, 3 a person is needed (the last line names the command).
    """
    if detach and not dry_run:
        from lopen.application.detached import run_detached
        from lopen.specification.modules import module_name

        return run_detached(context, module_name(module), [a for a in sys.argv[1:] if a != "--detach"])
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, dry_run=dry_run)


@outside_command
def resume(
    context: CommandContext,
    options: ResumeOptions,
    session: OptionalSession = None,
) -> ExitCode:
    """Continue a session after an interruption, a pause or a crash (default: the latest unfinished one)."""
    from lopen.application.driving import drive_session

    return drive_session(context, session, options)


@outside_command
def plan(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Run only the planning phase, up to the tasks of the first component. It needs your approval too."""
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="planning")


@outside_command
def spec(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Draft a module's specification, or refine it, in conversation with the model; describe the request with -p."""
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="requirement_gathering")
