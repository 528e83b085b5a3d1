"""The queue: workers on several machines with one Postgres and one remote, killed, fenced and answered from elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lopen.queue.opening import LEAST_FREE
from lopen.queue.shared import AWAY_S
from tests.endpoint import status, tools
from tests.fake_api import Answer
from tests.needs import require_sandbox
from tests.project import TIMEOUT_S, build, plan
from tests.queue.conftest import Machine, MakeProject, asks_for, processes_of, with_remote
from tests.queue.postgres import PostgresServer
from tests.ran import HERE


def test_a_worker_of_this_machine_builds_what_is_ordered(make_project: MakeProject) -> None:
    project = make_project("alpha", "beta", after={"beta": "alpha"})
    refused = project.lopen("queue", "add", "alpha")
    assert (refused.code, "lopen approve alpha" in refused.err) == (1, True), refused.err
    assert project.lopen("approve", "alpha", "beta", "--yes").code == 0
    added = project.lopen("queue", "add", "beta", "alpha")
    assert added.code == 0, added.out + added.err
    assert [line.split()[:2] for line in project.lopen("queue").out.splitlines()] == [
        ["alpha", "queued"],
        ["beta", "waiting"],
    ]
    worked = project.spawned("worker", "--until-idle")
    assert worked.code == 0, worked.out + worked.err
    orders = {o["module"]: o for o in project.lopen("queue", "list", "--json").named("order")}
    assert [orders[m]["state"] for m in ("alpha", "beta")] == ["complete", "complete"], orders
    assert [project.holds(f"{m}.py", "beta") for m in ("alpha", "beta")] == [True, True]
    assert f"2 at a time, from sqlite:///{project.root}/.lopen/queue.db" in worked.out
    assert "alpha is complete; to build it anew" in project.lopen("queue", "add", "alpha").out
    again = project.lopen("queue", "retry", "alpha")
    assert (again.code, "it is complete" in again.err) == (1, True), again.err
    merged = project.lopen("merge", "--all")
    assert (merged.code, merged.out.count("verify-tests passed")) == (0, 2), merged.out + merged.err
    assert "in the queue: 2 complete" in project.lopen("status").out


class Held:
    """An answer to a build's second request that is given when the test says so, the first time it is asked for."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.plans = self.builds = 0

    def __call__(self, body: object) -> Answer:
        if "step: 6 " not in str(body):
            self.plans += 1
            return plan()
        self.builds += 1
        if self.builds == 1:
            self.asked.set()
            self.go_on.wait(TIMEOUT_S)
        return build(f"{self.module}-t1", self.module)


def ordered(
    make_project: MakeProject, tmp_path: Path, url: str, held: Callable[[object], Answer]
) -> tuple[Machine, Machine]:
    """Return two machines, of which the first has ordered the module alpha."""
    project = make_project("alpha", alpha=held)
    with_remote(project)
    one, two = (Machine(project, tmp_path / name, url) for name in ("one", "two"))
    for machine in (one, two):
        machine.project.git("reset", "-q", "--hard", project.git("rev-parse", "HEAD"))
    assert one.project.lopen("approve", "alpha", "--yes").code == 0
    added = one.project.lopen("queue", "add", "alpha")
    assert added.code == 0, added.err
    return one, two


def begun(
    make_project: MakeProject, tmp_path: Path, url: str, *arguments: str
) -> tuple[Held, Machine, Machine, subprocess.Popen[bytes]]:
    """Return the held answer, two machines, and the first one's worker, which waits for that answer."""
    held = Held("alpha")
    one, two = ordered(make_project, tmp_path, url, held)
    worker = one.worker(*arguments)
    assert held.asked.wait(TIMEOUT_S), one.output
    return held, one, two, worker


def until(reached: Callable[[], bool]) -> None:
    """Wait until something has come about."""
    deadline = time.monotonic() + TIMEOUT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def in_database(url: str, sql: str) -> int:
    """Run a statement; return how many rows it found or changed."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        rows = connection.execute(sa.text(sql)).rowcount
    engine.dispose()
    return rows


def expire_leases(url: str) -> None:
    """Let the database's clock be past every lease, as if 45 s had gone by."""
    in_database(url, "UPDATE lopen_orders SET expires = 1")


def at_start(machine: Machine, text: str) -> None:
    """Let every process of a machine execute this text first."""
    folder = machine.project.root.parent / "at_start"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text, "utf-8")
    machine.project.variables["PYTHONPATH"] = f"{folder}{os.pathsep}{HERE}"


def state(machine: Machine) -> dict[str, Any]:
    """Return the only order as a machine sees it."""
    [order] = machine.project.lopen("queue", "list", "--json").named("order")
    return order


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_a_build_goes_on_on_another_machine(
    make_project: MakeProject, tmp_path: Path, database: str, how: str
) -> None:
    held, one, two, first = begun(make_project, tmp_path, database)
    mine = processes_of(first.pid)
    for process in mine:
        os.kill(process, signal.Signals[how])
    expire_leases(database)
    second = two.worker("--until-idle")
    held.go_on.set()
    assert second.wait(TIMEOUT_S) == 0, two.output
    assert (state(two)["state"], held.plans, held.builds) == ("complete", 1, 2), two.output
    tips = two.project.git("ls-remote", "origin", "refs/heads/lopen/alpha")
    if how == "SIGSTOP":
        for process in mine:
            os.kill(process, signal.SIGCONT)
        until(lambda: "another worker has taken alpha over" in one.output)
        first.send_signal(signal.SIGTERM)
        assert first.wait(TIMEOUT_S) == 0, one.output
    assert two.project.git("ls-remote", "origin", "refs/heads/lopen/alpha") == tips
    two.project.git("fetch", "-q", "origin", "lopen/alpha:lopen/alpha")
    assert two.project.subjects("lopen/alpha")[-2:] == [
        "docs(alpha): approve specification",
        "feat(alpha): complete Write it in core",
    ]
    assert two.project.holds("alpha.py", "alpha")


def test_a_person_answers_from_a_machine_that_runs_no_worker(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    heard: list[str] = []

    def answer(body: object) -> Answer:
        heard.append(str(body))
        if "step: 6 " in str(body):
            return build("alpha-t1", "alpha")
        if "Whole numbers only? The person answered: yes" in str(body):
            return plan()
        question = {"question": "Whole numbers only?", "options": ["yes", "no"], "default": "no"}
        return tools(("ask_user", question))

    one, two = ordered(make_project, tmp_path, database, answer)
    assert one.worker("--until-idle").wait(TIMEOUT_S) == 0, one.output
    waits = state(two)
    assert (waits["state"], "Whole numbers only?" in waits["reason"]) == ("waits", True), waits
    assert waits["command"].startswith("lopen answer alpha-"), waits
    assert "Whole numbers only?" in two.project.lopen("log", "alpha").out
    shown = two.project.lopen("status", "alpha")
    assert (shown.code, "alpha is in the queue, not complete: waits" in shown.err) == (1, True), shown.err
    for command, why in (
        ("skip alpha-t9 --reason x", "no task named alpha-t9"),
        ("pause alpha", "is not running: it is waits"),
    ):
        vain = two.project.lopen(*command.split())
        assert (vain.code, why in vain.err) == (1, True), vain.out + vain.err
    said = two.project.lopen("answer", "alpha", "yes")
    assert said.code == 0, said.out + said.err
    assert "sent: the worker that takes alpha up next" in said.out
    assert one.worker("--until-idle").wait(TIMEOUT_S) == 0, one.output
    assert state(two)["state"] == "complete", one.output
    assert "criteria 1/1" in two.project.lopen("status", "alpha").out
    merged = two.project.lopen("merge", "alpha")
    assert (merged.code, "verify-tests passed" in merged.out) == (0, True), merged.out + merged.err
    assert (two.project.root / "alpha.py").exists()
    assert "Write it: complete" in two.project.lopen("pr", "alpha", "--print").out


def test_a_specification_that_is_not_the_approved_one_is_refused_and_named(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    one, two = ordered(make_project, tmp_path, database, lambda _: plan())
    in_database(database, "UPDATE lopen_orders SET body = replace(body, 'It computes.', 'It steals.')")
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    refused = state(one)
    assert refused["state"] == "failed"
    assert refused["reason"].startswith("the specification of alpha is not the approved one"), refused
    assert one.project.requests == []


def test_a_worker_that_is_asked_to_end_finishes_the_turn_and_hands_back(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held, one, two, first = begun(make_project, tmp_path, database)
    first.send_signal(signal.SIGTERM)
    until(lambda: "pause_requested" in one.output)
    held.go_on.set()
    assert first.wait(TIMEOUT_S) == 0, one.output
    assert state(two)["state"] == "queued", one.output
    log = two.project.lopen("log", "alpha").out
    assert "the worker stopped, and another takes it up; everything is saved" in log, log
    vain = two.project.lopen("answer", "alpha", "yes")
    assert (vain.code, "has no open question" in vain.err) == (1, True), vain.out + vain.err
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    assert (state(two)["state"], held.plans, held.builds) == ("complete", 1, 1), two.output


def test_a_build_that_was_ordered_anew_is_begun_anew_once(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held = Held("alpha")
    one, two = ordered(make_project, tmp_path, database, held)
    assert one.project.lopen("queue", "add", "alpha", "--new").code == 0
    first = one.worker()
    assert held.asked.wait(TIMEOUT_S), one.output
    first.send_signal(signal.SIGTERM)
    until(lambda: "pause_requested" in one.output)
    held.go_on.set()
    assert first.wait(TIMEOUT_S) == 0, one.output
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    assert (state(two)["state"], held.plans, held.builds) == ("complete", 1, 1), two.output


def test_a_worker_that_is_asked_to_end_while_the_database_is_away_ends(
    make_project: MakeProject, tmp_path: Path, database: str, shared_postgres: PostgresServer
) -> None:
    held, one, _, first = begun(make_project, tmp_path, database)
    shared_postgres.stop()
    try:
        first.send_signal(signal.SIGTERM)
        held.go_on.set()
        assert first.wait(AWAY_S / 2) == 0, one.output
    finally:
        shared_postgres.start()


def test_a_refusal_for_the_rate_of_requests_lets_the_builds_of_every_machine_wait(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    machines: list[Machine] = []
    arrived: dict[str, list[float]] = {"alpha": [], "beta": []}

    def first(body: dict[str, Any]) -> None:
        module = next((name for name in arrived if asks_for(name)(body)), None)
        if module is not None:
            arrived[module].append(time.monotonic())
            if module == "beta":  # its answer comes when alpha has been refused, on the other machine
                until(
                    lambda: (
                        in_database(
                            database, "SELECT 1 FROM lopen_budgets WHERE budget = 'endpoint' AND body <> '{}'"
                        )
                        > 0
                    )
                )

    refusals = [status(429, "slowly", retry_after="1"), plan(), build("alpha-t1", "alpha")]
    project = make_project("alpha", "beta", first=first, alpha=refusals)
    with_remote(project)
    machines += [Machine(project, tmp_path / name, database) for name in ("one", "two")]
    for machine in machines:
        machine.project.git("reset", "-q", "--hard", project.git("rev-parse", "HEAD"))
    person = machines[0].project
    for command in (["approve", "alpha", "beta", "--yes"], ["queue", "add", "alpha", "beta"]):
        assert person.lopen(*command).code == 0
    workers = [machine.worker("--jobs", "1", "--until-idle") for machine in machines]
    assert [worker.wait(TIMEOUT_S) for worker in workers] == [0, 0]
    assert [len(arrived[m]) for m in ("alpha", "beta")] == [3, 2], [machine.output for machine in machines]
    assert min(arrived["alpha"][1], arrived["beta"][1]) >= arrived["alpha"][0] + 0.99


def test_a_module_that_is_removed_while_it_runs_is_dropped_and_can_be_ordered_again(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held, one, two, first = begun(make_project, tmp_path, database, "--until-idle")
    assert two.project.lopen("queue", "remove", "alpha").code == 0
    held.go_on.set()
    assert first.wait(TIMEOUT_S) == 0, one.output
    assert "or it was removed from the queue: this process drops its work" in one.output
    assert two.project.lopen("queue", "list", "--json").named("order") == []
    assert one.project.lopen("queue", "add", "alpha").code == 0
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    assert state(one)["state"] == "complete", two.output


def test_what_waited_here_is_handed_over_and_one_build_counts(make_project: MakeProject) -> None:
    project = make_project("alpha")
    waits = project.lopen("run", "alpha", "--unattended")
    [here] = [s["session"] for s in project.lopen("session", "list", "--json").named("session")]
    assert (waits.code, waits.last_line) == (3, "next: lopen approve alpha --run"), waits.out + waits.err
    assert project.lopen("approve", "alpha", "--yes").code == 0
    added = project.lopen("queue", "add", "alpha")
    assert f"{here}, which waited here, is archived" in added.out, added.out + added.err
    for command in ("run", "resume", "plan", "status"):
        refused = project.lopen(command, "alpha")  # neither may pay for it again
        assert (refused.code, "alpha is in the queue, not complete" in refused.err) == (1, True), command
    for words in (["run", "alpha"], ["run"], ["approve", "alpha", "--yes", "--run"]):
        assert "to build it here: lopen queue remove alpha" in project.lopen(*words).err, words
    assert project.spawned("worker", "--until-idle").code == 0
    paid = len(project.requests)
    assert [
        (m["module"], m["state"]) for m in project.lopen("status", "--json").named("status")[0]["modules"]
    ] == [("alpha", "complete")]
    assert "criteria 1/1" in project.lopen("status", "alpha").out
    assert "alpha.py" in project.lopen("diff", "alpha", "--stat").out
    assert "alpha: complete, 1 of 1 criteria met" in project.lopen("report", "alpha").out
    assert "alpha is complete" in project.lopen("run", "alpha").out
    assert "is archived; it cannot be resumed" in project.lopen("resume", "alpha").err
    merged = project.lopen("merge", "alpha")
    assert (merged.code, "merged lopen/alpha" in merged.out) == (0, True), merged.out + merged.err
    assert len(project.requests) == paid
    assert project.lopen("run", "alpha", "--new", "--max-iterations", "1", "--unattended").code == 3
    shown = project.lopen("status", "alpha")  # which brings nothing twice, and puts nothing away
    assert ("archived" in shown.out, "was built by a worker" in shown.out) == (False, False), shown.out
    listed = project.lopen("session", "list", "--json").named("session")
    assert [(s["session"] == here, s["status"]) for s in listed] == [
        (False, "paused"),
        (False, "archived"),
        (True, "archived"),
    ]


def test_what_was_built_here_is_not_ordered_again(make_project: MakeProject) -> None:
    project = make_project("alpha")
    assert project.lopen("approve", "alpha", "--yes", "--run").code == 0
    assert "alpha is complete; to build it anew" in project.lopen("queue", "add", "alpha").out
    assert project.lopen("queue", "list", "--json").named("order") == []


def test_what_workers_have_completed_is_not_asked_for_where_the_queue_is_away(
    make_project: MakeProject,
) -> None:
    project = make_project("alpha")
    project.variables["LOPEN_QUEUE__URL"] = "postgresql://127.0.0.1:9/none"
    shown = project.lopen("status", "alpha")
    assert "what workers have completed since is not shown" in shown.err
    assert "alpha has no session yet" in shown.err
    assert "the queue's database" in project.lopen("run", "alpha", "--unattended").err
    assert project.requests == []


def test_a_worker_without_a_name_to_commit_with_does_not_begin(make_project: MakeProject) -> None:
    project = make_project("alpha")
    project.git("config", "user.email", "")
    refused = project.lopen("worker", "--until-idle")
    assert (refused.code, "git config --global user.email" in refused.err) == (1, True), refused.err


def test_an_order_that_is_cancelled_before_a_worker_takes_it_is_never_built(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    one, two = ordered(make_project, tmp_path, database, lambda _: plan())
    assert two.project.lopen("queue", "remove", "alpha").code == 0
    assert one.worker("--until-idle").wait(TIMEOUT_S) == 0, one.output
    assert one.project.endpoint is not None
    assert one.project.endpoint.routed_requests == []


def test_a_build_that_is_paused_from_elsewhere_waits_until_it_is_retried(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held, one, two, first = begun(make_project, tmp_path, database, "--until-idle")
    assert two.project.lopen("pause", "alpha").code == 0
    until(lambda: not in_database(database, "SELECT 1 FROM lopen_messages"))
    held.go_on.set()
    assert first.wait(TIMEOUT_S) == 0, one.output
    paused = state(two)
    assert (paused["state"], paused["command"]) == ("waits", "lopen queue retry alpha"), paused
    assert two.project.lopen("queue", "retry", "alpha").code == 0
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    assert (state(one)["state"], held.plans) == ("complete", 1), two.output


def test_a_worker_of_another_version_takes_nothing_and_says_so(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    one, two = ordered(make_project, tmp_path, database, lambda _: plan())
    at_start(two, 'import lopen\n\nlopen.__version__ = "99.0"\n')
    newer = two.worker()
    until(lambda: "builds in the queue wait for a worker of lopen" in two.output)
    until(lambda: "takes builds of project" in two.output)
    newer.send_signal(signal.SIGTERM)
    assert newer.wait(TIMEOUT_S) == 0, two.output
    assert state(one)["state"] == "queued", two.output


def test_a_build_whose_remote_refuses_pushes_goes_on_and_is_complete_when_it_takes_them(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held = Held("alpha")
    one, two = ordered(make_project, tmp_path, database, held)
    refused = tmp_path / "refused"
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ncat >> {refused}\nexit 1\n", "utf-8")
    hook.chmod(0o755)
    held.go_on.set()
    first = one.worker("--until-idle")
    assert one.project.endpoint is not None
    judged = one.project.endpoint.oracle_requests
    until(lambda: len(judged) > 0)
    before = refused.read_text().count("refs/heads/lopen/alpha")
    until(lambda: refused.read_text().count("refs/heads/lopen/alpha") > before + 2)
    assert state(two)["state"] == "running", "its result is not in the remote"
    until(lambda: "the remote refuses the push, which is tried again: " in state(two).get("reason", ""))
    hook.unlink()
    assert first.wait(TIMEOUT_S) == 0, one.output
    assert state(two)["state"] == "complete", one.output
    assert two.project.git("ls-remote", "origin", "refs/heads/lopen/alpha")


def test_leases_count_by_the_databases_clock(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    held, one, two, first = begun(make_project, tmp_path, database, "--until-idle")
    at_start(
        two,
        "import time\nfrom lopen.core.clock import SystemClock\n\ntrue, now = time.time, SystemClock.now\n"
        "time.time = lambda: true() + 300.0\n"
        "SystemClock.now = lambda self: now(self) + __import__('datetime').timedelta(minutes=5)\n",
    )
    second = two.worker("--until-idle")
    until(lambda: "takes builds of project" in two.output)
    held.go_on.set()
    assert (first.wait(TIMEOUT_S), second.wait(TIMEOUT_S)) == (0, 0), one.output + two.output
    assert (state(one)["state"], held.builds) == ("complete", 1), two.output
    assert "goes on here or elsewhere" not in two.output


def test_a_worker_whose_disk_becomes_full_ends_and_its_build_goes_on_elsewhere(
    make_project: MakeProject, tmp_path: Path, database: str
) -> None:
    require_sandbox("bwrap")
    held = Held("alpha")
    one, two = ordered(make_project, tmp_path, database, held)
    cache = Path(one.project.variables["XDG_CACHE_HOME"])
    cache.mkdir()
    small = ["--size", str(2 * LEAST_FREE), "--tmpfs", str(cache)]
    first = one.worker(inside=["bwrap", "--dev-bind", "/", "/", *small])
    assert held.asked.wait(TIMEOUT_S), one.output
    [inside] = processes_of(first.pid)[1:]
    with suppress(OSError), Path(f"/proc/{inside}/root{cache}/full").open("wb") as full:
        while full.write(bytes(100_000)):
            pass
    assert first.wait(TIMEOUT_S) == 1, one.output
    assert "is full: this worker ends, and others take its builds over" in one.output
    held.go_on.set()
    expire_leases(database)
    assert two.worker("--until-idle").wait(TIMEOUT_S) == 0, two.output
    assert (state(two)["state"], held.plans) == ("complete", 1), two.output
