"""Disturb workers at random and see that nothing is lost: `python -m tests.queue.sweep [MODULES WORKERS KILLS SEED]`.

Workers are killed with their builds; two are stopped for longer than a lease and woken; the database restarts twice;
the remote refuses pushes for a while. Modules form diamonds: of four, two come after the first and the last after both.
In the end each branch must have the tree of an undisturbed build, with one commit a task.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from lopen.queue.shared import LEASE_S
from tests.endpoint import Body, ScriptedEndpoint, tools
from tests.fake_api import Answer
from tests.project import Project, build_calls, component, plan, specification
from tests.queue.conftest import Machine, asks_for, kill, processes_of, with_remote
from tests.queue.postgres import PostgresServer

LONGEST_S = 1_500.0
QUIET_S = (2.0, 8.0)  # between two kills
ANSWER_S = 0.5
TASKS = ("Write it", "Extend it")
REQUESTS = 1 + len(TASKS)  # of the work on a module, and one of the judge a task
AHEAD = 8  # answers that may be given before the first kill; the last one waits for the last kill
REFUSING_S = 20.0
STOPS = 2


def earlier(names: Sequence[str]) -> dict[str, str]:
    """Return the modules before each: two diamonds, one on top of the other, and the rest alone."""
    found = {}
    for at, name in enumerate(names[:8]):
        first = at - at % 4
        before = {0: [first - 1] if first else [], 1: [first], 2: [first], 3: [first + 1, first + 2]}[at % 4]
        if before:
            found[name] = ", ".join(names[n] for n in before)
    return found


class Model:
    """Answers to the requests of all modules, counted; with `kills`, the answers keep pace with the kills."""

    def __init__(self, names: Sequence[str], kills: int = 0) -> None:
        self.names, self.kills, self.killed = names, kills, 0
        self.paid: Counter[tuple[str, str]] = Counter()
        self._guard = threading.Lock()
        self._begun = time.monotonic()

    def __call__(self, name: str, body: Body) -> Answer:
        opening = str(body["messages"][0]["content"])
        number = next((n for n in range(1, REQUESTS) if f"{name}-t{n}" in opening), 0)
        with self._guard:
            self.paid[name, f"t{number}"] += 1
            progress = len(self.paid)
        time.sleep(ANSWER_S if self.kills else 0)
        later = REQUESTS * len(self.names) - AHEAD
        while (progress - AHEAD) * self.kills > self.killed * later:
            time.sleep(0.1)
            if time.monotonic() > self._begun + LONGEST_S:
                break
        if not number:
            return plan(component("core", "AC-1"), tasks=TASKS)
        return tools(*build_calls(f"{name}-t{number}", name if number == 1 else f"{name}_{number}"))


class Endpoint(ScriptedEndpoint):
    """Answers the requests of different builds at the same time."""

    def __init__(self, model: Model) -> None:
        self._model, self._now = model, threading.local()
        super().__init__(routes=[(asks_for(name), lambda _: self._now.answer) for name in model.names])

    def _answer(self, body: Body) -> Answer:
        name = next((name for name in self._model.names if asks_for(name)(body)), None)
        if name is not None:
            self._now.answer = self._model(name, body)
        return super()._answer(body)


def make_project(folder: Path, endpoint: ScriptedEndpoint, names: Sequence[str]) -> Project:
    """Return a project with the modules specified and committed."""
    project = Project(folder, endpoint, LOPEN_SANDBOX__MODE="none")
    for name in names:
        text, after = specification(name), earlier(names).get(name, "")
        project.specify(name, text.replace("\n---\n#", f"\nafter: [{after}]\n---\n#", 1) if after else text)
    project.commit("Specify")
    return project


def accept(project: Project, *command: str) -> None:
    """Run a command that must succeed."""
    ran = project.spawned(*command)
    assert ran.code == 0, ran.out + ran.err


def undisturbed(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Build the modules without a queue; return the tree of each branch."""
    with Endpoint(Model(names)) as endpoint:
        project = make_project(folder, endpoint, names)
        accept(project, "approve", *names, "--yes")
        with (folder.parent / "undisturbed.log").open("wb") as log:
            subprocess.run(
                [sys.executable, "-m", "lopen", "run", "--all", "--unattended", "--jobs", "3"],
                cwd=folder,
                env=project.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
                timeout=LONGEST_S,
            )
        return {name: project.git("rev-parse", f"lopen/{name}^{{tree}}") for name in names}


class Sweep:
    """One disturbed build of all modules, on machines that share a database and a remote."""

    def __init__(self, folder: Path, server: PostgresServer, model: Model, seed: int) -> None:
        self.folder, self.server, self.model = folder, server, model
        self.rng = random.Random(seed)  # noqa: S311 - the same moments for the same seed
        self.url = server.new_database()
        self.machines: list[Machine] = []
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.stopped: dict[str, tuple[float, list[int]]] = {}  # until when, and its processes
        self.hits: Counter[str] = Counter()
        self.orders: list[dict[str, Any]] = []
        self.begun = time.monotonic()

    def say(self, text: str) -> None:
        """Tell what is done."""
        sys.stdout.write(f"{time.monotonic() - self.begun:6.1f} s  {text}\n")
        sys.stdout.flush()

    def sql(self, sql: str, **values: Any) -> list[Any]:
        """Ask the queue's database, or change it."""
        engine = sa.create_engine(self.url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.begin() as connection:
            result = connection.execute(sa.text(sql), values)
            found = list(result) if result.returns_rows else []
        engine.dispose()
        return found

    def prepare(self, endpoint: ScriptedEndpoint, count: int) -> None:
        """Make the project, its remote and the machines, order every module and start a worker on each machine."""
        project = make_project(self.folder / "project", endpoint, self.model.names)
        remote = with_remote(project)
        self.refusing = remote / "refusing"
        hook = remote / "hooks" / "pre-receive"
        hook.write_text(f"#!/bin/sh\ntest ! -e {self.refusing}\n", "utf-8")
        hook.chmod(0o755)
        for at in range(count):
            machine = Machine(project, self.folder / f"machine{at}", self.url)
            machine.project.git("reset", "-q", "--hard", project.git("rev-parse", "HEAD"))
            self.machines.append(machine)
        self.person = self.machines[0].project
        accept(self.person, "approve", *self.model.names, "--yes")
        accept(self.person, "queue", "add", *self.model.names, "--max-cost", "1000")
        for at in range(count):
            self.start(f"w{at}")

    def start(self, name: str) -> None:
        """Start the worker of a machine."""
        self.workers[name] = self.machines[int(name[1:])].worker("--name", name, "--jobs", "2")

    def kill(self, name: str) -> None:
        """Kill a worker with its builds, and let its leases expire as if 45 s had gone by."""
        kill(self.workers[name])
        self.sql("UPDATE lopen_orders SET expires = 1 WHERE worker = :name OR state = 'queued'", name=name)
        self.hits[name] += 1
        self.model.killed += 1

    def stop_one(self) -> bool:
        """Stop a worker that builds, with its builds, for longer than a lease lasts; False if none builds."""
        going = sorted(self.workers.keys() - self.stopped.keys())
        found = {name: processes_of(self.workers[name].pid) for name in going}
        busy = [name for name in going if len(found[name]) > 1]
        if len(going) < 2 or not busy:
            return False
        name = self.rng.choice(busy)
        mine = found[name]
        for process in mine:
            os.kill(process, signal.SIGSTOP)
        self.stopped[name] = time.monotonic() + LEASE_S + 5.0, mine
        self.say(f"{name} is stopped with {len(mine) - 1} builds")
        return True

    def wake(self) -> None:
        """Wake the workers whose time has come."""
        for name, (until, mine) in tuple(self.stopped.items()):
            if time.monotonic() > until:
                for process in mine:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGCONT)
                del self.stopped[name]
                self.say(f"{name} is awake")

    def run(self) -> None:
        """Disturb the workers until every kill is done and every module is complete."""
        kills = self.model.kills
        stops = self.stops_left = [max(1, kills * (at + 1) // (STOPS + 2)) for at in range(STOPS)]
        restarts, refusal, refuse_until = {max(1, kills // 2), max(1, kills - 2)}, max(1, kills // 3), 0.0
        while time.monotonic() < self.begun + LONGEST_S:
            time.sleep(self.rng.uniform(*QUIET_S))
            self.wake()
            if refuse_until and time.monotonic() > refuse_until:
                self.refusing.unlink()
                refuse_until = 0.0
                self.say("the remote takes pushes again")
            self.orders = self.person.lopen("queue", "list", "--json").named("order")
            states = Counter(o["state"] for o in self.orders)
            self.say(
                f"{dict(states)}  {self.model.killed} kills, {self.model.paid.total()} requests, {self.connections()} connections"
            )
            if states["failed"] or states["waits"] or states["complete"] == len(self.model.names):
                return
            going = sorted(self.workers.keys() - self.stopped.keys())
            if self.model.killed >= kills or not going:
                continue
            if stops and self.model.killed >= stops[0] and self.stop_one():
                stops.pop(0)
                continue
            name = self.rng.choice(going)
            self.kill(name)
            self.start(name)
            if self.model.killed == refusal:
                self.refusing.touch()
                refuse_until = time.monotonic() + REFUSING_S
                self.say("the remote refuses pushes")
            if self.model.killed in restarts:
                self.server.stop()  # every connection is cut
                self.server.start()
                self.say("the database has restarted")

    def connections(self) -> int:
        """Return how many connections the database has, but for this one's."""
        [(count,)] = self.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'lopen'")
        return int(count) - 1

    def end(self) -> list[str]:
        """Ask every worker to end; return which did not."""
        while self.stopped and time.monotonic() < self.begun + LONGEST_S:
            time.sleep(0.2)
            self.wake()
        for worker in self.workers.values():
            worker.send_signal(signal.SIGTERM)
        wrong = []
        for name, worker in self.workers.items():
            try:
                code = worker.wait(60)
            except subprocess.TimeoutExpired:
                code = None
            if code != 0:
                wrong.append(f"{name} ended with {code}")
                self.kill(name)
        return wrong

    def wrong(self, trees: Mapping[str, str]) -> list[str]:
        """Return what is not as it should be in the end."""
        found = [
            f"{o['module']} is {o['state']}: {o.get('reason')}"
            for o in self.orders
            if o["state"] != "complete"
        ]
        if self.model.killed < self.model.kills or self.stops_left:
            found.append(f"only {self.model.killed} kills were made, {len(self.stops_left)} stops are left")
        self.person.git("fetch", "-q", "origin", "+refs/heads/lopen/*:refs/heads/lopen/*")
        expected = {"docs({}): approve specification", *(f"feat({{}}): complete {t} in core" for t in TASKS)}
        for name in self.model.names:
            subjects = Counter(s for s in self.person.subjects(f"lopen/{name}") if f"({name})" in s)
            if subjects != Counter(s.format(name) for s in expected):
                found.append(f"{name} has the commits {dict(subjects)}")
            if self.person.git("rev-parse", f"lopen/{name}^{{tree}}") != trees[name]:
                found.append(f"{name} has another tree than an undisturbed build")
        twice = self.model.paid.total() - len(self.model.paid)
        if twice > self.model.killed + STOPS:
            found.append(f"{twice} requests were paid twice: {dict(self.model.paid)}")
        for table, sql in {
            "messages": "SELECT module, body FROM lopen_messages",
            "executions": "SELECT workflow_uuid, status FROM lopen_engine.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')",
        }.items():
            if left := self.sql(sql):
                found.append(f"{table} are left: {left}")
        return found + self.miscounted()

    def miscounted(self) -> list[str]:
        """Return what is wrong with the budgets: each request that was sent counts, and no promise is left."""
        [(body,)] = self.sql("SELECT body FROM lopen_budgets WHERE budget <> 'endpoint'")
        kept = json.loads(body)
        group = kept["budget"]
        sent = self.sent()
        told = sum(o.get("cost_usd", 0.0) for o in self.orders)
        rows = self.sql("SELECT body FROM lopen_checkpoints WHERE kind = 'budgets'")
        own = [json.loads(json.loads(row[0])["body"]) for row in rows]
        self.say(
            f"{sent} requests sent, {group['requests_used']} counted for ${group['cost_usd']:.4f};"
            f" the sessions alone: ${told:.4f}"
        )
        found = [f"promises are left: {kept['promised']}"] if kept["promised"] else []
        found += [
            f"{b['spec']['budget_id']} has {b['reserved']} tokens reserved" for b in own if b.get("reserved")
        ]
        if not sent <= group["requests_used"] <= sent + self.model.killed + STOPS:
            found.append(f"{sent} requests were sent, {group['requests_used']} are counted")
        if group["cost_usd"] < told - 1e-4:
            found.append(f"the sessions have cost ${told}, the group ${group['cost_usd']}")
        return found

    def sent(self) -> int:
        """Return how many requests reached the model and the judge."""
        return self.model.paid.total() + self.judged

    judged = 0

    def kept(self) -> str:
        """Return what the checkpoints of all modules take."""
        sql = "SELECT count(*), sum(length(body)), pg_total_relation_size('lopen_checkpoints') FROM lopen_checkpoints"
        [(rows, characters, on_disk)] = self.sql(sql)
        return f"{rows} rows, {characters:,} characters, {on_disk:,} bytes on disk"


def sweep(count: int, workers: int, kills: int, seed: int) -> list[str]:
    """Run it; return what is wrong in the end."""
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    names = [f"m{at:02}" for at in range(count)]
    trees = undisturbed(folder / "undisturbed", names)
    with ExitStack() as stack:
        server = PostgresServer()
        stack.callback(server.remove)
        model = Model(names, kills)
        endpoint = stack.enter_context(Endpoint(model))
        swept = Sweep(folder, server, model, seed)
        swept.prepare(endpoint, workers)
        try:
            swept.run()
            wrong = swept.end()
        finally:
            for worker in swept.workers.values():
                kill(worker)
        swept.judged = len(endpoint.oracle_requests)
        wrong += swept.wrong(trees)
        swept.say(f"kept: {swept.kept()}; killed: {dict(sorted(swept.hits.items()))}")
    if wrong:
        sys.stdout.write(f"left for a look: {folder}\n")
    else:
        shutil.rmtree(folder)
    return wrong


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the workers end too
    given = [int(word) for word in sys.argv[1:]]
    found = sweep(*(given + [6, 2, 6, 1][len(given) :]))
    sys.stdout.write(
        "\n".join([*found, "nothing is wrong" if not found else f"{len(found)} things are wrong"]) + "\n"
    )
    sys.exit(bool(found))
