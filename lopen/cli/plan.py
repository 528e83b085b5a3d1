"""`lopen plan`: only the planning phase."""

from __future__ import annotations

from lopen.cli.completion import ModuleArgument
from lopen.cli.context import CommandContext, command
from lopen.cli.options import RunOptions
from lopen.errors import ExitCode


@command
def plan(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Only the planning phase: up to the first component's tasks. The gate holds here too."""
    from lopen.cli.driving import drive_module

    return drive_module(context, module, options, only="planning")
