"""`lopen run`: the whole workflow, to the gate, and from the gate to the end."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.cli.completion import ModuleArgument
from lopen.cli.context import CommandContext, command
from lopen.cli.options import RunOptions
from lopen.errors import ExitCode

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
    from lopen.cli.driving import drive_module

    return drive_module(context, module, options, dry_run=dry_run)
