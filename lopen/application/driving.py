"""Driving a session from the command line: find or start it, hold its lock, run it, report its end."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from lopen.application.approval import checked
from lopen.application.command_context import CommandContext
from lopen.application.ending import finish, paused_by_person, tell_next
from lopen.application.open_store import created, one_session, open_store, store_of
from lopen.application.revert_record import refuse_unfinished
from lopen.application.run_options import ResumeOptions, RunOptions
from lopen.application.waiting import LOST_DEMO, demo_command, lost_demo
from lopen.application.work_trees import require_repository
from lopen.core.errors import ExitCode, LopenError, StorageError, WrongUsage, did_you_mean
from lopen.core.stat_cache import signature_at
from lopen.sandbox.ancestry import deny_inspection
from lopen.settings.schema import Settings
from lopen.specification.drift import section_hashes, spec_hash
from lopen.specification.modules import find_modules, module_name, spec_path
from lopen.specification.spec import load_specification
from lopen.store.folder import module_lock
from lopen.store.project_documents import write_plan
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step

DISK = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EFBIG})
FREE_SPACE = "free some space or make the folder writable, then: lopen resume"
Only = Literal["", "requirement_gathering", "planning", "building"]
AGAIN = {"requirement_gathering": "spec", "planning": "plan", "building": "build"}
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
        _require_model(context, store, found, loaded.settings, options, dry_run=dry_run)
        return _drive(context, store, found, options, only, resumed=True, dry_run=dry_run)
    if only == "requirement_gathering" and not options.prompt:
        _ask_to_draft(context, module, loaded.settings.models.requirement_gathering)
    last = store_of(store, module).latest(module=module)
    if (
        last is not None
        and last.finished
        and not options.new
        and not options.prompt
        and _unchanged(context, last)
    ):
        write_plan(context.root, last)  # a killed process may not have written it
        context.say(f"{module} is complete (session {last.id}) and its specification has not changed")
        tell_next(context, last)
        context.emit("already_complete", session=last.id, module=module)
        return ExitCode.OK
    if only == "building" and store.approval(module) is not None:
        raise _no_plan(module)
    if not drafts:
        require_repository(context.root, loaded.settings, module)
        # No session starts without a specification that is readable and written.
        spec = load_specification(spec_path(context.root, module), module=module)
        if store.approval(module) is None and not spec.problems:
            checked(spec)
    _require_model(context, store, None, loaded.settings, options, dry_run=dry_run)
    store = created(context, store)  # create nothing for a session that cannot start
    now = datetime.now(UTC)
    session = Session(store.new_id(module, now), module, now)
    return _drive(context, store, session, options, only, resumed=False, dry_run=dry_run)


def drive_session(context: CommandContext, wanted: str | None, options: ResumeOptions) -> ExitCode:
    """Resume a session; do nothing if it is finished."""
    store = open_store(context)
    session = one_session(store, wanted)
    if session.finished:
        context.say(f"{session.id} is complete: nothing to resume")
        return ExitCode.OK
    _require_model(context, store, session, context.load(options.flags()).settings, options)
    return _drive(context, store, session, options, "", resumed=True)


def _require_model(
    context: CommandContext,
    store: SessionStore,
    resumed: Session | None,
    settings: Settings,
    options: ResumeOptions,
    *,
    dry_run: bool = False,
) -> None:
    """Raise before anything is made where no model can be asked: a key is missing, or only a demo's recording answers."""
    from lopen.application.session_model import REPLAY, require_credentials

    if resumed is not None and context.resumable and not options.model:
        _refuse_demo(context, store, resumed)
    if not (dry_run or options.model.startswith(REPLAY)):
        require_credentials(settings)


def _ask_to_draft(context: CommandContext, module: str, model: str) -> None:
    """Ask the person before a paid conversation begins about a module that has no specification and no request.

    Raises:
        WrongUsage: nobody can be asked.
        LopenError: the person says no.
    """
    if spec_path(context.root, module).exists():
        return
    near = did_you_mean(module, find_modules(context.root), "")
    hint = near or f"to draft one: lopen spec {module} -p 'what it should do'"
    missing = f"{module} has no specification yet"
    question = f"{missing}{f'; {near}' if near else ''} Draft one in a paid conversation with {model}?"
    answer = None if context.json else context.presentation.confirms(question)
    if answer is None:
        raise WrongUsage(f"{missing}, and no -p says what it should do", hint=hint)
    if not answer:
        raise LopenError("nothing was drafted", hint=hint)


def _refuse_demo(context: CommandContext, store: SessionStore, session: Session) -> None:
    """Raise `LopenError` for the session of a demo: its recorded answers are those of `lopen demo`."""
    if command := demo_command(context.root, store, session):
        paid = f"to continue it with a paid model: lopen resume {session.id} --model sonnet"
        if lost := lost_demo(command):
            raise LopenError(
                f"{session.id} is the session of a demo: {lost}",
                hint=f"{LOST_DEMO[command]}: {command}\n{paid}",
            )
        raise LopenError(
            f"{session.id} is the session of a demo, whose answers are recorded",
            hint=f"to continue it: {command}\n{paid}",
        )


def _require_plan(session: Session) -> None:
    if not session.tree.components:
        raise _no_plan(session.module)


def _no_plan(module: str) -> LopenError:
    return LopenError(
        f"{module} has no recorded plan to build",
        hint=f"to plan it: lopen plan {module}; to plan and build it: lopen run {module}",
    )


def _unchanged(context: CommandContext, session: Session) -> bool:
    try:
        spec = load_specification(spec_path(context.root, session.module), module=session.module)
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
    from lopen.application.session_model import check_models
    from lopen.application.wiring import wired
    from lopen.application.work_trees import apart
    from lopen.loop.run import drive, pause
    from lopen.loop.startup import failed, start

    deny_inspection()  # no command of the model reads this process's memory, where the key is
    flags = options.flags()
    if options.max_cost is None and session.max_cost_usd is not None:
        flags["budget.max_cost_usd"] = session.max_cost_usd
    loaded = context.load(flags)
    check_models(context, loaded, options.model)
    with ExitStack() as stack:
        stack.enter_context(module_lock(context.root, session.module, checkout=not apart(loaded.settings)))
        if resumed:
            session = store.load(session.id)
            refuse_unfinished(session)
        if options.max_cost is not None:
            session = replace(session, max_cost_usd=options.max_cost)
        draft = only == "requirement_gathering"
        if dry_run:
            from lopen.application.dry_run import preview

            return preview(context, loaded, store, session, options, resumed=resumed, draft=draft)
        run = stack.enter_context(wired(context, loaded, store, session, options, draft=draft))
        tried, database = not resumed, signature_at(store.database.path)[:2]
        with _failing_disk(context):
            try:
                waits = start(run.loop, resumed=resumed)
                tried = True
                session = pause(run.loop, waits) if waits else drive(run.loop, UNTIL[only])
            except StorageError:
                raise
            except LopenError as error:
                with suppress(StorageError):  # the first failure is reported
                    failed(run.loop, error, tried=tried)
                raise
        code = finish(context, run.loop, session, only)
        if signature_at(store.database.path)[:2] != database:  # which SQLite does not notice
            raise StorageError(
                f"{store.database.path} was deleted or replaced while lopen ran: what it recorded since then is lost",
                hint="the commits are in the module's branch: git log; lopen status shows what is still known",
            )
    if context.presentation.detaches() and paused_by_person(session):
        from lopen.application.detached import run_detached

        again = [AGAIN[only], session.module] if only else ["resume", session.id]
        return run_detached(context, session.module, [*again, "-C", str(context.root), *options.arguments()])
    return code


@contextmanager
def _failing_disk(context: CommandContext) -> Iterator[None]:
    """Say of a failure to write that nothing more is saved: of lopen's state, or of any file where the disk fails."""
    from lopen.loop.run import unsaved

    try:
        yield
    except StorageError as error:
        raise unsaved(error) from error
    except OSError as error:
        if error.errno not in DISK:
            raise
        # Whichever file it is (of git or a hook, for example), the disk fails: stop before more is spent.
        where = error.filename or context.root
        raise unsaved(StorageError(f"{where}: {error.strerror}", hint=FREE_SPACE)) from error
