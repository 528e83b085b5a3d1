"""`lopen resume`: going on after an interruption, a pause or a crash."""

from __future__ import annotations

from lopen.cli import options as o
from lopen.cli.completion import OptionalSession
from lopen.cli.context import CommandContext, command
from lopen.errors import ExitCode


@command
def resume(
    context: CommandContext,
    session: OptionalSession = None,
    prompt: o.PromptOption = None,
    model: o.ModelOption = None,
    unattended: o.UnattendedOption = False,
    max_iterations: o.IterationsOption = None,
    max_cost: o.CostOption = None,
    quiet: o.QuietOption = False,
    no_color: o.NoColorOption = False,
    sandbox: o.SandboxOption = None,
    allow_network: o.NetworkOption = False,
    record: o.RecordOption = None,
) -> ExitCode:
    """Go on with a session: after an interruption, a pause or a crash. Without a name, the latest unfinished one."""
    from lopen.cli.driving import drive_session

    options = o.RunOptions(
        prompt or "", model or "", unattended, False, max_iterations, max_cost, quiet, no_color,
        sandbox or "", allow_network, record,
    )  # fmt: skip
    return drive_session(context, session, options)
