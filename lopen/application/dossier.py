"""A module's dossier: its timeline, its standing in figures, and what proves each criterion.

`read_history` reads what the database has of a session; everything else makes values of it. Pages, `lopen report` and
programs show these values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from math import inf
from pathlib import PurePosixPath
from typing import Any, Literal

from lopen.application.reports import (
    CriterionState,
    criterion_states,
    every_session,
    present_verdicts,
    verdict_name,
)
from lopen.core import events as e
from lopen.judge.verdict import accepted, outcome, verdict_from_json
from lopen.store.audit import AuditTrail, VerifyResult, verifications
from lopen.store.sessions import SessionStore
from lopen.verification.mutation_check import MutantOutcome, mutation_from_json
from lopen.verification.runners import count_tests
from lopen.verification.test_run import TestRun, run_from_json
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State, Task

Kind = Literal["model", "verification", "judge", "waited"]
Progressing = Literal["working", "waiting", "complete"]
PLANNING, WHOLE = "Planning", "Components and module"
DRAWN_WAIT = 0.12  # of the time worked: the most that one wait takes of the drawing
SLICES = 24  # of a sparkline
SHORTEST_S = 0.001  # of a stretch that is drawn
# Names of tests and their files in a judge's sentence
_PATH = re.compile(r"[\w./-]+\.\w+")
_TEST_FILE = re.compile(r"(?:^|/)test_[^/]*$|[._](?:test|spec)\.\w+$|Test\.\w+$")
_TEST_NAME = re.compile(r"(?<![\w./-])test_\w+(?![\w/]|\.\w)")


@dataclass(frozen=True, slots=True)
class History:
    """The records of a session in the database. `verdicts` are those that count now, oldest first; `runs` are by tree."""

    events: tuple[e.Recorded, ...] = ()
    verdicts: tuple[Mapping[str, Any], ...] = ()
    verifications: tuple[VerifyResult, ...] = ()
    runs: Mapping[str, TestRun] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        """The number of its newest event."""
        return self.events[-1].seq if self.events else 0


def read_history(store: SessionStore, session: Session, known: History | None = None) -> History:
    """Return the session's history. `known` is an earlier reading of it, to which new events are added."""
    known = known or History()
    new = tuple(store.events(session.id, after=known.newest))
    if known.events and not new:
        return replace(known, verdicts=tuple(present_verdicts(store, session)))
    runs = AuditTrail(store.database, session.id, str).test_runs()
    return History(
        (*known.events, *new),
        tuple(present_verdicts(store, session)),
        tuple(verifications(store, session.id)),
        {tree: run_from_json(ran) for tree, ran in runs.items()},
    )


def running_call(store: SessionStore, session: str) -> tuple[str, datetime] | None:
    """Return the tool that a session's process runs now, and since when; None where it runs none."""
    row = store.database.connection.execute(
        "SELECT tool, started_at, outcome FROM tool_calls WHERE session=? ORDER BY seq DESC LIMIT 1",
        (session,),
    ).fetchone()
    if row is None or row["outcome"] is not None:
        return None
    return row["tool"], datetime.fromisoformat(row["started_at"])


# The timeline --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of work or waiting, from `start` to `end` in seconds of the drawing.

    `seconds` is its true length: a long wait is drawn shorter. `failed`: the verification failed, or the judge rejected.
    """

    kind: Kind
    start: float
    end: float
    seconds: float
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """The stretches of a task; `task` is "" for planning, and for the work on components and the module."""

    task: str
    name: str
    spans: tuple[Span, ...] = ()
    cost_usd: float = 0.0

    @property
    def worked_s(self) -> float:
        """The seconds of work on it, without waits."""
        return sum(span.seconds for span in self.spans if span.kind == "model")


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows in the order in which they began. `length` is the drawing's, `spending` the cost in equal slices of it."""

    rows: tuple[TimelineRow, ...] = ()
    length: float = 0.0
    worked_s: float = 0.0
    spending: tuple[float, ...] = ()


class _Drawing:
    """Rows while events are read; times are seconds since the first event."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.rows: dict[str, list[Span]] = {}
        self.costs: dict[str, float] = {}
        self.spent: list[tuple[float, float]] = []
        self.waits: list[tuple[float, float]] = []
        self.row = PLANNING
        self.began: float | None = 0.0  # the present stretch of work

    def add(self, kind: Kind, start: float, end: float, *, failed: bool = False) -> None:
        start = max(0.0, start)
        self.rows.setdefault(self.row, []).append(Span(kind, start, end, end - start, failed))

    def work_ends(self, at: float) -> None:
        if self.began is not None:
            self.rows.setdefault(self.row, []).insert(0, Span("model", self.began, at, at - self.began))
        self.began = None

    def wait(self, since: float, until: float) -> None:
        """End the work, wait, and begin to work again."""
        self.work_ends(since)
        self.add("waited", since, until)
        self.waits.append((since, until))
        self.began = until

    def read(self, event: e.Event, at: float) -> None:
        match event:
            case e.IterationStarted(task=task):
                self.work_ends(at)
                self.row, self.began = task or PLANNING, at
            case e.IterationEnded():
                self.work_ends(at)
                self.row, self.began = WHOLE, at
            case e.TurnEnded():
                if event.purpose == "oracle":
                    self.add("judge", at - event.seconds, at)
                self.costs[self.row] = self.costs.get(self.row, 0.0) + (event.cost_usd or 0.0)
                self.spent.append((at, event.cost_usd or 0.0))
            case e.VerificationRan():
                self.add("verification", at - event.seconds, at, failed=not event.passed)
            case e.VerdictGiven(passed=False):
                self.add("judge", at, at, failed=True)
            case e.SessionPaused() | e.SessionComplete() | e.SessionFailed():
                self.work_ends(at)


def _waited(before: e.Recorded, after: e.Event, approved: datetime | None) -> float:
    """Return the seconds that lopen waited since an event, for a person or a limit; infinity: until the one after it."""
    match after:
        case e.SessionStarted() | e.QuestionAsked(assumed=False):
            return inf  # a question that a terminal shows is told with its answer
        case e.SpecApproved() if approved is not None:
            return (approved - before.ts).total_seconds()
    match before.event:
        case e.Waiting(seconds=seconds) | e.ModelRetry(wait_s=seconds):
            return seconds
    return 0.0


def timeline(
    events: Sequence[e.Recorded],
    names: Mapping[str, str],
    now: datetime,
    state: Progressing,
    approved: datetime | None = None,
) -> Timeline:
    """Return the timeline of a session's events. `names` are those of its tasks; `approved`: of its specification.

    The last stretch of a session that is not complete, of work or of waiting, lasts until `now`. The timeline of a complete
    session ends with its completion.
    """
    if state == "complete":
        built = (n for n, told in enumerate(events, 1) if isinstance(told.event, e.SessionComplete))
        events = events[: max(built, default=len(events))]
    if not events:
        return Timeline()
    first, drawing = events[0].ts, _Drawing(names)
    drawing.read(events[0].event, 0.0)
    for before, recorded in pairwise(events):
        last, at = ((each.ts - first).total_seconds() for each in (before, recorded))
        rests = drawing.began is None
        seconds = inf if rests else _waited(before, recorded.event, approved)
        if seconds > 0:
            drawing.wait(last, min(at, last + seconds))
        if rests and not isinstance(recorded.event, e.SessionStarted):
            drawing.work_ends(at)
        drawing.read(recorded.event, at)
    end = (events[-1].ts - first).total_seconds()
    if state != "complete":
        last, end = end, max(end, (now - first).total_seconds())
        if state == "waiting":
            drawing.wait(last, end)
    drawing.work_ends(end)
    return _drawn(drawing, end)


def _drawn(drawing: _Drawing, end: float) -> Timeline:
    """Return the rows with long waits drawn shorter."""
    waits = drawing.waits
    worked = max(end - sum(until - since for since, until in waits), 0.0)
    most = max(1.0, DRAWN_WAIT * worked)

    def place(at: float) -> float:
        cut = sum(
            (min(at, until) - since) * max(0.0, 1 - most / (until - since))
            for since, until in waits
            if since < at and until > since
        )
        return at - cut

    rows = tuple(
        TimelineRow(
            "" if key in (PLANNING, WHOLE) else key,
            drawing.names.get(key, key),
            tuple(
                replace(span, start=place(span.start), end=place(span.end))
                for span in spans
                if span.failed or span.seconds > SHORTEST_S
            ),
            drawing.costs.get(key, 0.0),
        )
        for key, spans in sorted(drawing.rows.items(), key=lambda row: (row[0] == WHOLE, row[0] != PLANNING))
        if key != WHOLE or any(span.kind != "model" for span in spans)
    )
    length = place(end)
    slices = [0.0] * SLICES
    for at, usd in drawing.spent:
        slices[min(SLICES - 1, int(place(at) / max(length, 1e-9) * SLICES))] += usd
    return Timeline(rows, length, worked, tuple(slices))


# What proves each criterion -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proof:
    """A criterion with what it rests on: the tasks that were to meet it, the tests, and the verdict that said so.

    `passed` counts the named tests that lopen saw pass; `mutants` are those of the tasks that the tests noticed, and
    those that ran.

    `verdict` is the name of the one that decided, "" where none did. Its evidence names `tests` by their own names, or
    `test_files` with the tests in each, or names that no test run ran (`missing_tests`). `rejections` counts the verdicts that
    did not pass and answered "no" or "cannot tell" to it.
    """

    number: int
    criterion: CriterionState
    tasks: tuple[Task, ...] = ()
    tests: tuple[str, ...] = ()
    test_files: Mapping[str, int] = field(default_factory=dict)
    missing_tests: tuple[str, ...] = ()
    verdict: str = ""
    by_person: bool = False
    rejections: int = 0
    passed: int = 0
    mutants: tuple[int, int] = (0, 0)

    @property
    def seen(self) -> str:
        """The observations of lopen itself, as a phrase; empty if there are none."""
        noticed, ran = self.mutants
        tests = f"{self.passed} named {'test' if self.passed == 1 else 'tests'} passed" if self.passed else ""
        told = (tests, f"{noticed} of {ran} mutants of its tasks noticed" if ran else "")
        return ", ".join(filter(None, told))

    def to_json(self) -> dict[str, Any]:
        """Return the proof for a program."""
        own = asdict(self)
        own |= own.pop("criterion") | {"tasks": [task.id for task in self.tasks]}
        return own | {"commits": [task.commit for task in self.tasks if task.commit]}


def proofs(session: Session, history: History) -> tuple[Proof, ...]:
    """Return each criterion of the session with its proof, in the order of the specification."""
    states = criterion_states(session, history.verdicts, session.plan.criteria)
    outcomes = [(task, o.noticed) for task, o in _outcomes(history) if o.noticed is not None]
    return tuple(_proof(number, state, session, history, outcomes) for number, state in enumerate(states, 1))


def proof_of(store: SessionStore, criterion: str) -> Iterator[tuple[Session, Proof]]:
    """Yield the sessions with a criterion of that id, newest first, with its proof."""
    for found, session in every_session(store):
        if criterion in session.plan.criteria and session.tree.task(criterion) is None:
            proved = proofs(session, read_history(found, session))
            yield session, next(proof for proof in proved if proof.criterion.id == criterion)


def _proof(
    number: int,
    state: CriterionState,
    session: Session,
    history: History,
    outcomes: Sequence[tuple[str | None, bool]],
) -> Proof:
    """`outcomes`: of every mutant that ran, its task, and whether the tests noticed it."""
    about = [v for v in history.verdicts if any(c["id"] == state.id for c in v.get("criteria", ()))]
    saying_yes = [v for v in about if _answer(v, state.id)["holds"] == "yes" and v["passed"]]
    deciding = (saying_yes if state.holds == "yes" else about)[-1:]
    evidence = _answer(deciding[0], state.id)["evidence"] if deciding else state.evidence
    tasks = tuple(
        task
        for c in session.tree.components
        if state.id in c.criteria
        for task in c.tasks
        if state.id in c.criteria_of(task)
    )
    *_, latest = (None, *history.runs.values())
    run = history.runs.get(deciding[0].get("tree", ""), latest) if deciding else None
    tests, files, missing = _named(evidence, run)
    in_files = (
        {file: [test for test in run.single if test.startswith(f"{file}::")] for file in files} if run else {}
    )
    named = {*tests, *(test for each in in_files.values() for test in each)}
    own = {task.id for task in tasks}
    ran = [noticed for task, noticed in outcomes if task in own]
    rejected = [v for v in about if not v["passed"] and _answer(v, state.id)["holds"] != "yes"]
    return Proof(
        number,
        replace(state, evidence=evidence),
        tasks,
        tests,
        {file: len(each) for file, each in in_files.items()},
        missing,
        verdict_name(deciding[0]) if deciding else "",
        bool(deciding and deciding[0].get("by_person")),
        len(rejected),
        len(named & run.passed) if run else 0,
        (sum(ran), len(ran)),
    )


def _answer(verdict: Mapping[str, Any], criterion: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(c for c in verdict["criteria"] if c["id"] == criterion)
    return found


def _named(evidence: str, run: TestRun | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the tests that the evidence names, the test files it names instead, and the names of tests that did not run.

    Where the run does not tell single tests of a language, nothing is known of that language's names.
    """
    known = sorted(run.single if run else ())
    places = {test: test.partition("::")[0] for test in known}
    suffixes = {PurePosixPath(place).suffix for place in places.values()} - {""}
    files, missing = list[str](), list[str]()
    for path in dict.fromkeys(_PATH.findall(evidence)):
        found = {place for place in places.values() if f"/{place}".endswith(f"/{path.removeprefix('./')}")}
        files += found
        if not found and PurePosixPath(path).suffix in suffixes and _TEST_FILE.search(path):
            missing.append(path)
    own = {test: test.rpartition("::")[2].partition("[")[0] for test in known}
    tests = [
        test
        for test, name in own.items()
        if not (name.isalpha() and name.islower())  # a word of the sentence
        and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", evidence)
    ]
    tests = [test for test in tests if places[test] in files] or tests
    if any(name.startswith("test_") for name in own.values()):
        names = {*own.values(), *(PurePosixPath(place).stem for place in places.values())}
        missing += [name for name in dict.fromkeys(_TEST_NAME.findall(evidence)) if name not in names]
    return tuple(tests), () if tests else tuple(sorted(set(files))), tuple(missing)


# The standing in figures ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pace:
    """The time and money of a session. `left_s` and `expected_usd` follow from its own complete tasks; None: unknown."""

    worked_s: float = 0.0
    left_s: float | None = None
    spent_usd: float = 0.0
    expected_usd: float | None = None
    spending: tuple[float, ...] = ()


def pace(session: Session, line: Timeline, spent_usd: float) -> Pace:
    """Return the session's pace, and what its own complete tasks let expect."""
    rows = {row.task: row for row in line.rows if row.task}
    done = [rows[t.id] for t in session.tree.tasks if t.state is State.COMPLETE and t.id in rows]
    open_tasks = [t for t in session.tree.tasks if t.open]
    left = expected = None
    if done and open_tasks and not session.finished:
        begun = [rows[t.id] for t in open_tasks if t.id in rows]
        left = _rest([r.worked_s for r in done], [r.worked_s for r in begun], len(open_tasks))
        expected = spent_usd + _rest([r.cost_usd for r in done], [r.cost_usd for r in begun], len(open_tasks))
    return Pace(line.worked_s, left, spent_usd, expected, line.spending)


def _rest(done: Sequence[float], begun: Sequence[float], count: int) -> float:
    """Return what `count` open tasks, some begun, still take if each takes as much as the mean of those done."""
    each = sum(done) / len(done)
    return sum(max(each - used, each / 10) for used in begun) + each * (count - len(begun))


def tests_passing(history: History) -> int | None:
    """Return how many tests the last passed run of the test command ran; None where it does not tell."""
    runs = (v for v in reversed(history.verifications) if v.tool == "verify_tests" and v.passed)
    return next((count_tests(run.output) for run in runs), None)


def mutants_noticed(session: Session, history: History) -> tuple[int, int]:
    """Return how many mutants the tests noticed of those that ran, in the last check of each task."""
    kept = {t.id for t in session.tree.tasks if not t.given_up}
    ran = [o.noticed for task, o in _outcomes(history) if task in kept and o.noticed is not None]
    return sum(ran), len(ran)


def survivors(history: History) -> tuple[str, ...]:
    """Return the mutants that no test noticed in the last check of each task, each once."""
    return tuple(dict.fromkeys(str(each) for _, each in _outcomes(history) if each.noticed is False))


def _outcomes(history: History) -> Iterator[tuple[str | None, MutantOutcome]]:
    """Yield the outcome of each mutant in the last check of each task."""
    checks = {v.task: v.found for v in history.verifications if v.tool == "mutation_check" and v.found}
    for task, found in checks.items():
        yield from ((task, outcome) for outcome in mutation_from_json(found).outcomes)


def judged(verdict: Mapping[str, Any]) -> str:
    """Return the outcome of a stored verdict as a word."""
    found = verdict_from_json(verdict)
    return "accepted by a person" if found.by_person and accepted(found) else outcome(found)
