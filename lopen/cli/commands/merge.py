"""`lopen merge`: merge a module's branch after its verify commands passed on the result."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import modules
from lopen.core.errors import ExitCode, WrongUsage

OneModule = Annotated[
    str | None, typer.Argument(help="Module: the name of its folder in specs/.", autocompletion=modules)
]
AllOption = Annotated[
    bool,
    typer.Option(
        "--all", help="Every complete module, each behind those it comes after; the first failure ends it."
    ),
]
IntoOption = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="BRANCH",
        help="Merge into this branch (default: where the module's began).",
    ),
]


@command
def merge(
    context: CommandContext, module: OneModule = None, into: IntoOption = None, all: AllOption = False
) -> ExitCode:
    """Merge the branch of a complete module, after its verify commands passed on the result of the merge.

    They run in a clone of their own. Your files and branches change only when all have passed.
    """
    from lopen.application.earlier_modules import merge_all
    from lopen.application.meant import module_to_merge
    from lopen.application.merging import merge_module
    from lopen.application.open_store import open_store

    if all and module is not None:
        raise WrongUsage("--all takes every module: name none", hint="see lopen merge --help")
    if all:
        merge_all(context, into)
    else:
        merge_module(context, module or module_to_merge(context, open_store(context)), into)
    return ExitCode.OK
