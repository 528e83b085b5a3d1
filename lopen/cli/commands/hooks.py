"""`lopen hooks`: install lopen's guards in a project's Claude Code settings, or remove them."""

from __future__ import annotations

from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.cli.command import command, group
from lopen.core.errors import ExitCode

app = group("Guards for Claude Code sessions.")


@app.command()
@command
def install(context: CommandContext) -> ExitCode:
    """Add the hooks to .claude/settings.json and keep its other contents. Only a person may run this.

    The hooks store their counters in .lopen/, which is created if it is missing.
    """
    from lopen.claude_hooks import install as hooks
    from lopen.store.folder import state_folder

    new = not (context.root / ".lopen").exists()
    folder = state_folder(context.root)
    if new:
        context.say(f"created {folder} for the hooks' counters")
    return _report(context, "hooks_installed", "installed in", hooks.install(context.root))


@app.command()
@command
def uninstall(context: CommandContext) -> ExitCode:
    """Remove lopen's hooks from .claude/settings.json. Only a person may run this."""
    from lopen.claude_hooks import install as hooks

    path, removed = hooks.uninstall(context.root)
    what = "are not installed in"
    if removed:
        what = "removed from" if path.exists() else "removed, with the empty file"
    return _report(context, "hooks_uninstalled", what, path)


def _report(context: CommandContext, event: str, what: str, path: Path) -> ExitCode:
    context.emit(event, path=str(path))
    context.say(f"lopen's hooks {what} {path}")
    return ExitCode.OK
