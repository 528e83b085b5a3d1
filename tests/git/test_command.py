"""Running git: it ends, whatever happens."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from lopen.base.clock import FakeClock
from lopen.base.errors import ExitCode, Stopped
from lopen.git import command
from lopen.git.command import GitCommand
from lopen.git.errors import GitTimedOut
from lopen.git.repository import Repository


def test_a_pipe_in_the_place_of_an_ignore_file_does_not_hold_lopen_for_ever(
    root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = repository.snapshot()
    os.mkfifo(root / ".gitignore")
    monkeypatch.setattr(command, "TIMEOUT_S", 0.3)
    with pytest.raises(GitTimedOut, match="status did not end") as caught:
        repository.snapshot()
    assert "pipe" in caught.value.hint
    (root / ".gitignore").unlink()
    monkeypatch.setattr(command, "TIMEOUT_S", 60.0)
    assert repository.snapshot() == before


def test_a_signal_that_unwinds_lopen_ends_git_too(tmp_path: Path) -> None:
    slow, pid_file = tmp_path / "git", tmp_path / "pid"
    slow.write_text(f'#!/bin/sh\necho $$ > "{pid_file}"\nexec sleep 30\n')
    slow.chmod(0o755)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Stopped(ExitCode.INTERRUPTED)

    def signal_once_started() -> None:
        for _ in range(1_000):
            if pid_file.exists() and pid_file.read_text():
                threading.Event().wait(0.3)  # lopen has to come back from starting it
                os.kill(os.getpid(), signal.SIGALRM)
                return
            threading.Event().wait(0.02)

    before = signal.signal(signal.SIGALRM, stop)
    watcher = threading.Thread(target=signal_once_started)
    watcher.start()
    try:
        with pytest.raises(Stopped):
            GitCommand(str(slow), tmp_path, FakeClock()).run("status")
    finally:
        watcher.join()
        signal.signal(signal.SIGALRM, before)
    pid = int(pid_file.read_text())
    with pytest.raises(ChildProcessError):  # ended and reaped: it is no child any more
        os.waitpid(pid, 0)


def test_opening_costs_few_processes(root: Path, spawned: Callable[[], list[str]]) -> None:
    Repository.open(root, clock=FakeClock())
    spawned()
    Repository.open(root, clock=FakeClock())
    assert spawned() == ["version", "rev-parse", "config"]
