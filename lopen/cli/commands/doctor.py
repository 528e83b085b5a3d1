"""`lopen doctor`: try everything that lopen needs, and say how to fix it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError

Online = Annotated[bool, typer.Option("--online", help="Also send each model a one-word request.")]


@command
def doctor(context: CommandContext, online: Online = False) -> ExitCode:
    """Try everything that lopen needs, and say how to fix what does not work."""
    from lopen.application.doctor import CheckResult, Examined, examine

    try:
        loaded = context.load()
        configuration = CheckResult("configuration", "ok", "valid")
    except LopenError as error:
        loaded, configuration = None, CheckResult("configuration", "fail", error.message, error.hint)
    failed = False
    for finding in (configuration, *examine(Examined(context.root, loaded, os.environ, online))):
        failed = failed or finding.status == "fail"
        _tell(context, finding.check, finding.status, finding.detail, finding.mend)
    return ExitCode.FAILED if failed else ExitCode.OK


def _tell(context: CommandContext, check: str, status: str, detail: str, mend: str) -> None:
    context.emit("doctor", check=check, status=status, detail=detail, mend=mend)
    if context.json:
        return
    first, *rest = detail.splitlines() or [""]
    context.say(f"{status:<4}  {check}: {first}")
    for more in (*rest, *([f"→ {mend}"] if mend else [])):
        context.say(f"      {more}")
