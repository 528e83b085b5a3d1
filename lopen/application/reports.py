"""The facts of a session, a task and a record, for every shell; each is read once, and every view formats it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lopen.application.command_context import CommandContext
from lopen.application.open_store import looked_up, newest_session
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError, did_you_mean
from lopen.core.events import SessionFailed, from_fields
from lopen.judge.verdict import established, rejection, verdict_from_json
from lopen.limits.admin_actions import NoSuch
from lopen.limits.budget import BudgetState
from lopen.limits.report import instant
from lopen.specification.modules import find_modules
from lopen.store.archives import ArchivedSession, archived_sessions, open_archive
from lopen.store.audit import (
    PREFIX,
    CallRecord,
    VerifyResult,
    last_failure,
    recorded_call,
    verifications,
)
from lopen.store.folder import is_worked_on
from lopen.store.journal import requested
from lopen.store.sessions import SessionStore
from lopen.workflow.next_step import displayed_step, scope_of, standing_work
from lopen.workflow.pauses import Question, asks_now
from lopen.workflow.session import Session
from lopen.workflow.steps import Step, phase_of
from lopen.workflow.task_tree import State, Task, progress

if TYPE_CHECKING:
    from lopen.git.repository import Repository
    from lopen.sandbox.known_secrets import KnownSecrets
    from lopen.specification.spec import Specification


CRITERION_WORDS = {"yes": "met", "no": "not met", "cannot_tell": "cannot tell", "open": "not judged"}
UNACCEPTED = "met, not accepted"  # the judge says so of work that it did not let pass, or that was taken back


@dataclass(frozen=True, slots=True)
class CriterionState:
    """An acceptance criterion as the newest verdict that judged it sees it; `open`: none that counts did.

    `state` is the word for it as every shell shows it, `evidence` what the judge names for it.
    """

    id: str
    text: str
    holds: Literal["yes", "no", "cannot_tell", "open"] = "open"
    evidence: str = ""
    state: str = CRITERION_WORDS["open"]

    @property
    def named(self) -> str:
        """The judge's words on it, each time under the same heading; "" where no verdict judged it."""
        if self.state == CRITERION_WORDS["open"]:
            return ""
        if not self.evidence:
            return f"{'' if self.holds == 'yes' else f'{self.state}; '}the judge named no evidence"
        return f"{'the judge names' if self.holds == 'yes' else f'{self.state}; the judge named'}: {self.evidence}"


def present_verdicts(store: SessionStore, session: Session) -> list[dict[str, Any]]:
    """Return the failed verdicts and the verdicts on work that is still there, oldest first."""
    standing = standing_work(session)
    return [v for v in store.verdicts(session.id) if not v["passed"] or v["subject"] in standing]


def held_criteria(session: Session, verdicts: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of the criteria to which accepted verdicts on work that stands said `yes`."""
    return (
        established(map(verdict_from_json, verdicts), standing_work(session)) & session.plan.criteria.keys()
    )


def criterion_states(
    session: Session, verdicts: Sequence[Mapping[str, Any]], wanted: Iterable[str]
) -> Iterable[CriterionState]:
    """Yield the wanted criteria of the session as the newest of all its `verdicts` (oldest first) on each sees them."""
    held = held_criteria(session, verdicts)
    judged: dict[str, Any] = {
        c["id"]: c
        for v in verdicts
        for c in v.get("criteria", ())
        if c["id"] not in held or (c["holds"] == "yes" and v["passed"])
    }
    for name in wanted:
        found = judged.get(name, {"holds": "open", "evidence": ""})
        holds: Any = "yes" if name in held else found["holds"]
        state = CRITERION_WORDS[holds]
        if holds == "yes" and name not in held:
            holds, state = "open", UNACCEPTED
        yield CriterionState(name, session.plan.criteria.get(name, ""), holds, found["evidence"], state)


INTERRUPTED = "the last run was interrupted; everything up to then is saved"


@dataclass(frozen=True, slots=True)
class Standstill:
    """The reason why an unfinished session does not run, how to mend it, and the command that continues it.

    `kind` is that of its pause; `ready` where nothing has to be settled first; else `failed` or `interrupted`.
    `cause` is the verdict that led to it, in lines for a person; `ways` are the ways on, for a shell.
    """

    kind: str
    message: str
    mend: str
    command: str
    cause: tuple[str, ...] = ()
    ways: str = ""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session as it stands, for every shell; `read_session` reads it once.

    `status` is "interrupted" where it should run and no process works on it, "waiting" where a process asks the
    person at its terminal. `failure` is the newest failed verification, if its command has not passed since.
    """

    session: Session
    status: str
    verdicts: tuple[Mapping[str, Any], ...]  # all of them, oldest first
    waits: Standstill | None
    failure: VerifyResult | None
    asked: tuple[str, ...]  # by a person, and not done yet

    @property
    def step(self) -> Step:
        """The step, as a person is shown it."""
        return displayed_step(self.session)

    @property
    def held(self) -> frozenset[str]:
        """The criteria that are met."""
        return held_criteria(self.session, self.verdicts)

    def row(self) -> dict[str, Any]:
        """Return the session as one row of a list, for a program."""
        session, done = self.session, progress(self.session.tree)
        return {
            "session": session.id,
            "status": self.status,
            "step": self.step.value,
            "waiting": None if self.waits is None else asdict(self.waits),
            "tasks_done": done.tasks_done,
            "tasks": done.tasks,
            "module": session.module,
            "created_at": instant(session.created_at),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the session with its tree, for a program."""
        session, scope = self.session, scope_of(self.session)
        row = self.row()
        judged = {v["subject"]: v["passed"] for v in self.verdicts if v["scope"] == "task"}
        return {
            **{name: row[name] for name in ("session", "module", "status", "step")},
            "phase": phase_of(self.step),
            "iterations": {"used": session.limits.iterations, "granted": session.limits.iterations_granted},
            "scope": {"completed": scope.completed, "original": scope.original},
            "branch": session.branch,
            "components": [
                {
                    "id": c.id,
                    "name": c.name,
                    "state": c.state.value,
                    "criteria": list(c.criteria),
                    "tasks": [
                        task_object(t) | {"failures": t.failures, "judged": judged.get(t.id)} for t in c.tasks
                    ],
                }
                for c in session.tree.components
            ],
            "verdicts": self.verdicts[-10:],
            **dialogue_object(session),
            "waiting": row["waiting"],
            "asked": list(self.asked),
        }

    @property
    def standstill_lines(self) -> list[str]:
        """Why it waits, in lines for a person, which end the report on it."""
        found = self.waits
        if found is None:
            return []
        label = "failed" if found.kind == "failed" else "waits"
        lines = [f"{label}: {found.message}"] if found.message else []
        lines += [f"  {line}" for line in (*found.mend.splitlines(), *found.cause)]
        lines += self.failure.excerpt().splitlines() if self.failure else []
        lines += [f"  {found.ways}"] if found.ways else []
        return [*lines, f"next: {found.command}"]


def read_session(root: Path, store: SessionStore, session: Session) -> SessionFacts:
    """Read what is known of a session; `store` holds it."""
    verdicts = tuple(store.verdicts(session.id))
    failure = None if session.finished else last_failure(store.database, session.id)
    status: str = session.status
    if status == "running" and not is_worked_on(root, session.module):
        status = "interrupted"
    elif status == "running" and asks_now(session.pause):
        status = "waiting"
    waits = _standstill(root, store, session, status, verdicts)
    return SessionFacts(session, status, verdicts, waits, failure, tuple(_asked(store, session)))


def _standstill(
    root: Path, store: SessionStore, session: Session, status: str, verdicts: Sequence[Mapping[str, Any]]
) -> Standstill | None:
    """Return why a session does not run; None if it is complete, or a process works on it and asks nothing."""
    command, pause = f"lopen resume {session.id}", session.pause
    if pause is not None and pause.kind == "gate" and is_approved(root, store, session.module):
        return Standstill("ready", "its specification is approved", "", command)
    if isinstance(pause, Question) and pause.answer is not None:
        return Standstill("ready", pause.message, "", command)
    if pause is not None:
        cause = rejection(verdicts, getattr(pause, "reason", None))
        return Standstill(
            pause.kind, pause.message, "", pause.command, tuple(cause), getattr(pause, "ways", "")
        )
    if status == "failed":
        spec, given = specification_of(root, session.module), store.approval(session.module)
        if spec is not None and given is not None and given.commands != spec.command_lines:
            command = f"lopen approve {session.module} --run"
        return Standstill("failed", *_newest_failure(store, session.id), command)
    if status == "paused":  # by a revert or a skip
        return Standstill("ready", "", "", command)
    return Standstill("interrupted", INTERRUPTED, "", command) if status == "interrupted" else None


def _asked(store: SessionStore, session: Session) -> Iterator[str]:
    """Yield a sentence on each request of a person that the session's process has not taken up yet."""
    for request in requested(store.database, session.id):
        match request.kind:
            case "skip":
                task = session.tree.task(request.body["task"])
                name = task.name if task else request.body["task"]
                yield f"{name} is skipped when its present attempt ends, unless it passes"
            case "tell":
                yield "the model hears what you told it with its next turn"
            case "pause":
                yield "it pauses after its present turn"


def archived_row(archived: ArchivedSession) -> dict[str, Any]:
    """Return an archived session as one row of a list, for a program."""
    begun, ended = instant(archived.created_at), instant(archived.archived_at)
    own = {"status": "archived", "step": Step.REPEAT.value, "waiting": None}
    return asdict(archived) | own | {"created_at": begun, "archived_at": ended}


def module_object(root: Path, store: SessionStore, name: str, budget: BudgetState | None) -> dict[str, Any]:
    """Return a module, for a program: its state, its progress, and its budget's tokens and cost."""
    session = newest_session(store, name)
    row = read_session(root, store, session).row() if session else {}
    return {
        "session": row.get("session", ""),
        "module": name,
        "state": row.get("status") or _unstarted_state(root, store, name),
        "step": row.get("step"),
        "tasks_done": row.get("tasks_done", 0),
        "tasks": row.get("tasks", 0),
        "tokens": budget.tokens_used if budget else 0,
        "cost_usd": budget.cost_usd if budget else 0.0,
        "unpriced_tokens": budget.unpriced_tokens if budget else 0,
    }


def _unstarted_state(root: Path, store: SessionStore, module: str) -> str:
    if store.approval(module):
        return "approved"
    spec = specification_of(root, module)
    return "specified" if spec and not spec.unwritten else "not written"


def task_object(task: Task) -> dict[str, Any]:
    """Return a task of a list, for a program."""
    return {"id": task.id, "name": task.name, "state": task.state.value, "commit": task.commit}


def dialogue_object(session: Session) -> dict[str, Any]:
    """Return what a person and the model settled in a session, for a program."""
    said = session.dialogue
    return {
        "answers": [{"question": asked, "answer": answer} for asked, answer in said.answers],
        "assumptions": list(said.assumptions),
        "accepted": list(said.accepted),
    }


def specification_of(root: Path, module: str) -> Specification | None:
    """Return the module's specification as it is now; None if it cannot be read."""
    from lopen.specification.spec import module_specification

    try:
        return module_specification(root, module)
    except LopenError:
        return None


def built_session(root: Path, store: SessionStore, module: str) -> Session | None:
    """Return the module's newest session if it completed the specification as it is now."""
    from lopen.specification.drift import compare_hashes, section_hashes

    last = newest_session(store, module)
    spec = specification_of(root, module) if last is not None and last.finished else None
    if last is None or spec is None:
        return None
    return None if compare_hashes(last.plan.sections, section_hashes(spec.outline)).any else last


def is_approved(root: Path, store: SessionStore, module: str) -> bool:
    """Return True if a person approved the specification as it is now."""
    from lopen.specification.drift import spec_hash

    spec, given = specification_of(root, module), store.approval(module)
    return spec is not None and given is not None and given.spec_hash == spec_hash(spec.outline)


def specification_line(root: Path, store: SessionStore, session: Session) -> list[str]:
    """Return one line that names the sections that changed since a person approved the specification, if any did."""
    from lopen.specification.drift import compare_hashes, section_hashes

    given = store.approval(session.module)
    if session.approval is None or given is None:
        return []
    spec = specification_of(root, session.module)
    if spec is None:
        return [f"the approved specification is gone or cannot be read: lopen check {session.module}"]
    drift = compare_hashes(given.sections, section_hashes(spec.outline)).named
    named = ", ".join((*drift.changed, *drift.new, *drift.removed))
    return [f"the specification has changed since its approval: {named}"] if named else []


def _newest_failure(store: SessionStore, session_id: str) -> tuple[str, str]:
    """Return message and hint of the newest failure; empty if it is archived or unreadable."""
    row = store.database.connection.execute(
        "SELECT body FROM events WHERE session=? AND name=? ORDER BY seq DESC LIMIT 1",
        (session_id, SessionFailed.name),
    ).fetchone()
    with suppress(ValueError, TypeError):
        found = from_fields(SessionFailed.name, json.loads(row["body"])) if row else None
        if isinstance(found, SessionFailed):
            return found.message, found.hint
    return "", ""


CALL_PREFIX = "call-"
VERDICT_PREFIX = "verdict-"
HASH_DIGITS = 8  # of a verdict's hash, in the name that a person sees


@dataclass(frozen=True, slots=True)
class TaskDetails:
    """A task with all that is known of it.

    `verdict` is the latest that covers the task, as stored: its own, else that on its component or the module.
    `earlier` are those before it on the task itself, oldest first. `diff` is its change in the repository, without secrets;
    `diff_unknown` is the reason why it cannot be read.
    """

    task: Task
    session: str
    module: str
    component: str
    criteria: tuple[CriterionState, ...]
    verifications: tuple[VerifyResult, ...]
    verdict: Mapping[str, Any] | None
    earlier: tuple[Mapping[str, Any], ...]
    tokens: int = 0  # judging is charged to the session
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    diff: str = ""
    diff_unknown: str = ""

    @property
    def verdicts(self) -> tuple[Mapping[str, Any], ...]:
        """Its verdicts, oldest first."""
        return self.earlier if self.verdict is None else (*self.earlier, self.verdict)

    def fields(self) -> dict[str, Any]:
        """Return the same as one plain object."""
        whole: dict[str, Any] = asdict(self)
        task = whole.pop("task")
        return {name: task[name] for name in SHOWN_OF_TASK} | {"state": self.task.state.value} | whole


SHOWN_OF_TASK = (
    "id",
    "name",
    "description",
    "type",
    "subtasks",
    "failures",
    "reasons",
    "given_up",
    "aside",
    "commit",
)


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """A stored verdict, tool call or verification, and the verifications that it ran or was given."""

    name: str
    session: str
    record: Mapping[str, Any] | CallRecord | VerifyResult
    verifications: tuple[VerifyResult, ...] = ()

    @property
    def kind(self) -> str:
        """Return "verdict", "call" or "verification", the first word of its name."""
        return self.name.partition("-")[0]

    def fields(self) -> dict[str, Any]:
        """Return the same as one plain object."""
        whole: dict[str, Any] = asdict(self)
        return {self.kind: whole.pop("record")} | whole


def details(context: CommandContext, store: SessionStore, wanted: str) -> TaskDetails | RecordDetails:
    """Return what `wanted` names: a task's or component's id, `verdict-HASH`, `call-N` or `verification-N`.

    A component stands for its latest verdict, a module for the latest of its session. Raises `LopenError` if there is
    nothing of that name.
    """
    for found, session in every_session(store):
        if session.tree.task(wanted) is not None:
            return task_details(context, found, session, wanted)
        if wanted.startswith(CALL_PREFIX):
            result = _call(found, session.id, wanted.removeprefix(CALL_PREFIX))
        elif wanted.startswith(PREFIX):
            result = _verification(found, session.id, wanted)
        else:
            result = _verdict(found, session, wanted)
        if result is not None:
            return result
    raise no_details(context, store, wanted)


def find_task(context: CommandContext, store: SessionStore, wanted: str) -> tuple[Session, Task]:
    """Return a task with the newest session that has it, archived ones last."""
    for _, session in every_session(store):
        if (task := session.tree.task(wanted)) is not None:
            return session, task
    raise no_details(context, store, wanted)


def no_details(context: CommandContext, store: SessionStore, wanted: str) -> NoSuch:
    """Return the error for a name that nothing has, or for a module of which there is nothing to show yet."""
    modules = find_modules(context.root)
    if store.ids(module=wanted):
        hint = f"its tasks: lopen status {wanted}; its change: lopen diff {wanted}"
        return NoSuch(f"{wanted} is a module without a verdict so far", hint=hint)
    if wanted in modules:
        return NoSuch(f"{wanted} is not built yet", hint=f"to build it: lopen run {wanted}")
    hint = "tasks and components: lopen status; criteria: lopen report; verdicts, calls and verifications: lopen log -v"
    text = f"there is no task, module, criterion, verdict, call or verification named {wanted}"
    return NoSuch(text, hint=did_you_mean(wanted, (*_names(store), *modules), hint))


def _names(store: SessionStore) -> Iterator[str]:
    """Yield the tasks, components, criteria and verdicts of the newest session."""
    session = store.latest()
    if session is not None:
        yield from (
            name for c in session.tree.components for name in (c.id, c.name, *(t.id for t in c.tasks))
        )
        yield from session.plan.criteria
        yield from map(verdict_name, store.verdicts(session.id))


def every_session(store: SessionStore) -> Iterator[tuple[SessionStore, Session]]:
    """Yield every session with its store, newest first, archived ones last; warn of unreadable ones."""
    for session in store.readable(store.ids()):
        yield store, session
    for archived in archived_sessions(store.database):
        try:
            opened = open_archive(store.archives, archived.session)
            session = opened.load(archived.session)
        except LopenError as error:
            store.warn(error.message)
        else:
            with closing(opened.database):
                yield opened, session


def task_details(context: CommandContext, store: SessionStore, session: Session, task_id: str) -> TaskDetails:
    """Return a task of the session in full."""
    task, owner = session.tree.task(task_id), session.tree.owner(task_id)
    if task is None or owner is None:
        raise no_details(context, store, task_id)
    verdicts = present_verdicts(store, session)
    own = [v for v in verdicts if task.id in (v["subject"], v.get("task"))]
    wider = [v for v in verdicts if v["subject"] in (owner.id, session.module)] if task.commit else []
    verdict = next(reversed(own or wider), None)
    budget = looked_up(context, store.database).of(f"task:{task.id}")
    try:
        diff, unknown = task_diff(context, session, task), ""
    except LopenError as error:
        diff, unknown = "", error.message
    return TaskDetails(
        task,
        session.id,
        session.module,
        owner.name,
        criteria=tuple(criterion_states(session, verdicts, owner.criteria)),
        verifications=tuple(v for v in verifications(store, session.id) if v.task == task.id),
        verdict=verdict,
        earlier=tuple(own[:-1]),
        tokens=budget.tokens_used if budget else 0,
        cost_usd=budget.cost_usd if budget else 0.0,
        unpriced_tokens=budget.unpriced_tokens if budget else 0,
        diff=diff,
        diff_unknown=unknown,
    )


def task_diff(context: CommandContext, session: Session, task: Task) -> str:
    """Return the change of a task: its commit, the work put aside when it was skipped, else the work tree against its
    start; "" before that.
    """
    if task.commit is None and (task.base is None or task.state is State.PENDING):
        return ""
    repository, secrets = _opened(context, session)
    aside = repository.references.tip(task.aside) if task.aside else None
    after = task.commit or aside or repository.snapshot()
    return secrets.redact(repository.diff(task.base or _parent(repository, session, after), after))


def task_changes(context: CommandContext, session: Session) -> list[tuple[Task, str]]:
    """Return each task with its change, "" where that cannot be read."""
    found = []
    for task in session.tree.tasks:
        change = ""
        with suppress(LopenError):
            change = task_diff(context, session, task)
        found.append((task, change))
    return found


def module_diff(context: CommandContext, session: Session) -> str:
    """Return the change of the whole module: from the start of its branch to its commits and the work tree."""
    repository, secrets = _opened(context, session)
    before = session.start_commit or next((c.base for c in session.tree.components if c.base), None)
    after = session.branch and repository.branch_tip(session.branch)
    if session.finished and after is None:  # deleted
        after = next(reversed([t.commit for t in session.tree.tasks if t.commit]), None)
    if not session.finished or after is None:
        after = repository.snapshot()
    return secrets.redact(repository.diff(before, after)) if before else ""


def merged_into(context: CommandContext, session: Session) -> str | None:
    """Return the branch that a complete session's work was merged into; None where it was not, or nothing tells."""
    return _branch_state(context, session)[0]


def gone_branch(context: CommandContext, session: Session) -> tuple[str, str] | None:
    """Return a line on a complete session's branch that was deleted and not merged, and the command that makes it
    again; None where it is there, or merged.
    """
    return _branch_state(context, session)[1]


def _branch_state(context: CommandContext, session: Session) -> tuple[str | None, tuple[str, str] | None]:
    """Return the answers of `merged_into` and `gone_branch`, which look at the same branches."""
    commits = [t.commit for t in session.tree.tasks if t.commit]
    branch, start = session.branch, session.start_branch
    if not (session.finished and commits and branch and start):
        return None, None
    with suppress(LopenError):
        person, _ = _person_repository(context)
        tip, base = person.branch_tip(branch), person.branch_tip(start)  # a clone does not follow it
        if base is not None and person.reachable(tip or commits[-1], base):
            return start, None
        if tip is None:
            said = f"{branch} does not exist any more, and its work was not merged into {start}"
            return None, (said, f"git branch {branch} {commits[-1][:12]}")
    return None, None


def closing_lines(context: CommandContext, session: Session) -> list[str]:
    """Return where the work of a complete session is, or the commands that show, merge and propose it."""
    if session.branch is None:
        return []
    merged, gone = _branch_state(context, session)
    if merged:
        return [f"{session.branch} is merged into {merged}"]
    if gone:
        return [gone[0], f"next: {gone[1]}"]
    return [
        f"next: lopen diff {session.module}   (shows the change)",
        f"      lopen merge {session.module}  (merges it if the verify commands pass on the result)",
        f"      lopen pr {session.module}     (opens a pull request)",
    ]


def _person_repository(context: CommandContext) -> tuple[Repository, KnownSecrets]:
    from lopen.application.workplaces import person_repository
    from lopen.sandbox.known_secrets import KnownSecrets

    secrets = KnownSecrets(context.root, os.environ)
    return person_repository(context.root, context.load().settings, SystemClock(), secrets), secrets


def _opened(context: CommandContext, session: Session) -> tuple[Repository, KnownSecrets]:
    """Return the repository in which the session works, and the secrets to hide in text that is read there."""
    from lopen.application.workplaces import clones_folder, opened
    from lopen.git.repository import CheckoutOptions

    person, secrets = _person_repository(context)
    folder = clones_folder(context.root) / session.module
    return opened(person, folder, CheckoutOptions(known=secrets.current)) or person, secrets


def _parent(repository: Repository, session: Session, commit: str) -> str:
    """Return the parent of a commit of lopen's: the task's start where its record is lost."""
    within = session.branch if session.branch and repository.branch_tip(session.branch) else "HEAD"
    known = {c.sha: c.parent for c in repository.session_commits(within=within)}
    return known.get(commit) or commit


def verdict_name(verdict: Mapping[str, Any]) -> str:
    """Return the name by which a person refers to a stored verdict."""
    return f"{VERDICT_PREFIX}{verdict['evidence_hash'][:HASH_DIGITS]}"


def _verdict(store: SessionStore, session: Session, wanted: str) -> RecordDetails | None:
    component = session.tree.component(wanted)
    subjects = {wanted, component.id if component else wanted}
    digits = wanted.removeprefix(VERDICT_PREFIX) if wanted.startswith(VERDICT_PREFIX) else ""
    for verdict in reversed(store.verdicts(session.id)):
        named = bool(digits) and verdict["evidence_hash"].startswith(digits)
        if named or wanted == session.module or verdict["subject"] in subjects:
            before = [v for v in verifications(store, session.id) if v.at <= verdict["given_at"]]
            latest = {v.tool: v for v in before}
            return RecordDetails(verdict_name(verdict), session.id, verdict, tuple(latest.values()))
    return None


def _call(store: SessionStore, session: str, number: str) -> RecordDetails | None:
    call = recorded_call(store, session, int(number)) if number.isdecimal() else None
    if call is None:
        return None
    ran = tuple(v for v in verifications(store, session) if v.call == call.seq)
    return RecordDetails(f"{CALL_PREFIX}{call.seq}", session, call, ran)


def _verification(store: SessionStore, session: str, name: str) -> RecordDetails | None:
    found = next((v for v in verifications(store, session) if v.name == name), None)
    return None if found is None else RecordDetails(name, session, found)
