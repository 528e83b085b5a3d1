"""`lopen spec`: step 1, drafting or refining a specification in conversation."""

from __future__ import annotations

from lopen.cli.completion import ModuleArgument
from lopen.cli.context import CommandContext, command
from lopen.cli.options import RunOptions
from lopen.errors import ExitCode


@command
def spec(
    context: CommandContext,
    module: ModuleArgument,
    options: RunOptions,
) -> ExitCode:
    """Draft a module's specification, or refine the one there is, in conversation. `-p` says what you want."""
    from lopen.cli.driving import drive_module

    return drive_module(context, module, options, only="requirement_gathering")
