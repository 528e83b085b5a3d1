"""Kill workers at random and see that nothing is lost: `python -m tests.queue.sweep [MODULES WORKERS KILLS SEED]`.

Every second module comes after the two before it. In the end each branch must have the work of an undisturbed build in
one commit a task, and no more requests may have been paid than the build needs and workers were killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.endpoint import ScriptedEndpoint
from tests.fake_api import Answer
from tests.project import Project, build, plan, specification
from tests.queue.conftest import Machine, asks_for, with_remote
from tests.queue.postgres import PostgresServer
from tests.queue.test_workers import processes_of

LONGEST_S = 1_800.0
QUIET_S = (2.0, 12.0)  # between two kills
ANSWER_S = 0.5


def earlier(names: list[str]) -> dict[str, str]:
    """Return the modules before each: every second one comes after the two before it."""
    return {
        name: f"{names[at - 2]}, {names[at - 1]}" for at, name in enumerate(names) if at >= 2 and at % 2 == 0
    }


def answers(module: str, paid: Counter[str]) -> Callable[[Mapping[str, Any]], Answer]:
    """Return the answers to a module's requests, which are counted."""

    def answer(body: Mapping[str, Any]) -> Answer:
        time.sleep(ANSWER_S)
        paid[module] += 1
        return build(f"{module}-t1", module) if "step: 6 " in str(body) else plan()

    return answer


def kill(worker: subprocess.Popen[bytes], name: str, url: str) -> None:
    """Kill a worker with its builds, and let its leases expire as if 45 s had gone by."""
    for process in processes_of(worker.pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    worker.wait()
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        sql = "UPDATE lopen_orders SET expires = 1 WHERE worker = :name OR state = 'queued'"
        connection.execute(sa.text(sql), {"name": name})
    engine.dispose()


def sweep(count: int, workers: int, kills: int, seed: int) -> list[str]:
    """Run it, the database restarting twice; return what is wrong in the end."""
    rng = random.Random(seed)  # noqa: S311 - the same moments for the same seed
    names, paid = [f"m{at:02}" for at in range(count)], Counter[str]()
    folder, server = Path(tempfile.mkdtemp(prefix="sweep-")), PostgresServer()
    routes = [(asks_for(name), answers(name, paid)) for name in names]
    try:
        url = server.new_database()
        with ScriptedEndpoint(routes=routes) as endpoint:
            project = Project(folder / "project", endpoint)
            for name in names:
                text = specification(name)
                after = earlier(names).get(name, "")
                project.specify(
                    name, text.replace("\n---\n#", f"\nafter: [{after}]\n---\n#", 1) if after else text
                )
            project.commit("Specify")
            with_remote(project)
            machines = [Machine(project, folder / f"machine{at}", url) for at in range(workers)]
            for machine in machines:
                machine.project.git("reset", "-q", "--hard", project.git("rev-parse", "HEAD"))
            person = machines[0].project
            for command in (["approve", *names, "--yes"], ["queue", "add", *names]):
                ran = person.lopen(*command)
                assert ran.code == 0, ran.err
            running = {f"w{at}": machine.worker("--name", f"w{at}") for at, machine in enumerate(machines)}
            begun, left, orders = time.monotonic(), kills, []
            while time.monotonic() < begun + LONGEST_S:
                time.sleep(rng.uniform(*QUIET_S))
                orders = person.lopen("queue", "list", "--json").named("order")
                states = Counter(o["state"] for o in orders)
                sys.stdout.write(
                    f"{time.monotonic() - begun:6.1f} s  {dict(states)}  {left} kills left, {_connections(url)} connections\n"
                )
                if states["complete"] == count or states["failed"] or states["waits"]:
                    break
                if left:
                    name = rng.choice(sorted(running))
                    kill(running[name], name, url)
                    running[name] = machines[int(name[1:])].worker("--name", name)
                    left -= 1
                    if left in (1, kills // 2):
                        server.stop()  # every connection is cut
                        server.start()
            for name, worker in running.items():
                kill(worker, name, url)
            sys.stdout.write(f"kept: {_kept(url)}\n")
            return [*_wrong(person, names, orders), *_overpaid(paid, count, kills - left)]
    finally:
        server.remove()


def _connections(url: str) -> int:
    """Return how many connections the database has, but for this one's."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        count: int = connection.execute(
            sa.text("SELECT count(*) FROM pg_stat_activity WHERE usename = 'lopen'")
        ).scalar_one()
    engine.dispose()
    return count - 1


def _kept(url: str) -> str:
    """Return what the checkpoints of all modules take."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        sql = "SELECT count(*), sum(length(body)), pg_total_relation_size('lopen_checkpoints') FROM lopen_checkpoints"
        rows, characters, on_disk = connection.execute(sa.text(sql)).one()
    engine.dispose()
    return f"{rows} rows, {characters:,} characters, {on_disk:,} bytes on disk"


def _wrong(person: Project, names: list[str], orders: list[dict[str, Any]]) -> list[str]:
    wrong = [f"{o['module']} is {o['state']}: {o.get('reason')}" for o in orders if o["state"] != "complete"]
    person.git("fetch", "-q", "origin", "+refs/heads/lopen/*:refs/heads/lopen/*")
    for name in names:
        subjects = Counter(s for s in person.subjects(f"lopen/{name}") if f"({name})" in s)
        if subjects != Counter(
            [f"docs({name}): approve specification", f"feat({name}): complete Write it in core"]
        ):
            wrong.append(f"{name} has the commits {dict(subjects)}")
        wrong += [f"{name} lacks {f}" for f in (f"{name}.py", f"test_{name}.py") if not person.holds(f, name)]
    return wrong


def _overpaid(paid: Counter[str], count: int, kills: int) -> list[str]:
    most = 2 * count + kills
    return (
        [f"{paid.total()} requests were paid, at most {most} may be: {dict(paid)}"]
        if paid.total() > most
        else []
    )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    found = sweep(*(given + [6, 2, 6, 1][len(given) :]))
    sys.stdout.write(
        "\n".join([*found, "nothing is wrong" if not found else f"{len(found)} things are wrong"]) + "\n"
    )
    sys.exit(bool(found))
