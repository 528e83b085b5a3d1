"""Failures become messages and exit codes, in one place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import TIMEOUT_S, json_lines

TRIALS = '''
import sys, time
from lopen.cli.command import CommandContext, command
from lopen.core.errors import *

@command
def fails(context: CommandContext, how: str) -> ExitCode | None:
    """Fail in the given way."""
    match how:
        case "plainly":
            raise LopenError("the disk \\x1b[31mis full", hint="free some")
        case "person":
            raise PersonNeeded("approve it", command="lopen approve calc", hint="read it first")
        case "bug":
            raise ValueError("oops")
        case "wait" | "stubborn":
            try:
                print("ready", flush=True)
                time.sleep(60)
            finally:
                print("saved", flush=True)
                if how == "stubborn":
                    time.sleep(60)
        case "talk":
            for number in range(100_000):
                context.say(str(number))
    return None
'''
RUNNER = """
import sys
from lopen.cli import app
import trials
sys.modules["lopen.cli.commands.trials"] = trials
app.COMMANDS["fails"] = app.CommandEntry("fails", "trials:fails", "Fails")
from lopen.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def trials(tmp_path: Path, surroundings: dict[str, str]) -> list[str]:
    """The command line of a lopen with one more command."""
    (tmp_path / "trials.py").write_text(TRIALS)
    surroundings["PYTHONPATH"] += os.pathsep + str(tmp_path)
    return [sys.executable, "-c", RUNNER, "fails"]


def _run(
    trials: list[str], surroundings: dict[str, str], project: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*trials, *arguments],
        env=surroundings,
        cwd=project,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@contextmanager
def _started(
    trials: list[str], surroundings: dict[str, str], project: Path, how: str
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*trials, how],
        env=surroundings,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_bug_is_one_line_with_its_details_written_down(
    trials: list[str], surroundings: dict[str, str], project: Path
) -> None:
    (project / ".lopen").mkdir()
    surroundings["TMPDIR"] = str(project.parent)
    done = _run(trials, surroundings, project, "bug")
    assert done.returncode == 1
    first, details = done.stderr.splitlines()
    assert first == "lopen: internal error in lopen: ValueError: oops"
    path = Path(details.removeprefix("  details: ").split("; ")[0])
    assert path.parent == project / ".lopen" / "logs"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "Traceback" in path.read_text()


def test_a_traceback_is_shown_to_who_asks_for_it(
    trials: list[str], surroundings: dict[str, str], project: Path
) -> None:
    surroundings["TMPDIR"] = str(project.parent)
    assert "Traceback" in _run(trials, surroundings, project, "bug", "-v").stderr
    assert (
        _run(trials, surroundings, project, "plainly", "-v").stderr
        == "lopen: the disk is full\n  free some\n"
    )


def test_failures_are_json_too(trials: list[str], surroundings: dict[str, str], project: Path) -> None:
    done = _run(trials, surroundings, project, "person", "--json")
    (line,) = json_lines(done.stdout)
    assert line["event"] == "error"
    assert line["exit_code"] == 3
    assert (line["message"], line["hint"]) == ("approve it", "read it first")
    assert line["command"] == "lopen approve calc"
    assert done.stderr.splitlines()[-1] == "next: lopen approve calc"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_unwinds_and_gives_its_code(
    trials: list[str], surroundings: dict[str, str], project: Path, number: signal.Signals, code: int
) -> None:
    with _started(trials, surroundings, project, "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (code, "saved\n")
    assert "Traceback" not in err


def test_a_second_ctrl_c_ends_it_at_once(
    trials: list[str], surroundings: dict[str, str], project: Path
) -> None:
    with _started(trials, surroundings, project, "stubborn") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "saved\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130


def test_a_reader_that_left_is_no_bug(trials: list[str], surroundings: dict[str, str], project: Path) -> None:
    with _started(trials, surroundings, project, "talk") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""
        process.stdout = None
