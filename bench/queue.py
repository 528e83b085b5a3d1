"""Builds side by side, and the queue: how much several at once take over one alone, and how much the queue adds.

What is compared is measured in turns in the same run, so that another program's load meets both. The model takes two
seconds for each answer, and a module eight answers.
"""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.session import home
from lopen.application.command_context import CommandContext
from lopen.queue.opening import open_queue
from lopen.queue.shared import BuildOrder, SharedQueue
from lopen.store.changed_rows import ChangedRows
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from tests.endpoint import Route, ScriptedEndpoint, status, tools
from tests.fake_api import Answer
from tests.project import Project, build, plan, specification
from tests.queue.conftest import asks_for, processes_of, taken
from tests.queue.postgres import PostgresServer
from tests.queue.test_workers import in_database

TURNS = 1_000
MEASURED = 10  # turns at each end
ANSWER = b"x" * 4_000
TARGET_MS = 20.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODULES = 8
SEARCHES = 5  # answers before the one that writes
ANSWER_S = 2.0
LONGEST_S = 900.0
ROUNDS = 3
WAITING = 1_000
WATCHED_S = 20.0
STARTUP_S = 5.0
ENGINE_ALONE = (
    "-c",
    "import sys, time; from lopen.queue.engine import Engine; Engine(sys.argv[1], 'nobody', 1); time.sleep(60)",
)
REFUSED_EACH = 10
RETRY_AFTER_S = 1.0
UNDER_WAY_S = 0.1  # a request that another process was sending when one was refused
ENGINE = ("dbos", "sqlalchemy")
WITHOUT_QUEUE = (
    ("status",),
    ("log", "m0"),
    ("approve", "m0", "--yes"),
    ("run", "--all", "--unattended"),
    ("show", "m0"),
)

Body = dict[str, Any]


def rows() -> Iterator[Row]:
    """Every figure, the long ones last."""
    for part in (imports, checkpoints, first_requests, waiting, side_by_side):
        yield from part()


@contextmanager
def new_database() -> Iterator[str]:
    """Yield the address of a database on a server of its own."""
    server = PostgresServer()
    try:
        yield server.new_database()
    finally:
        server.remove()


def model_of(module: str) -> Callable[[Body], Answer]:
    """Return the model's answers for a module: a plan, some searches, and then the work."""

    def answer(body: Body) -> Answer:
        if "step: 6 " not in str(body):
            return plan()
        turn = len(body["messages"]) // 2
        return (
            tools(("search_files", {"pattern": f"word {turn}"}))
            if turn < SEARCHES
            else build(f"{module}-t1", module)
        )

    return answer


class Model:
    """A model that takes its time, and refuses each so many requests for the rate of all at once."""

    def __init__(self, refused_each: int = 0) -> None:
        self._refused_each = refused_each
        self._numbers = itertools.count(1)
        self._chosen: set[int] = set()
        self.arrived: list[float] = []
        self.refused: list[float] = []

    def first(self, body: Body) -> None:
        """Wait as long as the model thinks."""
        self.arrived.append(time.monotonic())
        if self._refused_each and next(self._numbers) % self._refused_each == 0:
            self._chosen.add(id(body))
            self.refused.append(time.monotonic())
        else:
            time.sleep(ANSWER_S)

    def refuses(self, body: Body) -> bool:
        """Return True for a request that is refused."""
        return id(body) in self._chosen

    @property
    def too_early(self) -> int:
        """Requests that came while the endpoint had asked all to wait."""
        spans = [(at + UNDER_WAY_S, at + RETRY_AFTER_S) for at in self.refused]
        return sum(any(begin < at < end for begin, end in spans) for at in self.arrived)


@contextmanager
def approved(
    names: Sequence[str],
    first: Callable[[Body], object],
    refuses: Callable[[Body], bool] = bool,
    url: str = "",
) -> Iterator[Project]:
    """Yield a project with approved modules; `url`: of its queue."""
    refusal = (refuses, status(429, "slowly", retry_after=f"{RETRY_AFTER_S:g}"))
    routes: list[Route] = [refusal, *((asks_for(name), model_of(name)) for name in names)]
    with home() as folder, ScriptedEndpoint(routes=routes, first=first) as endpoint:
        project = Project(folder / "project", endpoint, LOPEN_SANDBOX__MODE="none", LOPEN_QUEUE__URL=url)
        for name in names:
            project.specify(name, specification(name))
        project.commit("Specify")
        assert project.spawned("approve", *names, "--yes").code == 0
        yield project


# side by side


def built_in(count: int, jobs: int, model: Model) -> float:
    """Return the seconds that so many modules take, so many of them at the same time."""
    names = [f"m{at}" for at in range(count)]
    with approved(names, model.first, model.refuses) as project:
        began = time.perf_counter()
        words = ["run", *names, "--unattended", *(["--jobs", str(jobs)] if count > 1 else [])]
        process = started(project, *words)
        assert process.wait(LONGEST_S) == 0, words
        took = time.perf_counter() - began
        assert all(project.holds(f"{name}.py", name) for name in names)
    return took


def side_by_side() -> Iterator[Row]:
    """Eight equal modules at once and by fours, over one alone and one after the other; and with refusals."""
    before = os.times()
    alone = built_in(1, 1, Model())
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    at_once = built_in(MODULES, MODULES, Model())
    slowed = Model(REFUSED_EACH)
    disturbed = built_in(MODULES, MODULES, slowed)
    by_fours, in_turn = built_in(MODULES, 4, Model()), built_in(MODULES, 1, Model())
    detail = f"{at_once:.0f} s over {alone:.0f} s, of which {used:.1f} s of a processor"
    yield Row("8 modules with --jobs 8, over one alone", at_once / alone, 1.5, detail=detail)
    detail = f"{by_fours:.0f} s over {in_turn:.0f} s"
    yield Row("8 modules with --jobs 4, over --jobs 1", by_fours / in_turn, 0.35, detail=detail)
    detail = f"{disturbed:.0f} s over {at_once:.0f} s, {len(slowed.refused)} refused"
    yield Row("8 modules, each 10th request refused, over none", disturbed / at_once, 1.3, detail=detail)
    yield Row("requests sent while the endpoint had all wait", slowed.too_early, 0, unit="")


# workers


def started(
    project: Project,
    *words: str,
    stdout: int = subprocess.DEVNULL,
    program: Sequence[str] = ("-m", "lopen"),
) -> subprocess.Popen[bytes]:
    """Start the command as a process of its own, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, *program, *words],
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def idle_worker(project: Project) -> subprocess.Popen[bytes]:
    """Start a worker, and return it when it takes builds."""
    worker = started(project, "worker", "--jobs", "1", stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert b"takes builds" in worker.stdout.readline()
    return worker


def end(process: subprocess.Popen[bytes]) -> None:
    """End a worker with its builds."""
    for each in processes_of(process.pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()


class Silent:
    """A model that tells when a request arrives, and never answers."""

    def __init__(self) -> None:
        self._arrived, self._closed = threading.Event(), threading.Event()

    def first(self, _: Body) -> None:
        self._arrived.set()
        self._closed.wait()

    def waited(self) -> float:
        """Return the seconds until the next request arrives."""
        began = time.perf_counter()
        self._arrived.clear()
        assert self._arrived.wait(LONGEST_S)
        return time.perf_counter() - began

    def close(self) -> None:
        """Let go of the requests."""
        self._closed.set()


@contextmanager
def silent(names: Sequence[str], url: str) -> Iterator[tuple[Project, Silent]]:
    """Yield a project whose model never answers."""
    model = Silent()
    with approved(names, model.first, url=url) as project:
        try:
            yield project, model
        finally:
            model.close()


def first_requests() -> Iterator[Row]:
    """An order's way to its first request beside that of `lopen run`; and a dead worker's build to its next one."""
    names = [f"m{at}" for at in range(2 * ROUNDS)]
    run, ordered, taken_over = [], [], []
    with new_database() as url, silent(names, url) as (project, model):
        worker = idle_worker(project)
        for alone, queued in zip(names[:ROUNDS], names[ROUNDS:], strict=True):
            process = started(project, "run", alone, "--unattended")
            run.append(model.waited())
            end(process)
            assert project.spawned("queue", "add", queued).code == 0
            ordered.append(model.waited())
            other = idle_worker(project)
            end(worker)
            in_database(url, "UPDATE lopen_orders SET expires = extract(epoch FROM clock_timestamp())")
            taken_over.append(model.waited())
            end(other)
            assert project.spawned("queue", "remove", queued).code == 0
            worker = idle_worker(project)
        end(worker)
    one, two = statistics.median(run), statistics.median(ordered)
    detail = f"{two:.1f} s after the command has ended, lopen run {one:.1f} s"
    yield Row("order to first request, less that of lopen run", two - one, 1.5, "s", detail=detail)
    detail = f"{', '.join(f'{each:.1f}' for each in taken_over)} s"
    yield Row("request of another worker, after the lease expired", max(taken_over), 5, "s", detail=detail)


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used, without its children's."""
    user, system = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def waiting() -> Iterator[Row]:
    """A worker that builds one module while a thousand wait."""
    with new_database() as url, silent(["m0"], url) as (project, model):
        os.environ["LOPEN_QUEUE__URL"] = url
        assert project.spawned("queue", "add", "m0").code == 0
        queue = open_queue(CommandContext(project.root))
        [first] = queue.shared.placed()
        for at in range(1, WAITING + 1):
            queue.shared.place(replace(first.order, module=f"waiting{at}"), priority=200)
        queue.begin_ready()
        queue.close()
        worker = idle_worker(project)
        model.waited()
        before = processor_s(worker.pid)
        time.sleep(WATCHED_S)
        used = processor_s(worker.pid) - before
        end(worker)
        engine = started(project, url, program=ENGINE_ALONE)
        time.sleep(STARTUP_S)
        before = processor_s(engine.pid)
        time.sleep(WATCHED_S)
        alone = processor_s(engine.pid) - before
        end(engine)
    detail = f"DBOS alone, idle: {100 * alone / WATCHED_S:.2f} %"
    yield Row("a worker with 1,000 waiting, of a core", 100 * used / WATCHED_S, 1, "%", detail=detail)


def imports() -> Iterator[Row]:
    """Commands that do not queue and load the engine of the queue all the same."""
    names = ["m0"]
    found = []
    with approved(names, bool) as project:
        for words in WITHOUT_QUEUE:
            command = [sys.executable, "-X", "importtime", "-m", "lopen", *words]
            ran = subprocess.run(
                command,
                cwd=project.root,
                env=project.environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
            assert "lopen.cli" in loaded
            if loaded & set(ENGINE):
                found.append(words[0])
    yield Row("commands that load DBOS and do not queue", len(found), 0, unit="", detail=", ".join(found))


# checkpoints


def checkpoints() -> Iterator[Row]:
    """A thousand turns of a session: its row, an answer, and ten events each."""
    with tempfile.TemporaryDirectory() as folder, new_database() as url:
        took = _turns(url, Path(folder))
    early, late = statistics.median(took[MEASURED : 2 * MEASURED]), statistics.median(took[-MEASURED:])
    yield Row("checkpoint of a turn, turns 11 to 20", early, TARGET_MS, "ms")
    yield Row("checkpoint of a turn, turns 990 to 1,000", late, TARGET_MS, "ms")


def _turns(url: str, folder: Path) -> list[float]:
    queue, database = SharedQueue(url, "bench"), Database(folder / "state.db")
    store, session = SessionStore(database), Session("m-20260101-1", "m", NOW)
    queue.place(BuildOrder("m", "", {}, {}, "", ""), 100)
    fence = taken(queue, "m", "bench")
    store.save(session, NOW)
    changed = ChangedRows(database)
    changed.note_all()
    took = []
    for turn in range(TURNS):
        with database.transaction() as connection:
            store.save(session, NOW)
            connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, ?)",
                (session.id, turn, turn, "assistant", ANSWER),
            )
            for _ in range(10):
                store.append_event(
                    session.id, NOW, "notice", '{"level": "info", "message": "a line", "hint": ""}'
                )
        begun = time.perf_counter()
        kept = changed.take()
        queue.checkpoint("m", fence, kept)
        changed.forget(kept)
        took.append(1_000 * (time.perf_counter() - begun))
    database.close()
    queue.close()
    return took
