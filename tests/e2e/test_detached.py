"""A run that survives its terminal, and following it from elsewhere."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

from lopen.application import detached
from lopen.application.command_context import CommandContext
from lopen.application.open_store import open_store
from lopen.store.sessions import SessionStore
from tests.e2e.conftest import MakeProject
from tests.endpoint import status
from tests.fake_api import Answer
from tests.project import TIMEOUT_S, build, plan


def tell_openings() -> None:
    """Say on stderr when the start of a run opens the store."""
    opened = open_store

    def told(context: CommandContext) -> SessionStore:
        sys.stderr.write("opened\n")
        return opened(context)

    detached.open_store = told  # type: ignore[attr-defined,assignment]


def test_a_detached_run_is_followed_to_its_end(make_project: MakeProject) -> None:
    held = threading.Event()

    def waiting(_: dict[str, Any]) -> Answer:
        held.wait(TIMEOUT_S)
        return build("calc-t1")

    project = make_project([plan(), waiting])
    project.specify()
    gate = project.lopen("run", "calc", "--detach")
    assert (gate.code, gate.last_line) == (3, "next: lopen approve calc --run")
    assert project.lopen("approve", "calc", "--yes").code == 0

    arranged = [["tests.e2e.test_detached:tell_openings"]]
    begun = project.lopen("run", "calc", "--detach", "--json", arrange=arranged)
    assert begun.code == 0, begun.err
    assert begun.err.count("opened") == 1, "not at each look"
    [event] = begun.named("detached")
    try:
        second = project.lopen("run", "calc")
        assert (second.code, f"process {event['pid']}" in second.err) == (1, True)
        merge = project.lopen("merge", "calc")
        assert merge.code == 1, merge.out
        assert "calc is being built\n  to follow it: lopen attach calc" in merge.err
        follower = project.start("attach")
        follower.send_signal(signal.SIGCONT)  # it runs; what it shows is read below
    finally:
        held.set()
    out, err = follower.communicate(timeout=TIMEOUT_S)

    assert follower.returncode == 0, out + err
    assert "calc-t1" in out
    assert project.status()["status"] == "complete"
    assert project.lopen("attach").code == 0  # all of it again, from the log


def test_leaving_does_not_stop_the_run_and_a_pause_is_told(make_project: MakeProject) -> None:
    held, asked = threading.Event(), threading.Event()

    def waiting(_: dict[str, Any]) -> Answer:
        asked.set()
        held.wait(TIMEOUT_S)
        return plan()

    project = make_project([waiting, build("calc-t1")])
    project.approve_module()
    assert project.lopen("run", "calc", "--detach").code == 0
    try:
        assert asked.wait(TIMEOUT_S)
        follower = project.start("attach")
        assert follower.stdout is not None
        follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        out, err = follower.communicate(timeout=TIMEOUT_S)
        assert (follower.returncode, "goes on" in out) == (0, True), out + err
        assert project.status()["status"] == "running"
        assert project.lopen("pause").code == 0
    finally:
        held.set()
    told = project.lopen("attach")
    assert told.code == 3, told.out + told.err
    assert told.last_line.startswith("next: lopen resume calc-")
    assert project.lopen("resume").code == 0


def test_a_pause_is_taken_while_requests_are_tried_again(make_project: MakeProject) -> None:
    def refused(_: dict[str, Any]) -> Answer:
        if len(project.requests) == 1:
            assert project.lopen("pause").code == 0
        return status(529, "Overloaded")

    project = make_project(refused)
    project.specify()
    ran = project.approved_run()
    assert (ran.code, len(project.requests)) == (3, 1), ran.out + ran.err
    assert "you paused it" in ran.out + ran.err
    assert ran.last_line.startswith("next: lopen resume calc-")
