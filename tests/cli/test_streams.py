"""Standard streams that are closed, full, cut off or replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.conftest import TIMEOUT_S, json_lines
from tests.ran import SHELL_PYTHON


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["log"], 1),
        (["diagram"], 0),
        (["run", "--help"], 0),
        (["init"], 1),
        (["init", "-C", "diff"], 1),
        (["-C", ".", "budget", "show"], 0),
    ],
)
def test_a_reader_that_has_read_enough_is_no_failure(
    project: Path, surroundings: dict[str, str], arguments: list[str], code: int
) -> None:
    (project / "diff").mkdir()
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does once it has its lines
    done = subprocess.run(
        [sys.executable, "-m", "lopen", *arguments],
        cwd=project,
        env=surroundings,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    os.close(writing)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_streams_that_were_closed_are_written_to_by_nobody(
    project: Path, surroundings: dict[str, str]
) -> None:
    command = f"exec {SHELL_PYTHON} -m lopen status >&- 2>&-"
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
        "lopen: cannot write the output: No space left on device",
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
    assert (project / "said.txt").read_text().endswith("--explain\nand on")


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
    command = f"exec {SHELL_PYTHON} -m lopen --version >&-"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=project, env=surroundings, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0


def test_a_current_folder_that_is_gone_is_said(project: Path, surroundings: dict[str, str]) -> None:
    gone = project / "gone"
    gone.mkdir()
    for more, code in (("", 2), (f"-C {project}", 0)):
        command = f"cd {gone} && rmdir {gone}; exec {SHELL_PYTHON} -m lopen status {more}"
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
