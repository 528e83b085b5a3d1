"""`lopen demo`: the bundled example is built for real, wherever and however it is started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lopen.example
from lopen.application.command_context import CommandContext
from lopen.application.demo_project import as_demo
from lopen.cli.commands import demo
from lopen.example import MODULE, RECORDING, lay_out
from lopen.models.recording import load
from lopen.sandbox import choice
from lopen.sandbox.choice import ProbeResult
from scripts.record_example import record, without_counts
from tests.preloaded.shared import run_lopen
from tests.project import TIMEOUT_S
from tests.ran import HERE

SUBJECTS = [
    "Begin the project",
    "docs(tariff): approve specification",
    "feat(tariff): complete Exact amounts in amounts",
    "feat(tariff): complete Round to the penny in amounts",
    "feat(tariff): complete Bands of the day in bands",
    "feat(tariff): complete A tariff that covers the day in bands",
    "feat(tariff): complete Charge readings in bills",
    "feat(tariff): complete Print the bill in bills",
]


def run_demo(
    *arguments: str, cwd: Path, umask: int = -1, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The real command with next to nothing in its environment."""
    surroundings = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HERE)} | variables
    return subprocess.run(
        [sys.executable, "-m", "lopen", "demo", *arguments],
        cwd=cwd,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        umask=umask,
        check=False,
    )


def git(root: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=True, timeout=60
    )
    return ran.stdout.strip()


def hostile_home(folder: Path) -> Path:
    """A home whose git wants signatures and refuses commits, and whose lopen is set to sign them."""
    hook = folder / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (folder / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hook.parent}\n\tautocrlf = true\n[init]\n\tdefaultBranch = trunk\n"
        f"\ttemplateDir = {folder}\n[commit]\n\tgpgsign = true\n"
    )
    config = folder / ".config" / "lopen" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[git]\nsign = true\n[budget]\nsession_tokens = 1\n")
    config.chmod(0o600)
    return folder


def test_the_example_is_built_in_a_hostile_home_also_when_it_is_interrupted(tmp_path: Path) -> None:
    folder = tmp_path / "a new" / "demo"
    surroundings = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(HERE),
        "HOME": str(hostile_home(tmp_path / "home")),
        "LC_ALL": "C",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_CUSTOM_HEADERS": "x-api-key: of somebody else",
        "GIT_DIR": "/nowhere",
        "LOPEN_ORACLE__MUTATION": "off",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "lopen", "demo", str(folder)],
        cwd=tmp_path,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        umask=0o077,
    )
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if "planned components" in line:
            break
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert f" -C '{folder}' resume tariff-" in out.splitlines()[-1]
    assert "answers are recorded" in told
    assert "approves it on your behalf" in told + out
    assert "next: lopen resume tariff-" in run_lopen(folder, surroundings, ["status"]).out

    ran = run_lopen(folder, surroundings, ["resume", "--max-iterations", "3"])

    assert ran.code == 3, ran.out + ran.err
    built = git(folder, "log", "--reverse", "--format=%s", "lopen/tariff").splitlines()
    assert built == SUBJECTS[: len(built)]
    assert len(built) > 3, "two tasks are complete"
    assert git(folder, "status", "--porcelain") == "", "nothing of lopen's lies in the checkout"
    assert git(folder, "branch", "--show-current") == "main"
    assert (folder.stat().st_mode & 0o077) == 0

    # The recorded answers do not fit what was reverted, and the messages name the ways on.
    reverted = run_lopen(folder, surroundings, ["revert", "--to", "tariff-t1"])
    assert (reverted.code, reverted.last_line) == (0, "next: lopen revert tariff --undo")
    refused = run_lopen(folder, surroundings, ["resume"])
    assert refused.code == 1
    assert "the demo's recorded answers do not fit what is here now" in refused.err
    assert "to build another one: lopen demo" in refused.err


@pytest.mark.parametrize("taken", ["a file", "a folder with something in it"])
def test_a_place_that_is_taken_is_refused_and_left_alone(taken: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    file = place if taken == "a file" else place / "note.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    ran = run_demo(str(place), cwd=tmp_path)
    assert ran.returncode == 1
    assert f"{place}" in ran.stderr
    assert "name a new folder" in ran.stderr
    assert file.read_text() == "mine"


def test_a_demo_is_not_given_by_a_session_s_own_commands(tmp_path: Path) -> None:
    ran = run_demo("new", cwd=tmp_path, LOPEN_UNDER_SESSION="calc-20260101-1")
    assert ran.returncode == 1
    assert "person's command" in ran.stderr
    assert not (tmp_path / "new").exists()


def test_the_bundled_recording_is_what_its_script_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "PATH"):
        monkeypatch.setenv(name, os.environ.get(name, "unset"))  # put back afterwards
    assert without_counts(record(tmp_path)) == without_counts(load(RECORDING)), (
        "lopen asks otherwise than when this was recorded: python -m scripts.record_example"
    )


@pytest.mark.parametrize(
    ("working", "mode"), [({"bwrap", "landlock"}, "bwrap"), ({"landlock"}, "landlock"), (set(), "none")]
)
def test_the_best_sandbox_that_works_is_taken_and_none_is_said_aloud(
    working: set[str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "probe", lambda name: ProbeResult(name in working, ""))
    chosen, said = demo.best_sandbox()
    assert chosen == mode
    assert ("NO SANDBOX" in said) is (mode == "none")


def test_where_python3_is_another_one_the_commands_name_the_interpreter_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = tmp_path / "my bin" / "python-alone"
    alone.parent.mkdir()
    alone.symlink_to(sys.executable)
    monkeypatch.setattr(lopen.example, "INTERPRETER", alone)
    lay_out(tmp_path / "project")
    text = (tmp_path / "project" / "specs" / MODULE / "SPECIFICATION.md").read_text("utf-8")
    assert f"- **verify-tests**: `'{alone}' -m unittest discover -s tests -t .`" in text
    assert "`python3 " not in text


def test_the_demo_s_commands_can_be_pasted_where_path_has_no_lopen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    shown = as_demo(CommandContext(tmp_path, given="a b")).typed("next: lopen diff tariff\n  lopen log")
    started = f"{shlex.quote(sys.executable.removesuffix('python') + 'lopen')} -C 'a b'"
    assert shown == f"next: {started} diff tariff\n  {started} log"
