"""`lopen skip`: a person skips a task."""

from __future__ import annotations

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode
from lopen.cli.command import command
from lopen.cli.parameters import NO_REASON, ReasonOption, TaskArgument


@command
def skip(context: CommandContext, task: TaskArgument, reason: ReasonOption = NO_REASON) -> ExitCode:
    """Skip a task. Its criteria stay open, and the report says so. A running session does it after its turn."""
    from lopen.application import decisions
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person

    require_person("skip", context.root)
    session, found, done = decisions.skip(context, open_store(context), task, reason)
    owner = session.tree.owner(task)
    criteria = ", ".join(owner.criteria) if owner else ""
    when = "skipped" if done else "the running session will skip"
    context.say(f"{when} {task} ({found.name}); open criteria: {criteria or 'none'}")
    context.emit("skipped", session=session.id, task=task, reason=reason, done=done)
    if done:
        context.say(f"next: lopen resume {session.id}")
    return ExitCode.OK
