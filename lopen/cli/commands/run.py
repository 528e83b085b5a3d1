"""`lopen run`: the whole workflow, to the gate, and from the gate to the end."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.run_options import ResumeOptions, RunOptions
from lopen.base.errors import ExitCode
from lopen.cli.command import command
from lopen.cli.parameters import ModuleArgument, OptionalSession

DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Show what would be sent first and what it would cost; send nothing."),
]


@command
def run(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Build a module from its specification: to the gate, and from the gate to the end.

    Goes on with the module's unfinished session, if there is one. Without a specification, `-p` says what
    to draft. Exit codes: 0 complete, 1 failed, 3 a person is needed (the last line names the command).
    """
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, dry_run=dry_run)


@command
def resume(
    context: CommandContext,
    options: ResumeOptions,
    session: OptionalSession = None,
) -> ExitCode:
    """Go on with a session: after an interruption, a pause or a crash. Without a name, the latest unfinished one."""
    from lopen.application.driving import drive_session

    return drive_session(context, session, options)


@command
def plan(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Only the planning phase: up to the first component's tasks. The gate holds here too."""
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="planning")


@command
def build(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Only the building phase, on a plan that `lopen plan` or `lopen run` recorded.

    Components that are not broken down yet are planned on the way.
    """
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="building")


@command
def spec(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Draft a module's specification, or refine the one there is, in conversation. `-p` says what you want."""
    from lopen.application.driving import drive_module

    return drive_module(context, module, options, only="requirement_gathering")
