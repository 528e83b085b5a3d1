"""`lopen hooks`: put lopen's guards into a project's Claude Code settings, or take them out."""

from __future__ import annotations

from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode
from lopen.cli.command import command, group

app = group("Guards for Claude Code sessions.")


@app.command()
@command
def install(context: CommandContext) -> ExitCode:
    """Write the hooks into .claude/settings.json; what else stands there stays. A person's command.

    They count in .lopen/, which is made where there is none.
    """
    from lopen.application.person_only import require_person
    from lopen.claude_hooks import install as hooks
    from lopen.storage.folder import state_folder

    require_person("hooks install", context.root)
    new = not (context.root / ".lopen").exists()
    folder = state_folder(context.root)
    if new:
        context.say(f"made {folder}, where they keep what they count")
    path, backup = hooks.install(context.root)
    return _said(context, "hooks_installed", "installed in", path, backup)


@app.command()
@command
def uninstall(context: CommandContext) -> ExitCode:
    """Take lopen's hooks out of .claude/settings.json. A person's command."""
    from lopen.application.person_only import require_person
    from lopen.claude_hooks import install as hooks

    require_person("hooks uninstall", context.root)
    path, taken_out, backup = hooks.uninstall(context.root)
    what = "are not in"
    if taken_out:
        what = "taken out of" if path.exists() else "taken out; nothing else stood in"
    return _said(context, "hooks_uninstalled", what, path, backup)


def _said(context: CommandContext, event: str, what: str, path: Path, backup: Path | None) -> ExitCode:
    context.emit(event, path=str(path), backup=str(backup) if backup else None)
    context.say(f"lopen's hooks {what} {path}")
    if backup is not None:
        context.say(f"an earlier one is kept as {backup}")
    return ExitCode.OK
