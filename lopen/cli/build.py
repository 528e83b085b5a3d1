"""`lopen build`: only the building phase."""

from __future__ import annotations

from lopen.cli.completion import ModuleArgument
from lopen.cli.context import CommandContext, command
from lopen.cli.options import RunOptions
from lopen.errors import ExitCode


@command
def build(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Only the building phase, on a plan that `lopen plan` or `lopen run` recorded.

    Components that are not broken down yet are planned on the way.
    """
    from lopen.cli.driving import drive_module

    return drive_module(context, module, options, only="building")
