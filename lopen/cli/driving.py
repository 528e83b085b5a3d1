"""Driving a session from the command line: find or begin it, hold its lock, run it, say how it ended."""

from __future__ import annotations

import errno
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from lopen.cli.context import CommandContext
from lopen.cli.ending import confirm_models
from lopen.cli.options import ResumeOptions, RunOptions
from lopen.cli.reverting import refuse_unfinished
from lopen.cli.store import alone, made, one_session, open_store, store_of
from lopen.cli.workplaces import require_repository
from lopen.documents.drift import section_hashes, spec_hash
from lopen.documents.spec import load, module_name, spec_path
from lopen.errors import ExitCode, LopenError
from lopen.sandbox.ancestry import not_dumpable
from lopen.storage.database import StorageError
from lopen.storage.plan import draw
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step

DISK = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EFBIG})
FREE_SPACE = "free some space or make the folder writable, then: lopen resume"
Only = Literal["", "requirement_gathering", "planning", "building"]
UNTIL: dict[Only, frozenset[Step]] = {
    "": frozenset(),
    "requirement_gathering": PLANNING_STEPS,
    "planning": frozenset({Step.ITERATE_THROUGH_TASKS, Step.REPEAT}),
    "building": frozenset(),
}


def drive_module(
    context: CommandContext, module: str, options: RunOptions, *, only: Only = "", dry_run: bool = False
) -> ExitCode:
    """Run a module: its unfinished session, or a new one."""
    module_name(module)
    loaded = context.load(options.flags())
    drafts = only == "requirement_gathering" or bool(options.prompt)
    store = open_store(context)
    found = None if options.new else store.latest(module=module, unfinished=True)
    if found is not None and loaded.settings.session.auto_resume:
        if only == "building" and found.approval is not None:
            _require_plan(found)
        return _drive(context, store, found, options, only, resumed=True, dry_run=dry_run)
    last = store_of(store, module).latest(module=module)
    if (
        last is not None
        and last.finished
        and not options.new
        and not options.prompt
        and _unchanged(context, last)
    ):
        draw(context.root, last)  # a process that was killed may not have come to it
        context.say(f"{module} is complete (session {last.id}), and its specification has not changed")
        context.emit("already_complete", session=last.id, module=module)
        return ExitCode.OK
    if only == "building" and store.approval(module) is not None:
        raise _no_plan(module)
    if not drafts:
        require_repository(context.root, loaded.settings, module)
        # No session begins over a specification that is not there.
        load(spec_path(context.root, module), module=module)
    store = made(context, store)  # nothing is made for a session that cannot begin
    now = datetime.now(UTC)
    session = Session(store.new_id(module, now), module, now)
    return _drive(context, store, session, options, only, resumed=False, dry_run=dry_run)


def drive_session(context: CommandContext, wanted: str | None, options: ResumeOptions) -> ExitCode:
    """Go on with a session; a finished one is left alone."""
    store = open_store(context)
    session = one_session(store, wanted)
    if session.finished:
        context.say(f"{session.id} is complete; there is nothing to resume")
        return ExitCode.OK
    return _drive(context, store, session, options, "", resumed=True)


def _require_plan(session: Session) -> None:
    if not session.tree.components:
        raise _no_plan(session.module)


def _no_plan(module: str) -> LopenError:
    return LopenError(
        f"no plan of {module} is recorded that could be built",
        hint=f"make one: lopen plan {module}; or plan and build in one: lopen run {module}",
    )


def _unchanged(context: CommandContext, session: Session) -> bool:
    try:
        spec = load(spec_path(context.root, session.module), module=session.module)
    except LopenError:
        return False
    return spec_hash(section_hashes(spec)) == spec_hash(dict(session.planned))


def _drive(
    context: CommandContext,
    store: SessionStore,
    session: Session,
    options: ResumeOptions,
    only: Only,
    *,
    resumed: bool,
    dry_run: bool = False,
) -> ExitCode:
    from lopen.cli.ending import finish
    from lopen.cli.wiring import wired
    from lopen.cli.workplaces import apart
    from lopen.orchestrator import drive, pause, unsaved
    from lopen.starting import failed, start

    not_dumpable()  # no command of the model reads this process's memory, where the key is
    flags = options.flags()
    if options.max_cost is None and session.max_cost_usd is not None:
        flags["budget.max_cost_usd"] = session.max_cost_usd
    loaded = context.load(flags)
    confirm_models(context, loaded)
    with ExitStack() as stack:
        stack.enter_context(alone(context.root, session.module, checkout=not apart(loaded.settings)))
        if resumed:
            session = store.load(session.id)
            refuse_unfinished(session)
        if options.max_cost is not None:
            session = replace(session, max_cost_usd=options.max_cost)
        if dry_run:
            from lopen.cli.preview import preview

            draft = only == "requirement_gathering"
            return preview(context, loaded, store, session, options, resumed=resumed, draft=draft)
        run = stack.enter_context(wired(context, loaded, store, session, options))
        run.ports.draft = only == "requirement_gathering"
        tried = not resumed
        try:
            waits = start(run.ports, resumed=resumed)
            tried = True
            session = pause(run.ports, waits) if waits else drive(run.ports, UNTIL[only])
        except StorageError as error:
            raise unsaved(error) from error
        except OSError as error:
            if error.errno not in DISK:
                raise
            # Whatever file it was (git's scratch folder, a hook's): the disk fails, and nothing more is paid for.
            where = error.filename or context.root
            raise unsaved(StorageError(f"{where}: {error.strerror}", hint=FREE_SPACE)) from error
        except LopenError as error:
            with suppress(StorageError):  # what failed first is what is told
                failed(run.ports, error, tried=tried)
            raise
        return finish(context, run.ports, session, only)
