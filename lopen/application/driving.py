"""Driving a session from the command line: find or start it, hold its lock, run it, and tell how it ended."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from lopen.application.command_context import CommandContext, ResumeOptions, RunOptions
from lopen.application.decisions import checked
from lopen.application.demo_project import RECORDED, as_demo, plays_recording
from lopen.application.estimate import preview
from lopen.application.open_store import created, looked_up, one_session, open_store
from lopen.application.reports import built_session, closing_lines
from lopen.application.reverting import refuse_unfinished
from lopen.application.workplaces import require_repository
from lopen.core.errors import ExitCode, LopenError, Stopped, StorageError, WrongUsage, did_you_mean
from lopen.core.files import signature_at
from lopen.core.money import apart, cents_above
from lopen.loop.context import SessionContext
from lopen.models.messages import NoCredentials
from lopen.sandbox.ancestry import deny_inspection
from lopen.settings.schema import Settings
from lopen.specification.modules import find_modules, module_name, spec_path
from lopen.specification.spec import module_specification
from lopen.store.folder import module_lock, require_free
from lopen.store.project_documents import write_plan
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.pauses import asks_now
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step

DISK = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EFBIG})
FREE_SPACE = "free some space or make the folder writable, then: lopen resume"
Only = Literal["", "requirement_gathering", "planning"]
UNTIL: dict[Only, frozenset[Step]] = {
    "": frozenset(),
    "requirement_gathering": PLANNING_STEPS,
    "planning": frozenset({Step.ITERATE_THROUGH_TASKS, Step.REPEAT}),
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
    if found is not None:
        if dry_run:
            return preview(context, store, found, loaded, options)
        return _continue(context, store, found, options, only)
    if not dry_run:
        require_free(context.root, module)
    if only == "requirement_gathering" and not options.prompt:
        _ask_to_draft(context, module, loaded.settings.models.requirement_gathering)
    last = None if options.new or options.prompt else built_session(context.root, store, module)
    if last is not None:
        write_plan(context.root, last)  # a killed process may not have written it
        context.say(f"{module} is complete (session {last.id}) and its specification has not changed")
        for line in closing_lines(context, last):
            context.say(line)
        context.emit("already_complete", session=last.id, module=module)
        return ExitCode.OK
    if not drafts:
        # No session starts without a specification that is readable and written.
        spec = module_specification(context.root, module)
        if store.approval(module) is None and not spec.problems:
            checked(spec)
    require_repository(context.root, module)
    now = datetime.now(UTC)
    if dry_run:
        return preview(context, store, Session("", module, now), loaded, options)
    try:
        _require_model(loaded.settings, options)
    except NoCredentials as error:
        if not drafts and store.approval(module) is None:
            error.message += f"; {module} also waits for your approval: lopen approve {module}"
        raise
    store = created(context, store)  # create nothing for a session that cannot start
    session = Session(store.new_id(module, now), module, now)
    return _drive(context, store, session, options, only, resumed=False)


def drive_session(context: CommandContext, wanted: str | None, options: ResumeOptions) -> ExitCode:
    """Resume a session; do nothing if it is finished."""
    store = open_store(context)
    session = one_session(context, store, wanted)
    if session.finished:
        context.say(f"{session.id} is complete: nothing to resume")
        context.emit("already_complete", session=session.id, module=session.module)
        return ExitCode.OK
    return _continue(context, store, session, options)


def _continue(
    context: CommandContext,
    store: SessionStore,
    session: Session,
    options: ResumeOptions,
    only: Only = "",
) -> ExitCode:
    """Resume a session; that of a demo goes on with its recorded answers unless a model is named."""
    from lopen.models.replay import ReplayMismatch

    require_free(context.root, session.module)
    _refuse_spent_limit(context, store, session, options)
    if plays_recording(store, session, options):
        context, options = as_demo(context), replace(options, model=RECORDED)
    _require_model(context.load(options.flags()).settings, options)
    try:
        return _drive(context, store, session, options, only, resumed=True)
    except ReplayMismatch as error:
        if options.model != RECORDED:
            raise
        raise LopenError(
            f"the demo's recorded answers do not fit what is here now: {error.message}",
            hint=f"to build another one: lopen demo; to go on with a paid model: lopen resume {session.id} --model sonnet",
        ) from error


def _refuse_spent_limit(
    context: CommandContext, store: SessionStore, session: Session, options: ResumeOptions
) -> None:
    """Raise `WrongUsage` for a limit that the session's cost has reached already. A group's is raised elsewhere."""
    own, most = looked_up(context, store.database).of(f"session:{session.id}"), options.max_cost
    if not most or own is None or own.cost_usd < most or options.group or session.limits.group:
        return
    spent, given = apart(own.cost_usd, most)
    least = cents_above(own.cost_usd * (1 + 1 / max(1, own.requests_used)))
    raise WrongUsage(
        f"--max-cost {given.removeprefix('$')} is spent already: {session.id} has cost {spent}",
        hint=f"the least that goes on: lopen resume {session.id} --max-cost {least}",
    )


def _require_model(settings: Settings, options: ResumeOptions) -> None:
    """Raise before anything is made where no model can be asked, because a key is missing."""
    from lopen.application.session_model import REPLAY, require_credentials

    if not options.model.startswith(REPLAY):
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


def _drive(
    context: CommandContext,
    store: SessionStore,
    session: Session,
    options: ResumeOptions,
    only: Only,
    *,
    resumed: bool,
) -> ExitCode:
    from lopen.application.earlier_modules import start_on_earlier
    from lopen.application.session_model import check_models
    from lopen.application.wiring import wired
    from lopen.loop.run import drive, pause, stopped
    from lopen.loop.startup import failed, start

    deny_inspection()  # no command of the model reads this process's memory, where the key is
    flags = options.flags()
    if options.max_cost is None and session.limits.max_cost_usd is not None:
        flags["budget.max_cost_usd"] = session.limits.max_cost_usd
    loaded = context.load(flags)
    check_models(context, loaded, options.model)
    with ExitStack() as stack:
        stack.enter_context(module_lock(context.root, session.module))
        if resumed:
            session = store.load(session.id)
            refuse_unfinished(session)
        if options.max_cost is not None:
            session = changes.limit_cost(session, options.max_cost)
        if options.group:
            session = changes.join_group(session, options.group)
        if session.branch is None:
            start_on_earlier(context, loaded.settings, store, session.module)
        draft = only == "requirement_gathering"
        loop = stack.enter_context(wired(context, loaded.settings, store, session, options, draft=draft))
        tried, database = not resumed, signature_at(store.database.path)[:2]
        with _failing_disk(context):
            try:
                try:
                    waits = start(loop, resumed=resumed)
                except Stopped:
                    if asks_now(loop.record.journal.session.pause):
                        stopped(loop)
                    elif session.id in store.ids():
                        context.say(f"everything up to here is saved; to continue: lopen resume {session.id}")
                    raise
                tried = True
                session = pause(loop, waits) if waits else drive(loop, UNTIL[only])
            except StorageError:
                raise
            except LopenError as error:
                with suppress(StorageError):  # the first failure is reported
                    failed(loop, error, tried=tried)
                raise
        code = finish(context, loop, session, only)
        if signature_at(store.database.path)[:2] != database:  # which SQLite does not notice
            raise StorageError(
                f"{store.database.path} was deleted or replaced while lopen ran: what it recorded since then is lost",
                hint="the commits are in the module's branch: git log; lopen status shows what is still known",
            )
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
        where = error.filename or f"{context.root} or the output"
        raise unsaved(StorageError(f"{where}: {error.strerror}", hint=FREE_SPACE)) from error


def finish(context: CommandContext, loop: SessionContext, session: Session, only: str) -> ExitCode:
    """Print the last line, run the notification command and return the exit code."""
    code, line, message = ExitCode.OK, "", f"{session.module} is complete"
    if session.status == "paused" and session.pause is not None:
        code, message = ExitCode.PERSON_NEEDED, session.pause.message
        line = f"next: {session.pause.command}"
        if only == "requirement_gathering" and session.pause.kind == "gate":
            code = ExitCode.OK
    elif not session.finished:
        # nothing runs any more, and nothing was interrupted
        loop.record.journal.save(changes.stop_run(session))
        phase = only.replace("_", " ")
        line = f"{phase} is complete; next: lopen run {session.module}"
        message = f"{phase} of {session.module} is complete"
    notify(loop, code, message)
    if line:
        context.say(line)
    elif session.finished:
        for line in closing_lines(context, session):
            context.say(line)
    return code


_DESKTOP = (
    "HOME",
    "USER",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)


def notify(loop: SessionContext, code: ExitCode, message: str) -> None:
    """Run the person's notification command on exit 3 and at the end, with the variables that a desktop's notifier
    needs.
    """
    command = loop.settings.workflow.notify_command
    session = loop.record.journal.session
    if not command:
        return
    try:
        subprocess.run(  # noqa: S602 - from the person's configuration, never the repository's
            command,
            shell=True,
            check=False,
            timeout=30,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                **{name: os.environ[name] for name in _DESKTOP if name in os.environ},
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LOPEN_MESSAGE": message,
                "LOPEN_MODULE": session.module,
                "LOPEN_SESSION": session.id,
                "LOPEN_EXIT_CODE": str(int(code)),
            },
        )
    except (OSError, subprocess.TimeoutExpired):
        return
