"""`lopen replay SESSION`: rebuild a session in a scratch clone from its recording, and compare what comes of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.application.run_options import RunOptions
from lopen.base.errors import ExitCode, LopenError
from lopen.cli import parameters as o
from lopen.cli.command import command
from lopen.cli.parameters import NetworkOption, SessionArgument

if TYPE_CHECKING:
    from lopen.git.repository import Repository
    from lopen.git.trees import TreeChange
    from lopen.workflow.session import Session


@dataclass(frozen=True, slots=True)
class Comparison:
    """The recorded session's tree and the rebuilt one's, and what differs."""

    recorded: str
    rebuilt: str
    changes: tuple[TreeChange, ...]


@command
def replay(
    context: CommandContext,
    session: SessionArgument,
    quiet: o.QuietOption = False,
    no_color: o.NoColorOption = False,
    sandbox: o.SandboxOption = "",
    allow_network: NetworkOption = False,
) -> ExitCode:
    """Rebuild a session in a scratch clone from its recorded answers. Exit code 0: the same files came of it.

    Tools, verifications and commits happen for real, in the clone alone; the project itself is not touched.
    """
    from lopen.application.confinement import recording_path
    from lopen.application.open_store import one_session, open_store
    from lopen.application.replaying import rebuilt
    from lopen.application.scratch_clone import stage
    from lopen.application.work_trees import in_checkout
    from lopen.base.clock import SystemClock
    from lopen.git.repository import Repository

    store, clock = open_store(context), SystemClock()
    found = one_session(store, session)
    recording = recording_path(context.root, found.id)
    if not recording.exists():
        raise no_recording(found)
    options = RunOptions(
        model=f"replay:{recording}",
        quiet=quiet,
        no_color=no_color,
        sandbox=sandbox,
        allow_network=allow_network,
    )
    loaded = in_checkout(context.load(options.flags()))
    with tempfile.TemporaryDirectory(prefix="lopen-replay-") as folder:
        scratch = stage(context, store, found, Path(folder).resolve(), clock=clock)
        recorded = last_tree(Repository.open(context.root, clock=clock), found)
        result = rebuilt(scratch, loaded, options, found, tuple(store.events(found.id)))
        copy = Repository.open(scratch.context.root, clock=clock)
        now = last_tree(copy, result)
        return _say(context, found, Comparison(recorded, now, differing(copy.changes(recorded, now))))


def no_recording(session: Session) -> LopenError:
    """Why there is nothing to play or to export, as far as it can be told."""
    from lopen.cli.commands.demo import NOTE

    if session.approval is not None and session.approval.note == NOTE:
        return LopenError(
            f"{session.id} has no recording of its own: its answers came from the one that lopen brings along",
            hint="lopen demo plays that one again, in a new folder",
        )
    return LopenError(
        f"{session.id} has no recording",
        hint="none is made where recording.enabled is false or the answers are played (--model replay:FILE);"
        " or it was cleaned up",
    )


def differing(changes: Iterable[TreeChange]) -> tuple[TreeChange, ...]:
    """Without lopen's own folder: `.lopen/.gitignore` is on no branch that was built beside the checkout."""
    return tuple(change for change in changes if not change.path.startswith(".lopen/"))


def last_tree(repository: Repository, session: Session) -> str:
    """The tree of the session's last commit; where it makes none, the one its last task was completed on.

    Raises `LopenError` where neither is left.
    """
    commits = repository.session_commits(session.id, within=_tip(repository, session))
    if commits:
        return commits[-1].tree
    kept = [task.commit for task in session.tree.tasks if task.commit]
    if kept:
        return kept[-1]
    raise LopenError(f"{session.id} left no commit to compare with", hint="it completed no task")


def _tip(repository: Repository, session: Session) -> str:
    merged_and_gone = session.branch is None or repository.branch_tip(session.branch) is None
    return "HEAD" if merged_and_gone or session.branch is None else session.branch


def _say(context: CommandContext, session: Session, compared: Comparison) -> ExitCode:
    same = not compared.changes
    first = compared.changes[0] if compared.changes else None
    context.emit(
        "replayed",
        session=session.id,
        same=same,
        recorded_tree=compared.recorded,
        tree=compared.rebuilt,
        differences=[change.path for change in compared.changes],
    )
    if first is None:
        context.say(f"{session.id} gives the same tree again ({compared.rebuilt[:12]})")
        return ExitCode.OK
    words = {
        "added": "is there now, was not then",
        "deleted": "was there then, is not now",
        "modified": "differs",
    }
    more = f", and {len(compared.changes) - 1} more" if len(compared.changes) > 1 else ""
    raise LopenError(
        f"{session.id} gives another tree: {first.path} {words[first.kind]}{more}",
        hint=f"recorded {compared.recorded[:12]}, rebuilt {compared.rebuilt[:12]}; was something changed by hand?",
    )
