"""A project at a glance: the decisions that wait, the builds that run, the progress of each module, and the limits.

`look_over` reads; the values hold everything that the first page shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from lopen.application import dossier
from lopen.application.command_context import CommandContext
from lopen.application.decisions import changes_since
from lopen.application.dossier import History, Pace
from lopen.application.estimate import expected
from lopen.application.event_lines import STEP_TITLES, act_words, line
from lopen.application.open_store import ProjectLimits, looked_up, one_session, store_with
from lopen.application.reports import (
    SessionFacts,
    Standstill,
    dialogue_object,
    merged_into,
    read_session,
    specification_of,
    task_object,
)
from lopen.core import events as e
from lopen.limits.admin_actions import NoSuch
from lopen.limits.budget import BudgetState
from lopen.limits.circuits import CircuitState
from lopen.settings.schema import Settings
from lopen.specification.drift import spec_hash
from lopen.specification.modules import find_modules
from lopen.specification.spec import Specification
from lopen.store.folder import is_worked_on
from lopen.store.sessions import SessionStore
from lopen.workflow.pauses import Confirmation, FailuresInRow, Question
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step
from lopen.workflow.task_tree import Progress, Task, progress

MERGED_FRESH = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Act:
    """The present act of a session's process, its beginning, and what a person asked that is not done yet."""

    text: str
    since: datetime
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait(Standstill):
    """A decision that a module waits for: the standstill with what a person wants to see before they decide.

    `findings` are those of the verdict that led here, `output` the end of the failed verification. `changes` are those
    of the specification since its last approval. `at_terminal`: a process waits too.
    """

    since: datetime | None = None
    question: Question | None = None
    task: Task | None = None
    findings: tuple[Mapping[str, Any], ...] = ()
    output: str = ""
    changes: tuple[str, ...] = ()
    estimate_usd: tuple[float, float] | None = None
    at_terminal: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """A module as it stands. `state` is a word for people; `mutants` are those noticed, and those that ran."""

    module: str
    description: str = ""
    session: str = ""
    state: str = "not written"
    step: str = ""
    branch: str = ""
    task: Task | None = None
    tasks: Progress = field(default_factory=Progress)
    criteria: tuple[int, int] = (0, 0)  # met, all
    tests: int | None = None
    mutants: tuple[int, int] = (0, 0)
    pace: Pace = field(default_factory=Pace)
    act: Act | None = None
    wait: Wait | None = None
    merged: str = ""  # the branch

    @property
    def ended(self) -> bool:
        """True if nothing is left to build."""
        return self.state in ("complete", "merged")


@dataclass(frozen=True, slots=True)
class ProjectOverview:
    """A project: its modules, and its limits where they can be read."""

    modules: tuple[Standing, ...]
    limits: ProjectLimits
    spent_today_usd: float
    spending: tuple[float, ...]  # in US dollars, over the last 24 hours

    @property
    def strained(self) -> tuple[BudgetState, ...]:
        """The budgets past their first threshold."""
        return tuple(b for b in self.limits.budgets if b.status != "active")

    @property
    def open_circuits(self) -> tuple[CircuitState, ...]:
        """The circuits that hold calls back."""
        return tuple(c for c in self.limits.circuits if c.state != "closed")


@dataclass
class Reading:
    """A reading of a project. It keeps earlier readings, so that only new events are read again."""

    context: CommandContext
    store: SessionStore
    settings: Settings
    histories: dict[str, History] = field(default_factory=dict)
    merged: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    estimates: dict[tuple[str, str], tuple[float, float] | None] = field(default_factory=dict)

    @cached_property
    def limits(self) -> ProjectLimits:
        """The project's budgets and circuits, for this reading."""
        return looked_up(self.context, self.store.database)

    def again(self, store: SessionStore, settings: Settings) -> Reading:
        """Return the next reading, which knows what this one read."""
        return Reading(self.context, store, settings, self.histories, self.merged, self.estimates)

    def history(self, store: SessionStore, session: Session) -> History:
        """Return the session's history as it is now."""
        found = dossier.read_history(store, session, self.histories.get(session.id))
        self.histories[session.id] = found
        return found

    def merged_into(self, session: Session) -> str:
        """Return the branch that the session's work was merged into, asking git again after a while."""
        at, into = self.merged.get(session.id, (None, ""))
        if at is None or datetime.now(UTC) - at > MERGED_FRESH:
            into = merged_into(self.context, session) or ""
            self.merged[session.id] = datetime.now(UTC), into
        return into


def look_over(reading: Reading) -> ProjectOverview:
    """Return the project as it is now."""
    now = datetime.now(UTC)
    modules = tuple(standing(reading, name) for name in find_modules(reading.context.root))
    today = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    costs = list(_costs(reading.store, now - timedelta(hours=24)))
    slices = [0.0] * dossier.SLICES
    for at, usd in costs:
        slices[max(0, dossier.SLICES - 1 - int((now - at).total_seconds() / 3_600))] += usd
    return ProjectOverview(
        modules, reading.limits, sum(usd for at, usd in costs if at >= today), tuple(slices)
    )


@dataclass(frozen=True)
class Dossier:
    """A module with a session: the values of its pages, its report and its JSON."""

    module: Standing
    session: Session
    history: History
    line: dossier.Timeline

    @cached_property
    def proofs(self) -> tuple[dossier.Proof, ...]:
        """The proof of each criterion."""
        return dossier.proofs(self.session, self.history)

    def to_json(self) -> dict[str, Any]:
        """Return the dossier for a program."""
        module = {k: v for k, v in asdict(self.module).items() if k not in ("act", "wait", "task", "tasks")}
        return module | {
            "tasks": [task_object(task) | {"skipped": task.given_up} for task in self.session.tree.tasks],
            "timeline": asdict(self.line),
            "criteria": [proof.to_json() for proof in self.proofs],
            "verdicts": list(self.history.verdicts),
            **dialogue_object(self.session),
            "survived_mutants": list(dossier.survivors(self.history)),
        }


def read_dossier(reading: Reading, module: str, wanted: str | None = None) -> Dossier:
    """Return the dossier of a module's newest session, or of the `wanted` one; raise `NoSuch` where it has none."""
    store = store_with(reading.store, wanted or module)
    session = one_session(reading.context, store, wanted or module)
    if session.module != module:
        raise NoSuch(
            f"{session.id} is a session of {session.module}, not of {module}",
            hint="to list them: lopen session list",
        )
    return _dossier(reading, store, session)


def _costs(store: SessionStore, since: datetime) -> Iterator[tuple[datetime, float]]:
    rows = store.database.connection.execute(
        "SELECT ts, json_extract(body, '$.cost_usd') AS usd FROM events WHERE name=? AND ts>=?",
        (e.TurnEnded.name, since.isoformat()),
    )
    return ((datetime.fromisoformat(row["ts"]), row["usd"] or 0.0) for row in rows.fetchall())


def standing(reading: Reading, module: str) -> Standing:
    """Return a module with its newest session; before its first one, without."""
    store = store_with(reading.store, module)
    session = store.latest(module=module)
    return _unstarted(reading, module) if session is None else _dossier(reading, store, session).module


def _dossier(reading: Reading, store: SessionStore, session: Session) -> Dossier:
    """Read the session once, and put its values together."""
    root, module = reading.context.root, session.module
    facts, spec = read_session(root, store, session), specification_of(root, module)
    history = reading.history(store, session)
    working = facts.status == "running"
    state: dossier.Progressing = "complete" if session.finished else "working" if working else "waiting"
    names = {task.id: task.name for task in session.tree.tasks}
    approved = session.approval.at if session.approval else None
    drawn = dossier.timeline(history.events, names, datetime.now(UTC), state, approved)
    budget = reading.limits.of(f"session:{session.id}")
    spent = budget.cost_usd if budget else sum(row.cost_usd for row in drawn.rows)
    merged = reading.merged_into(session) if session.finished else ""
    shown = Standing(
        module,
        spec.description if spec else "",
        session.id,
        _state(facts, merged),
        STEP_TITLES[facts.step],
        session.branch or "",
        session.task,
        progress(session.tree),
        (len(facts.held), len(session.plan.criteria) or len(spec.criteria if spec else ())),
        dossier.tests_passing(history),
        dossier.mutants_noticed(session, history),
        dossier.pace(session, drawn, spent),
        _act(store, facts, history) if working else None,
        _wait(reading, facts, history, spec),
        merged,
    )
    return Dossier(shown, session, history, drawn)


STATES = {  # kind of a standstill → the state as a person reads it
    "question": "asks",
    "gate": "to approve",
    "person": "paused",
    "interrupted": "interrupted",
    "ready": "can go on",
    "failed": "failed",
}


def _state(facts: SessionFacts, merged: str) -> str:
    if facts.session.finished:
        return "merged" if merged else "complete"
    if facts.waits is not None:
        return STATES.get(facts.waits.kind, "stopped")
    planning = facts.step in PLANNING_STEPS or facts.step is Step.DRAFT_SPECIFICATION
    return "planning" if planning else "working"


def _unstarted(reading: Reading, module: str) -> Standing:
    spec = specification_of(reading.context.root, module)
    if spec is None:
        return Standing(module)
    approval = reading.store.approval(module)
    shown = Standing(module, spec.description, criteria=(0, len(spec.criteria)))
    if approval is not None and approval.spec_hash == spec_hash(spec.outline):
        return replace(
            shown,
            state="approved",
            wait=Wait("approved", "it is approved and not built yet", "", f"lopen run {module}"),
        )
    if spec.problems or spec.unwritten:
        return shown
    message, command = "its specification waits for your approval", f"lopen approve {module} --run"
    wait = Wait("gate", message, "", command, estimate_usd=_estimate(reading, spec))
    return replace(shown, state="to approve", wait=wait)


def _estimate(reading: Reading, spec: Specification) -> tuple[float, float] | None:
    """Return what the build may cost: from finished builds, else from the specification's size; worked out once."""
    key = spec.module, spec_hash(spec.outline)
    if key not in reading.estimates:
        reading.estimates[key] = expected(reading.store, reading.limits.budgets, spec, reading.settings).usd
    return reading.estimates[key]


def _act(store: SessionStore, facts: SessionFacts, history: History) -> Act | None:
    """Return what the session's process does: its running call, the newest notice, or its request to the model."""
    if not history.events:
        return None
    newest, call = history.events[-1], dossier.running_call(store, facts.session.id)
    match newest.event:
        case e.Notice() | e.Waiting() | e.ModelRetry():
            return Act(line(newest.event) or "", newest.ts, facts.asked)
    if call is not None:
        return Act(act_words(call[0]), call[1], facts.asked)
    models = (
        r.event.model
        for r in reversed(history.events)
        if isinstance(r.event, e.IterationStarted | e.TurnEnded)
    )
    return Act(f"{next(models, 'the model')} is at work", newest.ts, facts.asked)


def _wait(reading: Reading, facts: SessionFacts, history: History, spec: Specification | None) -> Wait | None:
    session, still = facts.session, facts.waits
    if still is None:
        return None
    task, findings, output = None, (), ""
    reason = session.pause.reason if isinstance(session.pause, Confirmation) else None
    if isinstance(reason, FailuresInRow):
        task = session.tree.task(reason.subject)
    if still.kind in ("confirmation", "failed", "guardrail"):
        task = task or session.task
        subject = task.id if task else session.module
        about = [v for v in history.verdicts if subject in (v.get("task"), v["subject"])]
        failed = [v for v in about if not v["passed"]]
        findings = tuple(failed[-1]["findings"]) if failed else ()
        output = facts.failure.excerpt() if facts.failure and not findings else ""
    given = reading.store.approval(session.module)
    at_gate = still.kind == "gate" and spec is not None
    return Wait(
        **asdict(still),
        since=history.events[-1].ts if history.events else session.created_at,
        question=session.pause if isinstance(session.pause, Question) else None,
        task=task,
        findings=findings,
        output=output,
        changes=tuple(changes_since(spec, given)) if at_gate and spec and given else (),
        estimate_usd=_estimate(reading, spec) if at_gate and spec else None,
        at_terminal=is_worked_on(reading.context.root, session.module),
    )
