"""`lopen replay SESSION`: rebuild a session in a scratch clone from its recording, and compare the trees."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.application.run_options import RunOptions
from lopen.cli import parameters as o
from lopen.cli.command import command
from lopen.cli.parameters import NetworkOption, SessionArgument
from lopen.core.errors import ExitCode, LopenError
from lopen.core.events import Committed, Event, Reverted

if TYPE_CHECKING:
    from lopen.git.repository import Repository
    from lopen.git.trees import TreeChange
    from lopen.workflow.session import Session


@dataclass(frozen=True, slots=True)
class Comparison:
    """The trees of the recorded and the rebuilt session, and their differences."""

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
    """Rebuild a session in a scratch clone from its recorded answers. Exit code 0: the files are the same.

    Tools, verifications and commits are real, but run only in the clone; the project is not changed.
    """
    from lopen.application.confinement import recording_path
    from lopen.application.open_store import one_session, open_store
    from lopen.application.replaying import rebuilt
    from lopen.application.scratch_clone import stage
    from lopen.core.clock import SystemClock
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
    loaded = context.load(options.flags())
    with tempfile.TemporaryDirectory(prefix="lopen-replay-") as folder:
        scratch = stage(context, store, found, Path(folder).resolve(), clock=clock)
        recorded = last_tree(Repository.open(context.root, clock=clock), found)
        events = tuple(store.events(found.id))
        result = rebuilt(scratch, loaded, options, found, events)
        copy = Repository.open(scratch.context.root, clock=clock)
        now = last_tree(copy, result)
        compared = Comparison(recorded, now, differing(copy.changes(recorded, now)))
        return _report(context, found, compared, _reverted_to([r.event for r in events]))


def _reverted_to(events: Sequence[Event]) -> str:
    """Return the commit to which the session was last reverted; "" where that was undone, or built upon."""
    for event in reversed(events):
        if isinstance(event, Reverted):
            return "" if event.restored else event.to
        if isinstance(event, Committed):
            return ""
    return ""


def no_recording(session: Session) -> LopenError:
    """Return the error for a session without a recording, with the likely reason."""
    from lopen.example import APPROVAL_NOTE

    if session.approval is not None and session.approval.note == APPROVAL_NOTE:
        return LopenError(
            f"{session.id} has no recording of its own: its answers came from the bundled one",
            hint="to play that one again in a new folder: lopen demo",
        )
    return LopenError(
        f"{session.id} has no recording",
        hint="recording.enabled is false, the answers were replayed (--model replay:FILE), or a cleanup deleted it",
    )


def differing(changes: Iterable[TreeChange]) -> tuple[TreeChange, ...]:
    """Return the changes outside of `.lopen/`, whose `.gitignore` work trees do not have."""
    return tuple(change for change in changes if not change.path.startswith(".lopen/"))


def last_tree(repository: Repository, session: Session) -> str:
    """Return the tree of the session's last commit, or of its last completed task if it makes no commits.

    Raises:
        LopenError: the session has neither.
    """
    commits = repository.session_commits(session.id, within=_tip(repository, session))
    if commits:
        return commits[-1].tree
    completed = [task.commit for task in session.tree.tasks if task.commit]
    if completed:
        return completed[-1]
    raise LopenError(f"{session.id} has no commit to compare with", hint="it did not complete a task")


def _tip(repository: Repository, session: Session) -> str:
    branch = session.branch
    return branch if branch is not None and repository.branch_tip(branch) is not None else "HEAD"


def _report(context: CommandContext, session: Session, compared: Comparison, reverted_to: str) -> ExitCode:
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
        context.say(f"{session.id}: the replay gives the same tree ({compared.rebuilt[:12]})")
        return ExitCode.OK
    difference = {
        "added": "exists only in the replay",
        "deleted": "is missing in the replay",
        "modified": "differs",
    }
    more = f", and {len(compared.changes) - 1} more" if len(compared.changes) > 1 else ""
    raise LopenError(
        f"{session.id}: the replay gives a different tree: {first.path} {difference[first.kind]}{more}",
        hint=f"the session was reverted to {reverted_to[:12]}, and a replay builds what was there before; to restore it:"
        f" lopen revert {session.module} --undo"
        if reverted_to
        else f"recorded {compared.recorded[:12]}, rebuilt {compared.rebuilt[:12]}; files changed by hand are not in a recording",
    )
