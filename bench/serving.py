"""The server: its first page of many budgets, the way of an event to a client, and what its clients cost a build."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from bench.rows import Row
from bench.session import home
from lopen.core.clock import SystemClock
from lopen.core.events import Notice
from lopen.limits.budget import BudgetSpec, BudgetState
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import Rows
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from tests.project import Project
from tests.server.serving import Server, serving

BUDGETS, CLIENTS = 10_000, 100
ASKED, EVENTS, TURNS, BATCHES = 50, 50, 20, 5
MODEL_S = 0.1  # real models take longer
WARM_UP = 5


def rows() -> Iterator[Row]:
    """Measure on loopback, client and server on the same machine."""
    with home() as folder:
        project = Project(folder / "project")
        project.specify()
        database = Database(project.root / ".lopen" / "state.db")
        store = SessionStore(database)
        now = datetime.now(UTC)
        session = Session("calc-20261122-1", "calc", now)
        store.save(session, now)
        SqliteStore(database).atomically(_put_budgets)
        journal = Journal(store, session, SystemClock(), redact=str)
        with serving(project) as server:
            yield Row("GET /api/budget, first of 10,000 budgets, median", _asked_ms(server), 10, "ms")
            yield Row("event, from its record to a client, median", _delay_ms(server, journal), 200, "ms")
            alone, watched = _turns_ms(server, journal)
            more = 100 * (watched / alone - 1)
            yield Row("turn with 100 stream clients", more, 5, "%", detail=f"{alone:.1f} ms alone")
        database.close()


def _put_budgets(rows: Rows) -> None:
    now = datetime.now(UTC)
    for n in range(BUDGETS):
        rows.put_budget(BudgetState(BudgetSpec(f"task:calc-t{n}", "task", 400_000), now, now, n))


def _asked_ms(server: Server) -> float:
    found = []
    for _ in range(WARM_UP + ASKED):
        begun = time.perf_counter()
        server.client.get("/api/budget")
        found.append(1_000 * (time.perf_counter() - begun))
    return statistics.median(found[WARM_UP:])


def _delay_ms(server: Server, journal: Journal) -> float:
    """The time from the return of the call that records an event to its arrival."""
    arrived: dict[str, float] = {}
    connected = threading.Event()

    def read() -> None:
        for _, _, data in server.events("/api/events?after=0"):
            connected.set()
            arrived[data["message"]] = time.perf_counter()
            if data["message"] == str(EVENTS - 1):
                return

    journal.tell(Notice("info", "begin"))
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert connected.wait(20)
    sent = []
    for n in range(EVENTS):
        journal.tell(Notice("info", str(n)))
        sent.append(time.perf_counter())
        time.sleep(0.02)  # clients do not get them in one batch
    reader.join(20)
    return statistics.median(1_000 * (arrived[str(n)] - sent[n]) for n in range(EVENTS))


READERS = """
import selectors, socket, sys
host, port, token, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
head = f"GET /api/events HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nAuthorization: Bearer {token}\\r\\n\\r\\n"
waiting = selectors.DefaultSelector()
for _ in range(count):
    client = socket.create_connection((host, port))
    client.sendall(head.encode())
    client.recv(65536)
    waiting.register(client, selectors.EVENT_READ)
print("connected", flush=True)
while True:
    for key, _ in waiting.select():
        if not key.fileobj.recv(65536):
            sys.exit()
"""


@contextmanager
def _clients(server: Server) -> Iterator[None]:
    """Keep a hundred streams open and read them, in a process of their own."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    command = [sys.executable, "-c", READERS, host, port, server.token, str(CLIENTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "connected\n"
            yield
        finally:
            process.kill()


def _turns_ms(server: Server, journal: Journal) -> tuple[float, float]:
    """Median time of a turn, without clients and with them: a short answer of the model, then four transactions."""

    def turn(n: int) -> float:
        begun = time.perf_counter()
        time.sleep(MODEL_S)
        for part in range(4):
            journal.tell(Notice("info", json.dumps([n, part])))
        return 1_000 * (time.perf_counter() - begun)

    def turns() -> list[float]:
        return [turn(n) for n in range(TURNS)]

    turns()
    alone: list[float] = []
    watched: list[float] = []
    for _ in range(BATCHES):  # side by side, so that both see the same machine
        alone += turns()
        with _clients(server):
            watched += turns()
    return statistics.median(alone), statistics.median(watched)
