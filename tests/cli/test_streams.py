"""Standard streams that are closed, full, cut off or replaced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import TIMEOUT_S
from tests.ran import SHELL_PYTHON


def test_streams_that_were_closed_are_written_to_by_nobody(
    project: Path, surroundings: dict[str, str]
) -> None:
    command = f"exec {SHELL_PYTHON} -m lopen status >&- 2>&-"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=project, env=surroundings, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0
    assert not list(project.rglob("crash-*"))


def test_output_that_cannot_be_written_is_said_in_one_line_and_is_no_bug(
    project: Path, surroundings: dict[str, str]
) -> None:
    surroundings["TMPDIR"] = str(project.parent)
    done = _with_full_stdout(project, surroundings, "config", "show")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lopen: cannot write the output: No space left on device",
        "  free some disk space, or redirect the output",
    ]
    assert not list(project.parent.rglob("*crash-*"))


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


def _python(code: str, folder: Path, surroundings: dict[str, str], *, stdout: int | None = None) -> None:
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=surroundings,
        stdout=stdout,
        timeout=TIMEOUT_S,
        check=True,
    )


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
