"""`lopen revert`: go back to the last task-completion commit, or to that of a task, after a backup."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import LatestModule, tasks
from lopen.core.errors import ExitCode, WrongUsage
from lopen.workflow.session import Session

ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="TASK", help="Go back to the commit of this task.", autocompletion=tasks),
]
UndoOption = Annotated[bool, typer.Option("--undo", help="Restore what the latest revert removed.")]


@command
def revert(
    context: CommandContext, module: LatestModule = None, to: ToOption = None, undo: UndoOption = False
) -> ExitCode:
    """Go back to the module's last task-completion commit, or with --to to the commit of that task.

    All work, also uncommitted, is first saved under refs/lopen/backup. Tasks whose commits are removed are
    open again. --undo restores the latest of these backups, commits and uncommitted work alike.
    """
    from lopen.application.command_context import ResumeOptions
    from lopen.application.demo_project import plays_recording
    from lopen.application.open_store import one_session, open_store
    from lopen.application.reports import merged_into
    from lopen.application.reverting import revert_session

    if undo and to is not None:
        raise WrongUsage("--undo and --to exclude each other", hint="see lopen revert --help")
    store = open_store(context)
    session = one_session(context, store, module)
    if not undo and (target := merged_into(context, session)):
        context.warn(
            f"{session.branch} is merged into {target}, which the revert leaves as it is; to undo a merge: git revert"
        )
    reverted = revert_session(context, store, session.id, to=to, undo=undo)
    if reverted is None:
        context.say(f"nothing to revert: {session.module} is complete, and nothing has changed since")
        context.emit("nothing_to_revert", session=session.id)
        return ExitCode.OK
    changed, event = reverted
    done = "restored" if undo else "reverted"
    if event.backup:
        context.say(
            f"{session.module} (session {session.id}) {done} to {event.to[:12]}; backup: {event.backup}"
        )
    if event.reopened:
        context.say(f"reopened: {', '.join(event.reopened)}")
    if event.restored:
        context.say(f"complete again: {', '.join(event.restored)}")
    context.emit(
        "reverted",
        session=session.id,
        to=event.to,
        backup=event.backup,
        reopened=event.reopened,
        restored=event.restored,
    )
    if not undo and not changed.finished and plays_recording(store, changed, ResumeOptions()):
        context.say("the demo's recorded answers do not go on from here; with a paid model they may:")
        context.say(f"  lopen resume {changed.id} --model sonnet")
        context.say(f"next: lopen revert {changed.module} --undo")
        return ExitCode.OK
    _say_next(context, changed, undo=undo)
    return ExitCode.OK


def _say_next(context: CommandContext, session: Session, *, undo: bool) -> None:
    if session.finished:
        context.say(
            f"{session.id} is complete again" if undo else f"no task was reopened: {session.id} is complete"
        )
        return
    if undo and not any(task.open for task in session.tree.tasks):
        context.say("every task is complete; the components and the module are verified again:")
    context.say(f"next: {session.pause.command if session.pause else f'lopen resume {session.id}'}")
