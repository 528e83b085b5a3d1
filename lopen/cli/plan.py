"""`lopen plan`: only the planning phase."""

from __future__ import annotations

from lopen.cli import options as o
from lopen.cli.completion import ModuleArgument
from lopen.cli.context import CommandContext, command
from lopen.errors import ExitCode


@command
def plan(
    context: CommandContext,
    module: ModuleArgument,
    prompt: o.PromptOption = None,
    model: o.ModelOption = None,
    unattended: o.UnattendedOption = False,
    new: o.NewOption = False,
    max_iterations: o.IterationsOption = None,
    max_cost: o.CostOption = None,
    quiet: o.QuietOption = False,
    no_color: o.NoColorOption = False,
    sandbox: o.SandboxOption = None,
    allow_network: o.NetworkOption = False,
    record: o.RecordOption = None,
) -> ExitCode:
    """Only the planning phase: up to the first component's tasks. The gate holds here too."""
    from lopen.cli.driving import drive_module

    options = o.RunOptions(
        prompt or "", model or "", unattended, new, max_iterations, max_cost, quiet, no_color,
        sandbox or "", allow_network, record,
    )  # fmt: skip
    return drive_module(context, module, options, only="planning")
