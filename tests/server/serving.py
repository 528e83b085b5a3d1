"""`lopen serve` as a process of its own, and a client that has its token."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.preloaded.shared import start_lopen
from tests.preloaded.started import StartedCommand
from tests.project import Project

START_S = 60
END_S = 20
SILENT_S = 60


class Server:
    """A server that runs. `client` sends the token with every request."""

    def __init__(self, process: StartedCommand, told: Sequence[Mapping[str, Any]], token: str) -> None:
        self.process = process
        self.warnings = [str(line["message"]) for line in told[:-1]]
        self.url: str = told[-1]["url"].replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - in text
        self.link: str = told[-1]["link"]
        self.token = token
        self.client = httpx2.Client(
            base_url=self.url, headers={"authorization": f"Bearer {token}"}, timeout=30, trust_env=False
        )

    def get(self, path: str, **options: Any) -> Any:
        """The JSON of an answer that has to be a success."""
        answer = self.client.get(path, **options)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        """The JSON of an answer that has to have the status."""
        answer = self.client.post(path, **({} if body is None else {"json": body}))
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return answer.json()

    def events(self, path: str, last: int = 0) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Id, name and data of the events of a stream, without end. Fails after `SILENT_S` with heartbeats alone."""
        with self.client.stream("GET", path, headers={"last-event-id": str(last)} if last else {}) as answer:
            assert answer.status_code == 200, answer.read()
            found = {"id": "0", "event": "message", "data": ""}
            deadline = time.monotonic() + SILENT_S
            for line in answer.iter_lines():
                assert time.monotonic() < deadline, f"no event of {path} for {SILENT_S} s"
                name, _, value = line.partition(": ")
                if name in found:
                    found[name] = value
                elif not line and found["data"]:
                    yield int(found["id"]), found["event"], json.loads(found["data"])
                    deadline = time.monotonic() + SILENT_S
                    found = {"id": "0", "event": "message", "data": ""}

    def end(self) -> tuple[int, str]:
        """End the server as a person does; its exit code and what it wrote on standard error."""
        self.client.close()
        self.process.terminate()
        _, err = self.process.communicate(timeout=END_S)
        return self.process.wait(END_S), err


def started(project: Project, *options: str, **variables: str) -> Server:
    """Start a server of the project on a free port and wait until it answers; the caller ends it."""
    environment = project.environment(**variables)
    port = () if "--port" in options else ("--port", "0")
    process = start_lopen(project.root, environment, ["serve", "--json", *port, *options])
    assert process.stdout is not None
    output, lines = process.stdout, queue.Queue[str]()

    def read() -> None:
        for line in output:
            lines.put(line)
            if '"event": "serving"' in line:
                return
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    told: list[dict[str, Any]] = []
    while not told or told[-1]["event"] != "serving":
        line = lines.get(timeout=START_S)
        if not line:
            process.kill()
            raise AssertionError(f"{told}: {process.communicate(timeout=END_S)[1]}")
        told.append(json.loads(line))
    token = Path(environment["XDG_DATA_HOME"], "lopen", "servers", "token").read_text("ascii")
    return Server(process, told, token)


@contextmanager
def serving(project: Project, *options: str, **variables: str) -> Iterator[Server]:
    """A server within the context; it ends without a failure."""
    server = started(project, *options, **variables)
    try:
        yield server
        code, err = server.end()
        assert code == 0, err
        assert "Traceback" not in err, err
    finally:
        server.client.close()
        server.process.kill()
        server.process.communicate(timeout=END_S)
