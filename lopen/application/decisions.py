"""A person's decisions on a session, for the commands and for the server: confirm, answer, skip, pause.

Who decides is checked by the caller. A session that a process works on keeps what it is asked in the store and takes
it at its next safe point. See docs/reference/workflow.md.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from datetime import UTC, datetime

from lopen.application.command_context import CommandContext
from lopen.core.errors import LopenError, WrongUsage, did_you_mean
from lopen.core.events import QuestionAsked
from lopen.limits.admin_actions import NoSuch, confirm_budget
from lopen.limits.opening import open_limits
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.store.folder import Locked, is_running, module_holder, module_lock
from lopen.store.journal import PersonRequest, add_request
from lopen.store.project_documents import write_plan
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.next_step import task_skipped
from lopen.workflow.pauses import BudgetThreshold, Confirmation, Pause, Question
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Task


def confirm(context: CommandContext, store: SessionStore, session_id: str, note: str = "") -> Pause:
    """Let a session continue that asks for confirmation; return the pause that this ends.

    Raises:
        LopenError: it does not ask for one.
        Locked: a process works on it.
    """
    with module_lock(context.root, store.load(session_id).module):
        found = store.load(session_id)
        after, pause = changes.confirm_pause(found, note), found.pause
        assert pause is not None
        if isinstance(pause, Confirmation) and isinstance(pause.reason, BudgetThreshold):
            limits = open_limits(context.load().settings, store.database)
            confirm_budget(limits, f"module:{found.module}")
        store.save(after, datetime.now(UTC))
    return pause


def answer(context: CommandContext, store: SessionStore, session_id: str, text: str) -> Question:
    """Answer the question that a session waits for; return it as it was. A new answer replaces the last one.

    Raises:
        LopenError: there is no open question.
        WrongUsage: the answer is empty.
        Locked: a process works on the session.
    """
    with module_lock(context.root, store.load(session_id).module):
        found = store.load(session_id)
        question = found.pause
        if not isinstance(question, Question):  # a run closes the question when it uses the answer
            raise LopenError(f"{session_id} has no open question", hint=f"lopen status {found.module}")
        if not text.strip():
            raise _empty(session_id, question)
        answered = replace(question, answer=text)
        after = changes.ask_person(found, answered)
        event = QuestionAsked(question.text, question.options, question.default, text)
        body = KnownSecrets(context.root, os.environ).redact(event.body())
        now = datetime.now(UTC)
        with store.database.transaction():
            store.save(after, now)
            store.append_event(session_id, now, event.name, body)
    return question


def _empty(session: str, question: Question) -> WrongUsage:
    default = question.default
    hint = f"to use the default: lopen answer {session} {shlex.quote(default)}" if default.strip() else ""
    return WrongUsage(f"the answer is empty; the question is: {question.text}", hint=hint)


def skip(context: CommandContext, store: SessionStore, task: str, reason: str) -> tuple[Session, Task, bool]:
    """Skip a task; return its session, the task as it was, and False if a running session has yet to do it.

    Raises:
        LopenError: there is no such task, or it is complete.
    """
    session = _session_with(store, task)
    try:
        with module_lock(context.root, session.module):
            session = _session_with(store, task)
            before = session.tree.task(task)
            session, now = changes.skip_task(session, task, reason), datetime.now(UTC)
            event = task_skipped(session, task)
            body = KnownSecrets(context.root, os.environ).redact(event.body())
            with store.database.transaction():
                store.save(session, now)
                store.append_event(session.id, now, event.name, body)
            write_plan(context.root, session)
    except Locked:
        before = session.tree.task(task)
        changes.skip_task(session, task, reason)  # raises where it cannot be skipped
        add_request(store.database, session.id, PersonRequest("skip", {"task": task, "reason": reason}))
        assert before is not None
        return session, before, False
    assert before is not None
    return session, before, True


def _session_with(store: SessionStore, task: str) -> Session:
    """Return the newest session that has the task."""
    for session in store.readable(store.ids()):
        if session.tree.task(task) is not None:
            return session
    latest = store.latest()
    known = [t.id for t in latest.tree.tasks] if latest else []
    raise NoSuch(f"no task named {task}", hint=did_you_mean(task, known, "lopen status shows the tasks"))


def ask_to_pause(context: CommandContext, store: SessionStore, session_id: str) -> Session:
    """Ask the process that works on a session to stop at its next safe point; return the session.

    Raises:
        LopenError: no process works on it.
    """
    session = store.load(session_id)
    holder = module_holder(context.root, session.module)
    if not is_running(holder):
        raise LopenError(
            f"{session_id} is not running: it is {session.status}", hint=f"lopen status {session.module}"
        )
    add_request(store.database, session_id, PersonRequest("pause", {"pid": str(holder["pid"])}))
    return session


def release_circuit(context: CommandContext, store: SessionStore, circuit_id: str) -> str:
    """Clear the session's pause for this circuit; return the session's id if it can be resumed now.

    Return "" for a session that runs, that waits for something else, or that belongs to Claude Code.
    """
    session_id = circuit_id.removeprefix("session:")
    if session_id not in store.ids(unfinished=True):
        return ""
    try:
        with module_lock(context.root, store.load(session_id).module):
            session = store.load(session_id)
            if session.pause is not None and session.pause.kind != "circuit":
                return ""
            store.save(changes.clear_pause(session), datetime.now(UTC))
        return session_id
    except Locked:
        return ""
