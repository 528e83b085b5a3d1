"""`lopen help`: the help of lopen or of one command."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.cli.app import run
from lopen.cli.parameters import Invocation
from lopen.core.errors import ExitCode

Words = Annotated[list[str] | None, typer.Argument(help="Command, such as `run` or `budget extend`.")]


def help_(words: Words = None) -> ExitCode:
    """Show the help of lopen, or of one command."""
    return run([*(words or []), "--help"], Invocation())
