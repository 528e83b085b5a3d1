"""`lopen diagram`: print the workflow as a Mermaid diagram."""

from __future__ import annotations

from lopen.application.command_context import CommandContext
from lopen.cli.command import command


@command
def diagram(context: CommandContext) -> None:
    """Print the workflow as a Mermaid state diagram."""
    from lopen.workflow.next_step import mermaid

    if context.json:
        context.emit("diagram", mermaid=mermaid())
    else:
        context.say(mermaid().rstrip("\n"))
