"""The event streams: nothing is lost or comes twice, also over restarts, and a build does not notice."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lopen.core.clock import SystemClock
from lopen.core.events import Notice
from lopen.server import event_stream
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore, newest_event
from lopen.workflow.session import Session
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import Project, build, plan
from tests.server.held import Held
from tests.server.serving import Server, serving, started


def log(project: Project, session: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in project.lopen("log", session, "--json").out.splitlines()]


def durable(server: Server, path: str, count: int, last: int = 0) -> list[tuple[int, dict[str, Any]]]:
    """The first recorded events of a stream."""
    found = ((number, data) for number, name, data in server.events(path, last) if name == "message")
    return list(islice(found, count))


def test_a_client_far_behind_reads_each_event_once(make_project: MakeProject) -> None:
    """They come in order, from any place, as `lopen log --json` prints them."""
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.drive().code == 0
    session = project.status()["session"]
    database = Database(project.root / ".lopen" / "state.db")
    with database.transaction() as connection:
        rows = [
            (
                session,
                "2026-11-22T10:00:00.500000+00:00",
                "notice",
                json.dumps({"level": "info", "message": f"event {n}", "hint": ""}),
            )
            for n in range(600)
        ]
        connection.executemany("INSERT INTO events (session, ts, name, body) VALUES (?, ?, ?, ?)", rows)
    database.close()
    wanted = log(project, session)
    assert len(wanted) > 600
    path = f"/api/sessions/{session}/events"
    with serving(project) as server:
        found = durable(server, path, len(wanted))
        assert [data for _, data in found] == wanted
        numbers = [number for number, _ in found]
        assert numbers == sorted(set(numbers))
        for place in (0, 343, len(wanted) - 2):
            rest = durable(server, path, min(50, len(wanted) - place - 1), last=numbers[place])
            assert [number for number, _ in rest] == numbers[place + 1 :][:50]
        assert server.client.get(path, headers={"last-event-id": "-1"}).status_code == 422


def test_the_server_is_killed_and_started_while_a_build_runs(make_project: MakeProject) -> None:
    """The build does not notice; a client goes on where it stopped and misses nothing."""
    first, second = Held(tools(("read_file", {"path": "README.md"}))), Held(build("calc-t1"))
    project = make_project([plan(), first, second])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    server = started(project)
    with project.start("run", "calc") as run:
        try:
            names = [data["event"] for _, data in durable(server, "/api/events?after=0", 3)]
            assert names[0] == "session_started"
            session = server.get("/api/sessions")["sessions"][0]["session"]
            path = f"/api/sessions/{session}/events"
            before = durable(server, path, 3)
            server.process.kill()
            server.process.communicate(timeout=20)
            first.let_go()
            with serving(project, "--port", server.url.rpartition(":")[2]) as again:
                assert again.token == server.token
                second.let_go()
                _, err = run.communicate(timeout=60)
                assert run.returncode == 0, err
                wanted = log(project, session)
                after = durable(again, path, len(wanted) - 3, last=before[-1][0])
            assert [data for _, data in (*before, *after)] == wanted
        finally:
            run.kill()
            server.process.kill()


@contextmanager
def recording(project: Project) -> Iterator[Journal]:
    """The journal of a session that has told one event."""
    (project.root / ".lopen").mkdir(mode=0o700)
    with closing(Database(project.root / ".lopen" / "state.db")) as database:
        store, now = SessionStore(database), datetime.now(UTC)
        session = Session("calc-20261122-1", "calc", now)
        store.save(session, now)
        journal = Journal(store, session, SystemClock(), redact=str)
        journal.tell(Notice("info", "begin"))
        yield journal


def test_a_client_that_never_reads_costs_neither_memory_nor_time(make_project: MakeProject) -> None:
    """Events of 60 MB are recorded meanwhile; another client reads them all."""
    project = make_project()
    with recording(project) as journal, serving(project) as server:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as deaf:
            head = f"GET /api/events?after=0 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
            deaf.sendall(head.encode())
            assert deaf.recv(4_096)
            before = resident_mb(server)
            for n in range(30):
                with journal.transaction():
                    journal.tell(*(Notice("info", f"{n} {'x' * 20_000}") for _ in range(100)))
            found = durable(server, "/api/events?after=0", 3_001)
            assert found[-1][1]["message"].startswith("29 ")
            assert resident_mb(server) - before < 60  # the newest events, and a page for each reader


def resident_mb(server: Server) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1_024


def test_an_event_that_comes_between_the_two_reads_is_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SessionStore(Database(tmp_path / "state.db"))
    session = Session("calc-20260101-1", "calc", datetime.now(UTC))
    journal = Journal(store, session, SystemClock(), redact=str)
    journal.save(session)
    journal.tell(Notice("info", "first"))

    def newest(of: SessionStore) -> int:
        number = newest_event(of)
        journal.tell(Notice("info", "between"))
        return number

    monkeypatch.setattr(event_stream, "newest_event", newest)
    opened: Any = SimpleNamespace(store=store)
    found, after = event_stream._news(opened, None, 0)
    again, _ = event_stream._news(opened, None, after)
    assert [line.seq for line in (*found, *again)] == [1, 2]
