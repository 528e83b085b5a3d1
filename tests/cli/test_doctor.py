"""`lopen doctor` proves what it says by trying it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import Lopen, doctor_report
from tests.preloaded.shared import run_lopen


def test_doctor_tries_what_it_says(lopen: Lopen, project: Path, surroundings: dict[str, str]) -> None:
    (project / "Makefile").write_text("test:\n\ttrue\nlint:\n\ttrue\n")
    identity = dict.fromkeys(("GIT_COMMITTER_NAME", "GIT_AUTHOR_NAME"), "n")
    identity |= dict.fromkeys(("GIT_COMMITTER_EMAIL", "GIT_AUTHOR_EMAIL"), "e@x")
    whole = lopen("doctor", env=identity).stdout
    assert "the check failed" not in whole
    before = whole.splitlines()
    found = next(at for at, line in enumerate(before) if line.startswith("warn  repository: "))
    assert "no commit yet" in before[found]
    assert "git add -A && git commit" in before[found + 1]
    commit = ["git", "commit", "-q", "--allow-empty", "-m", "Begin"]
    subprocess.run(commit, cwd=project, env=surroundings | identity, check=True)
    report = doctor_report(lopen, env=identity)
    for check in ("configuration", "git", "repository", "identity", "models", "disk", "database"):
        assert report[check] == "ok", check


def test_doctor_fails_where_something_essential_does(
    lopen: Lopen, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    bare = tmp_path / "bare"
    (bare / ".lopen").mkdir(parents=True)
    (bare / ".lopen" / "config.toml").write_text("x = 1\n")
    (bare / ".lopen" / "state.db").write_text("this is no database, whatever it says")
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    assert doctor_report(lopen)["identity"] == "fail"
    done = lopen("doctor", cwd=bare)
    assert done.returncode == 1
    for failed in ("configuration", "repository", "database"):
        assert any(line.startswith(f"fail  {failed}: ") for line in done.stdout.splitlines()), failed
    assert "→ create one: git -C " in done.stdout


def test_doctor_never_prints_the_key(lopen: Lopen) -> None:
    done = lopen("doctor", env={"ANTHROPIC_API_KEY": "sk-ant-very-secret"})
    assert "ok    key: ANTHROPIC_API_KEY is set" in done.stdout
    assert "very-secret" not in done.stdout + done.stderr


def test_doctor_names_an_sqlite_that_is_too_old(project: Path, surroundings: dict[str, str]) -> None:
    old = [["tests.crash.faults:replace", "sqlite3:sqlite_version_info", [3, 26, 0]]]
    done = run_lopen(project, surroundings, ["doctor"], None, old)
    assert "lopen needs 3.34 or newer" in done.out, done.err
