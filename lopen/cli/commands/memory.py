"""`lopen memory`: show what lopen keeps on disk against its limits, and clean it."""

from __future__ import annotations

from dataclasses import asdict

from lopen.application.command_context import CommandContext
from lopen.cli.command import command, group, outside_command
from lopen.core.errors import ExitCode

app = group("Show and clean what lopen keeps on disk.", default="report")


@app.command()
@command
def report(context: CommandContext) -> ExitCode:
    """Show disk usage against its limits, and what the last cleanup freed."""
    from lopen.application.memory_report import memory_report as gathered
    from lopen.application.memory_report import report_lines
    from lopen.application.open_store import open_store
    from lopen.limits.opening import open_limits

    settings = context.load().settings
    store = open_store(context)
    limits = open_limits(settings, store.database)
    found = gathered(store, context.root / ".lopen", settings, limits)
    limits.close()
    context.emit("memory", **asdict(found))
    if not context.json:
        context.say("\n".join(report_lines(found, settings)))
    return ExitCode.OK


@app.command()
@outside_command
def clean(context: CommandContext) -> ExitCode:
    """Run the automatic cleanup now: rotate logs, archive finished sessions and older rows, free space."""
    from lopen.application.memory_report import cleanup_line
    from lopen.application.open_store import cleaned

    freed = asdict(cleaned(context))
    context.emit("memory_cleaned", **freed)
    context.say(f"Memory cleanup: {cleanup_line(freed)}")
    return ExitCode.OK
