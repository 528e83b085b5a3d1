"""A real redis-server on a free loopback port, without persistence, that a test can stop and start again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.needs import lacking

STARTS_WITHIN_S = 60.0


class RedisServer:
    """One server process; `url` stays the same when it is started again."""

    def __init__(self, folder: Path) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            lacking("redis-server")
        self._binary = binary
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [self._binary, *options, "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < until:
            if self._answers():
                return
            time.sleep(0.01)
        self.stop()
        pytest.fail(f"redis-server did not answer on port {self.port} within {STARTS_WITHIN_S:g} s")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def hang(self) -> None:
        """It takes connections and answers nothing, until `go_on`; what it holds stays."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop it; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None
