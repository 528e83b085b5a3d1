"""Projects with several modules, whose endpoint knows from a request which module it is for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from lopen.queue.shared import SharedQueue
from tests.endpoint import Route, ScriptedEndpoint
from tests.fake_api import Answer
from tests.project import Project, build, plan, specification
from tests.queue.postgres import PostgresServer

MakeProject = Callable[..., Project]


def asks_for(module: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return what tells the requests of a module's work."""

    def asks(body: Mapping[str, Any]) -> bool:
        judges = any(tool["name"] == "submit_verdict" for tool in body.get("tools", ()))
        return not judges and f"module: {module}\\n" in json.dumps(body)

    return asks


def builds(module: str) -> Callable[[Mapping[str, Any]], Answer]:
    """Return what plans and builds a module, however often it is asked: a killed process asks again."""

    def answer(body: Mapping[str, Any]) -> Answer:
        planning = "step: 6 " not in json.dumps(body)
        return plan() if planning else build(f"{module}-t1", module)

    return answer


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[MakeProject]:
    """Make a project with modules; `routes` replace the answers to some of them."""
    with ExitStack() as stack:

        def make(
            *modules: str,
            after: Mapping[str, str] | None = None,
            first: Callable[[dict[str, Any]], object] = bool,
            **answers: Any,
        ) -> Project:
            routes: list[Route] = [(asks_for(m), answers.get(m, builds(m))) for m in modules]
            endpoint = stack.enter_context(ScriptedEndpoint(routes=routes, first=first))
            project = Project(tmp_path / "project", endpoint, LOPEN_SANDBOX__MODE="none")
            for module in modules:
                text = specification(module)
                if earlier := (after or {}).get(module):
                    text = text.replace("\n---\n#", f"\nafter: [{earlier}]\n---\n#", 1)
                project.specify(module, text)
            project.commit("Specify")
            return project

        yield make


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def database(shared_postgres: PostgresServer) -> str:
    """Return the address of a new database."""
    return shared_postgres.new_database()


STARTED: list[subprocess.Popen[bytes]] = []


def processes_of(worker: int) -> list[int]:
    """Return a worker's process and those of its builds."""
    below = [int(p.name) for p in Path("/proc").glob("[0-9]*") if parent_of(p) == worker]
    return [worker, *below]


def parent_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


def kill(worker: subprocess.Popen[bytes]) -> None:
    """Kill a worker with its builds."""
    for process in processes_of(worker.pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    worker.wait()


@pytest.fixture(autouse=True)
def no_worker_stays() -> Iterator[None]:
    """Kill what a failed test has left."""
    yield
    while STARTED:
        worker = STARTED.pop()
        if worker.poll() is None:
            kill(worker)


class Machine:
    """A machine of its own: HOME, cache and checkout, with the remote and the queue in common."""

    def __init__(self, project: Project, folder: Path, url: str) -> None:
        assert project.endpoint is not None
        home = folder / "home"
        home.mkdir(parents=True)
        own = {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_DATA_HOME": str(home / ".data"),
        }
        self.project = Project(folder / "project", project.endpoint, LOPEN_SANDBOX__MODE="none", **own)
        self.project.variables["LOPEN_QUEUE__URL"] = url
        for key, value in (("user.name", "Worker"), ("user.email", "worker@example.org")):
            self.project.git("config", key, value)
        self.project.git("remote", "add", "origin", project.git("remote", "get-url", "origin"))
        self.project.git("fetch", "-q", "origin")

    def worker(self, *arguments: str, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start a worker in a group of processes of its own, by the command `inside` if one is given."""
        with (self.project.root.parent / "worker.log").open("ab") as log:
            started = subprocess.Popen(
                [*inside, sys.executable, "-m", "lopen", "worker", *arguments],
                cwd=self.project.root,
                env=self.project.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        STARTED.append(started)
        return started

    @property
    def output(self) -> str:
        """All that its workers and their builds have printed."""
        logs = [self.project.root.parent / "worker.log", *self.project.root.glob(".lopen/logs/build-*.log")]
        return "\n".join(f"{log.name}:\n{log.read_text()}" for log in logs if log.exists())


def with_remote(project: Project) -> Path:
    """Give the project a bare remote that has its HEAD; return its folder."""
    remote = project.root.parent / "remote.git"
    project.git("clone", "-q", "--bare", str(project.root), str(remote))
    project.git("remote", "add", "origin", str(remote))
    project.git("fetch", "-q", "origin")
    return remote


def taken(queue: SharedQueue, module: str, worker: str) -> int:
    """Queue an order and take its lease; return the fencing number."""
    [placed] = queue.placed(module)
    queued = queue.queue(placed)
    assert queued is not None
    assert queue.take(module, queued.fence, worker)
    return queued.fence
