"""A Postgres of the tests' own, in a temporary folder, on a port of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.needs import lacking

TIMEOUT_S = 60


def program(name: str) -> str:
    """Return the path of one of Postgres's programs, which Debian keeps out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        lacking("postgresql")
    return path


class PostgresServer:
    """A running server; `url` is its database."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        if self._user:
            shutil.chown(self.folder, self._user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._run(
            "initdb", "-D", "data", "-U", "lopen", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        self.start()
        self._databases = itertools.count(1)

    def new_database(self) -> str:
        """Make a database; return its address."""
        name = f"queue{next(self._databases)}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "lopen", name)
        return f"postgresql://lopen@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", str(TIMEOUT_S), "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once, cutting its connections."""
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [program(name), *arguments],
            cwd=self.folder,
            user=self._user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=TIMEOUT_S,
        )
