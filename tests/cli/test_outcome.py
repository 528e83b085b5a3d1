"""Failures become messages and exit codes, in one place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import TIMEOUT_S, Lopen, json_lines

TRIALS = '''
import sys, time
from lopen.cli.command import CommandContext, command
from lopen.base.errors import *

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
        case "code":
            return ExitCode.FAILED
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
app.COMMANDS += (app.CommandEntry("fails", "trials:fails", "Fails", app.INSPECT),)
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


def test_a_failure_says_what_happened_and_what_to_do(
    trials: list[str], surroundings: dict[str, str], project: Path
) -> None:
    done = _run(trials, surroundings, project, "plainly")
    assert done.returncode == 1
    assert done.stderr == "lopen: the disk is full\n  free some\n"


def test_when_a_person_is_needed_the_last_line_names_the_command(
    trials: list[str], surroundings: dict[str, str], project: Path
) -> None:
    done = _run(trials, surroundings, project, "person")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "next: lopen approve calc"


def test_what_a_command_returns_is_the_exit_code(
    trials: list[str], surroundings: dict[str, str], project: Path
) -> None:
    done = _run(trials, surroundings, project, "code")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.parametrize("state", [True, False])
def test_a_bug_is_one_line_with_its_details_written_down(
    trials: list[str], surroundings: dict[str, str], project: Path, state: bool
) -> None:
    if state:
        (project / ".lopen").mkdir()
    surroundings["TMPDIR"] = str(project.parent)
    done = _run(trials, surroundings, project, "bug")
    assert done.returncode == 1
    first, details = done.stderr.splitlines()
    assert first == "lopen: internal error in lopen: ValueError: oops"
    path = Path(details.removeprefix("  details: ").split("; ")[0])
    assert path.parent == (project / ".lopen" / "logs" if state else project.parent)
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
    assert "approve it" in done.stderr


def test_wrong_usage_is_json_too(lopen: Lopen) -> None:
    done = lopen("check", "--json", "--nope")
    (line,) = json_lines(done.stdout)
    assert (done.returncode, line["exit_code"]) == (2, 2)


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


def test_streams_that_were_closed_are_written_to_by_nobody(
    project: Path, surroundings: dict[str, str]
) -> None:
    command = f"exec {sys.executable} -m lopen status >&- 2>&-"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=project, env=surroundings, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0
    assert not list(project.rglob("crash-*"))


@pytest.mark.parametrize(
    "arguments",
    [("config", "show"), ("config", "show", "--json"), ("--help",), ("--version",), ("diagram",)],
)
def test_output_that_cannot_be_written_is_said_in_one_line_and_is_no_bug(
    project: Path, surroundings: dict[str, str], arguments: tuple[str, ...]
) -> None:
    surroundings["TMPDIR"] = str(project.parent)
    done = _with_full_stdout(project, surroundings, *arguments)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lopen: cannot write to standard output: No space left on device",
        "  free some disk space, or redirect the output",
    ]
    assert not list(project.parent.rglob("*crash-*"))


def test_a_failure_is_told_also_where_its_json_cannot_be_written(
    project: Path, surroundings: dict[str, str]
) -> None:
    done = _with_full_stdout(project, surroundings, "check", "nosuch", "--json")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "lopen: no module named nosuch")
    assert "Traceback" not in done.stderr


def test_a_failure_is_told_to_programs_also_where_no_person_can_be_told(
    project: Path, surroundings: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "lopen", "check", "nosuch", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command,
            cwd=project,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    (line,) = json_lines(done.stdout)
    assert (done.returncode, line["message"]) == (1, "no module named nosuch")


def test_a_program_that_runs_lopen_keeps_its_own_streams(project: Path, surroundings: dict[str, str]) -> None:
    code = """
import contextlib
from lopen.__main__ import main
with open("said.txt", "w") as file:
    with contextlib.redirect_stdout(file):
        assert main(["config", "show"]) == 0
    file.write("and on")
"""
    _python(code, project, surroundings)
    assert (project / "said.txt").read_text().endswith("(default)\nand on")


def test_a_terminal_s_width_is_still_known(project: Path, surroundings: dict[str, str]) -> None:
    code = "import shutil; from lopen.cli.outcome import *; prepare_streams(); print(*shutil.get_terminal_size((1, 1)))"
    surroundings = {k: v for k, v in surroundings.items() if k not in ("COLUMNS", "LINES")}
    controller, terminal = os.openpty()
    try:
        termios.tcsetwinsize(terminal, (33, 144))
        _python(code, project, surroundings, stdout=terminal)
        assert os.read(controller, 100).split() == [b"144", b"33"]
    finally:
        os.close(controller)
        os.close(terminal)


def test_what_is_written_to_a_closed_stream_needs_no_encoding(
    project: Path, surroundings: dict[str, str]
) -> None:
    surroundings |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = r"import sys; sys.stdout = sys.__stdout__ = None; from lopen.cli.outcome import *; prepare_streams(); print('\u2713')"
    _python(code, project, surroundings)


def _python(code: str, folder: Path, surroundings: dict[str, str], *, stdout: int | None = None) -> None:
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=surroundings,
        stdout=stdout,
        timeout=TIMEOUT_S,
        check=True,
    )


def test_the_version_needs_no_output_to_be_there(project: Path, surroundings: dict[str, str]) -> None:
    command = f"exec {sys.executable} -m lopen --version >&-"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=project, env=surroundings, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0


def test_a_current_folder_that_is_gone_is_said(project: Path, surroundings: dict[str, str]) -> None:
    gone = project / "gone"
    gone.mkdir()
    for more, code in (("", 2), (f"-C {project}", 0)):
        command = f"cd {gone} && rmdir {gone}; exec {sys.executable} -m lopen status {more}"
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=project,
            env=surroundings,
            timeout=TIMEOUT_S,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert ("the current folder does not exist" in done.stderr) is (code == 2)
        gone.mkdir()


def _with_full_stdout(
    project: Path, surroundings: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    with Path("/dev/full").open("w") as full:
        return subprocess.run(
            [sys.executable, "-m", "lopen", *arguments],
            env=surroundings,
            cwd=project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
