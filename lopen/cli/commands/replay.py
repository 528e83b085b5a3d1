"""`lopen replay SESSION`: rebuild a session in a scratch clone from its recording, and compare the trees."""

from __future__ import annotations

from lopen.application.command_context import CommandContext, RunOptions
from lopen.cli import parameters as o
from lopen.cli.command import command
from lopen.core.errors import ExitCode, LopenError

DIFFERENCE = {
    "added": "exists only in the replay",
    "deleted": "is missing in the replay",
    "modified": "differs",
}


@command
def replay(
    context: CommandContext,
    session: o.SessionArgument,
    quiet: o.QuietOption = False,
    no_color: o.NoColorOption = False,
    sandbox: o.SandboxOption = "",
    allow_network: o.NetworkOption = False,
) -> ExitCode:
    """Rebuild a session in a scratch clone from its recorded answers. Exit code 0: the files are the same.

    Tools, verifications and commits are real, but run only in the clone; the project is not changed.
    """
    from lopen.application.replaying import replay_session

    options = RunOptions(quiet=quiet, no_color=no_color, sandbox=sandbox, allow_network=allow_network)
    found = replay_session(context, session, options)
    context.emit(
        "replayed",
        session=found.session,
        same=not found.changes,
        recorded_tree=found.recorded,
        tree=found.rebuilt,
        differences=[change.path for change in found.changes],
    )
    if found.changes:
        first, *others = found.changes
        more = f", and {len(others)} more" if others else ""
        raise LopenError(
            f"{found.session}: the replay gives a different tree: {first.path} {DIFFERENCE[first.kind]}{more}",
            hint=f"recorded {found.recorded[:12]}, rebuilt {found.rebuilt[:12]}; files changed by hand are not in a"
            " recording, nor is a revert",
        )
    context.say(f"{found.session}: the replay gives the same tree ({found.rebuilt[:12]})")
    return ExitCode.OK
