"""Telling a process that lives from one that only had its number."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lopen.core.process_identity import lives, start_time

needs_start_times = pytest.mark.skipif(
    start_time(os.getpid()) is None, reason="this system does not tell when a process was started"
)


def test_this_process_lives_and_one_that_has_ended_does_not() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert lives(os.getpid())
    assert not lives(ended.pid)
    assert start_time(ended.pid) is None


@needs_start_times
def test_a_process_that_has_ended_and_was_not_waited_for_does_not_live() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    started = start_time(ended.pid)
    assert started is not None
    assert not lives(ended.pid, started)
    assert not lives(ended.pid)
    ended.wait()


@needs_start_times
def test_a_process_that_got_the_number_later_is_another_one() -> None:
    started = start_time(os.getpid())
    assert started is not None
    assert lives(os.getpid(), started)
    assert not lives(os.getpid(), started + 1)


def test_the_process_of_another_user_lives_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert lives(1)


def test_a_number_of_no_process_is_nobodys() -> None:
    assert not any(map(lives, (2**70, 0, -1)))
