"""`lopen merge`: merge a module's branch after its verify commands passed on the result."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import ModuleArgument
from lopen.core.errors import ExitCode

IntoOption = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="BRANCH",
        help="Merge into this branch (default: where the module's began).",
    ),
]


@command
def merge(context: CommandContext, module: ModuleArgument, into: IntoOption = None) -> ExitCode:
    """Merge the branch of a complete module, after its verify commands passed on the result of the merge.

    They run in a clone of their own. Your files and branches change only when all have passed.
    """
    from lopen.application.merging import merge_module

    merge_module(context, module, into)
    return ExitCode.OK
