"""A person's decisions, for the commands and the server: who is a person, approve, confirm, answer, skip, pause.

A variable that the model's commands carry (trusted ones, such as verify commands, do not) tells a session from a person.
Without it, an ancestor process decides: it is lopen itself, or holds a module's lock. A process namespace may hide the ancestors of a run that goes on out of sight. Of
Claude Code: the variables that it gives to its commands, and an ancestor that is `claude`. A session that a process
works on keeps requests in the store and takes them at its next safe point. See docs/reference/workflow.md.
"""

from __future__ import annotations

import getpass
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lopen.application.command_context import CommandContext
from lopen.application.workplaces import clone_of, workplace_of
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError, WrongUsage, did_you_mean
from lopen.core.escape import exact
from lopen.core.events import QuestionAsked
from lopen.files.skipped_work import skip as skip_task
from lopen.limits.admin_actions import NoSuch, confirm_budget
from lopen.limits.opening import open_limits
from lopen.sandbox.ancestry import ancestor_commands, enclosing_session, nearest_ancestor_in, runs_below_lopen
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.specification.drift import compare_hashes, section_hashes, spec_hash
from lopen.specification.modules import spec_path
from lopen.specification.spec import Problem, Specification, load_specification
from lopen.store.folder import (
    Locked,
    held_out_of_sight,
    is_locked,
    is_running,
    is_worked_on,
    lock_holder,
    module_holder,
    module_lock,
)
from lopen.store.journal import Journal, PersonRequest, add_request, take_requests
from lopen.store.project_documents import write_plan
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.pauses import BudgetThreshold, Confirmation, Pause, Question
from lopen.workflow.session import Approval, Session

# Claude Code sets these for every command that it runs; its other variables are a person's settings too.
CLAUDE_VARIABLES = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
_RUNTIMES = ("node", "nodejs", "bun", "deno")


class NotAPerson(LopenError):
    """A process of a session ran a command that only a person may run."""


def require_person(command: str, root: Path | None = None) -> None:
    """Raise `NotAPerson` if a session runs `lopen <command>`; `root` is the project whose sessions are checked."""
    holders = _holders(root, drives=False) if root is not None else {}
    held = nearest_ancestor_in(holders, holders) is not None
    if enclosing_session() is not None or held or runs_below_lopen():
        raise NotAPerson(
            f"`lopen {command}` is a person's command and cannot run inside a lopen session",
            hint="run it yourself in your own terminal",
        )
    if root is not None and _held_out_of_sight(root):
        raise NotAPerson(
            f"`lopen {command}` is a person's command, and a run of this project goes on that is out of sight from here",
            hint="run it where the run was started: outside of any container or process namespace of its own",
        )
    if trace := under_claude_code():
        raise NotAPerson(
            f"`lopen {command}` is a person's command and cannot run inside a Claude Code session ({trace})",
            hint="run it yourself in a terminal that Claude Code did not start",
        )


def require_outside_session(command: str, root: Path) -> None:
    """Raise `NotAPerson` if a process of a session that works in this project runs `lopen <command>`."""
    if not is_locked(root):
        return
    holders = _holders(root, drives=True)
    if enclosing_session() is not None or nearest_ancestor_in(holders, holders) is not None:
        raise NotAPerson(
            f"`lopen {command}` cannot run inside the lopen session that works on this project",
            hint="the session continues by itself; run other commands of lopen in your own terminal",
        )


def under_claude_code(environ: Mapping[str, str] = os.environ) -> str:
    """Return the evidence that a Claude Code session runs this process; "" if there is none."""
    name = next((name for name in CLAUDE_VARIABLES if environ.get(name)), "")
    if name:
        return f"{name} is set"
    return "below a `claude` process" if any(_is_claude(p, a) for p, a in ancestor_commands()) else ""


def _is_claude(program: str, arguments: Sequence[str]) -> bool:
    """True if a process is Claude Code: its own binary, or a JavaScript runtime that runs its script.

    An editor, a pager or a multiplexer with that name in its arguments is not.
    """
    first = os.path.basename(arguments[0]) if arguments else ""
    if "claude" in (first, os.path.basename(program)) or "/claude/versions/" in program:
        return True
    runtime = os.path.basename(program) or first
    if not runtime.startswith(_RUNTIMES):
        return False
    script = next((a for a in arguments[1:] if not a.startswith("-")), "")
    return os.path.basename(script) == "claude" or "/claude-code/" in script


def _held_out_of_sight(root: Path) -> bool:
    """Return True if a run goes on that this process cannot see, so that it may be below it unseen."""
    folder = root / ".lopen" / "locks"
    return any(held_out_of_sight(folder, path.stem) for path in folder.glob("*.lock"))


def _holders(root: Path, *, drives: bool) -> dict[int, int]:
    """Return process → when it started, of all who hold or held a lock here; without the time a number means nobody.

    With `drives` only of those who hold a module's lock now: a server, or who starts a run apart, held one once.
    """
    folder = root / ".lopen" / "locks"
    found = (
        (who.get("pid"), who.get("started"))
        for path in folder.glob("module-*.holder" if drives else "*.holder")
        for who in [lock_holder(folder, path.stem)]
        if not (drives and who.get("released"))
    )
    return {pid: started for pid, started in found if isinstance(pid, int) and isinstance(started, int)}


MOST_LISTED = 20
LONGEST_LINE = 100  # of a task's description at the gate


def specification(root: Path, store: SessionStore, module: str) -> Specification:
    """Load the module's current specification and store its criterion ids."""
    known = store.known_criteria(module)
    spec = load_specification(spec_path(root, module), module=module, known_ids=known)
    store.remember_criteria(module, {c.id: c.text for c in spec.criteria})
    return spec


def checked(spec: Specification) -> Specification:
    """Return the specification; raise `LopenError` if it has problems, or is not written yet."""
    if spec.problems:
        raise LopenError(
            f"the specification has problems:{_listed(spec.problems)}",
            hint=f"fix them, then: lopen approve {spec.module}",
        )
    if spec.unwritten:
        raise LopenError(
            f"the specification is not finished:{_listed(spec.unwritten)}",
            hint=f"write what is missing, then: lopen approve {spec.module}",
        )
    return spec


def _listed(problems: Sequence[Problem]) -> str:
    """Return the problems, each on a line of its own with its path in the project."""
    return "".join(f"\n  {'/'.join(p.path.parts[-3:])}:{p.line}: {p.message}" for p in problems[:MOST_LISTED])


def expected(spec: Specification, digest: str) -> None:
    """Raise `LopenError` unless `digest` is the beginning (8 characters or more) of the specification's hash."""
    found = spec_hash(spec.outline)
    if len(digest) < 8:
        raise WrongUsage(f"--expect {digest}: give at least 8 characters of the hash, such as {found[:16]}")
    if not found.startswith(digest):
        raise LopenError(
            f"the specification has changed: its hash is {found}, expected {digest}",
            hint=f"read it again, then: lopen approve {spec.module} --expect {found[:16]}",
        )


def changes_since(spec: Specification, given: Approval) -> list[str]:
    """Return one line for each section and verify command that differs from the approved one."""
    drift = compare_hashes(given.sections, section_hashes(spec.outline)).named
    named = (("changed", drift.changed), ("new", drift.new), ("removed", drift.removed))
    lines = [f"{kind}: {address}" for kind, addresses in named for address in addresses]
    now = spec.command_lines
    for name in dict.fromkeys((*given.commands, *now)):
        before, after = given.commands.get(name) or "none", now.get(name) or "none"
        if before != after:
            lines.append(f"command {name}: {exact(before)} → {exact(after)}")
    return lines


def recorded_plan(store: SessionStore, spec: Specification) -> list[dict[str, Any]]:
    """Return the plan that step 1 recorded for exactly this text, which an approval would build; empty without one."""
    session = store.latest(module=spec.module)
    if session is None or session.plan.made_for != spec_hash(spec.outline):
        return []
    return [
        {
            "component": component.name,
            "criteria": list(component.criteria),
            "tasks": [{"name": t.name, "description": _first_line(t.description)} for t in component.tasks],
        }
        for component in session.tree.components
    ]


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"


def show(context: CommandContext, store: SessionStore, spec: Specification) -> str:
    """Print the specification to approve, the plan that would be built, and the changes since the last approval.

    Return the specification's hash.
    """
    digest, given = spec_hash(spec.outline), store.approval(spec.module)
    context.say(f"{spec.module}: {spec.description}")
    context.say("acceptance criteria:")
    for criterion in spec.criteria:
        context.say(f"  {criterion.id}: {criterion.text}")
    context.say("verify commands (lopen will run them):")
    for command in spec.commands:
        context.say(f"  {command.name}: {exact(command.command or 'none')}")
    plan = recorded_plan(store, spec)
    if plan:
        context.say("plan (it would be built as it is):")
    for component in plan:
        context.say(f"  {exact(component['component'])}: {', '.join(component['criteria']) or 'no criteria'}")
        for task in component["tasks"]:
            context.say(f"    {exact(task['name'])}: {exact(task['description'])}")
    for warning in spec.warnings:
        context.warn(f"{warning.path.relative_to(context.root)}:{warning.line}: {warning.message}")
    if given is not None:
        context.say(f"since the approval of {given.at.astimezone():%Y-%m-%d %H:%M} by {given.who}:")
        for line in changes_since(spec, given) or ["nothing has changed"]:
            context.say(f"  {line}")
    context.say(f"specification hash: {digest}")
    return digest


def _user_name() -> str:
    """Return the user's name, or the user id if there is no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def record(
    store: SessionStore, spec: Specification, note: str, test_removals: Sequence[str] = ()
) -> Approval:
    """Store the approval: who, when, the note, every section's hash, and the files whose tests may be removed."""
    hashes = section_hashes(spec.outline)
    before = store.approval(spec.module)
    changed: tuple[str, ...] = ()
    if before is not None:
        drift = compare_hashes(before.sections, hashes)
        changed = (*drift.changed, *drift.removed) if drift.any else before.changed
    approval = Approval(
        who=_user_name(),
        at=datetime.now(UTC),
        note=note,
        spec_hash=spec_hash(spec.outline),
        sections=hashes,
        commands=spec.command_lines,
        changed=changed,
        test_removals=tuple(test_removals),
    )
    return store.approve(spec.module, approval, spec.text)


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


def answer(context: CommandContext, store: SessionStore, session_id: str, text: str) -> tuple[Question, bool]:
    """Answer the question that a session waits for; return it as it was, and True if a running session takes the answer.

    Until a run takes it, a new answer replaces the last one.

    Raises:
        LopenError: there is no open question.
        WrongUsage: the answer is empty.
    """
    question = _open_question(store, session_id, text)
    text = question.chosen(text)
    try:
        with module_lock(context.root, store.load(session_id).module):
            question = _open_question(store, session_id, text)
            secrets = KnownSecrets(context.root, os.environ)
            journal = Journal(store, store.load(session_id), SystemClock(), redact=secrets.redact)
            event = QuestionAsked(question.text, question.options, question.default, text)
            with store.database.transaction():
                take_requests(store.database, session_id, "answer")
                journal.save(changes.ask_person(journal.session, replace(question, answer=text)), event)
            return question, False
    except Locked:  # a terminal shows the question
        with store.database.transaction():
            take_requests(store.database, session_id, "answer")
            add_request(store.database, session_id, PersonRequest("answer", {"text": text}))
        return question, True


def _open_question(store: SessionStore, session_id: str, text: str) -> Question:
    session = store.load(session_id)
    question = session.pause
    if not isinstance(question, Question):  # a run closes the question when it uses the answer
        raise LopenError(f"{session_id} has no open question", hint=f"lopen status {session.module}")
    if not text.strip():
        default = question.default
        hint = (
            f"to use the default: lopen answer {session_id} {shlex.quote(default)}" if default.strip() else ""
        )
        raise WrongUsage(f"the answer is empty; the question is: {question.text}", hint=hint)
    return question


def tell(context: CommandContext, store: SessionStore, session_id: str, text: str) -> bool:
    """Tell the model something with the session's next turn; return whether a process works on the session now.

    Raises:
        LopenError: the session is complete.
        WrongUsage: the text is empty.
    """
    session = store.load(session_id)
    if session.finished:
        hint = f"to build more: lopen run {session.module} --new -p TEXT"
        raise LopenError(f"{session_id} is complete: nothing is left to tell the model", hint=hint)
    if not text.strip():
        raise WrongUsage("the text is empty", hint=f"lopen tell {session.module} TEXT")
    add_request(store.database, session_id, PersonRequest("tell", {"text": text}))
    return is_worked_on(context.root, session.module)


def skip(
    context: CommandContext, store: SessionStore, task: str, reason: str, *, keep: bool = False
) -> tuple[Session, bool]:
    """Skip a task; return its session, and False if a running session has yet to do it.

    What the task left uncommitted is put aside in a backup, unless `keep`.

    Raises:
        LopenError: there is no such task, or it is complete.
    """
    session = _session_with(store, task)
    try:
        with module_lock(context.root, session.module):
            session = _session_with(store, task)
            secrets = KnownSecrets(context.root, os.environ)
            journal = Journal(store, session, SystemClock(), redact=secrets.redact)
            has_clone = clone_of(context.root, session.module) is not None
            place = workplace_of(context, store, session, secrets) if has_clone else None
            session = skip_task(journal, place, task, reason, keep=keep)
            write_plan(context.root, session)
            return session, True
    except Locked:
        changes.skip_task(session, task, reason)  # raises where it cannot be skipped
        body = {"task": task, "reason": reason, "keep": "keep" if keep else ""}
        add_request(store.database, session.id, PersonRequest("skip", body))
        return session, False


def _session_with(store: SessionStore, task: str) -> Session:
    """Return the newest session that has the task."""
    for session in store.readable(store.ids()):
        if session.tree.task(task) is not None:
            return session
    latest = store.latest()
    known = [t.id for t in latest.tree.tasks] if latest else []
    raise NoSuch(f"no task named {task}", hint=did_you_mean(task, known, "lopen status shows the tasks"))


def ask_to_pause(context: CommandContext, store: SessionStore, session_id: str, why: str = "") -> Session:
    """Ask the process that works on a session to stop at its next safe point; return the session.

    `why`: the reason, where no person asks.

    Raises:
        LopenError: no process works on it.
    """
    session = store.load(session_id)
    holder = module_holder(context.root, session.module)
    if not is_running(holder):
        raise LopenError(
            f"{session_id} is not running: it is {session.status}", hint=f"lopen status {session.module}"
        )
    body = {"pid": str(holder["pid"])} | ({"why": why} if why else {})
    add_request(store.database, session_id, PersonRequest("pause", body))
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


def release_budget(context: CommandContext, store: SessionStore, budget_id: str) -> str:
    """Let the session that waits for this budget be resumed; return its id, "" where none does."""
    for session_id in store.ids(unfinished=True):
        with suppress(Locked), module_lock(context.root, store.load(session_id).module):
            session = store.load(session_id)
            waits = session.pause
            if waits is not None and waits.kind == "budget" and budget_id in waits.command.split():
                store.save(changes.settle_halt(session, f"lopen resume {session_id}"), datetime.now(UTC))
                return session_id
    return ""
