"""`lopen init`: what it lays out, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Lopen, json_lines

SPEC = "specs/calc/SPECIFICATION.md"


def test_init_lays_out_a_project_once(lopen: Lopen, project: Path) -> None:
    (project / "Cargo.toml").write_text("")
    first = lopen("init", "calc")
    assert first.returncode == 0
    assert [line for line in first.stdout.splitlines() if line.startswith("wrote")] == [
        "wrote .lopen/.gitignore",
        "wrote .lopen/config.toml",
        f"wrote {SPEC}",
    ]
    assert (project / ".lopen" / ".gitignore").read_text().endswith("\n*\n!config.toml\n")
    assert "- **verify-tests**: `cargo test`" in (project / SPEC).read_text()
    (project / ".lopen" / "config.toml").write_text("# mine\n")
    second = lopen("init", "calc")
    assert "wrote" not in second.stdout
    assert "none found" not in second.stdout
    for arguments, said in (
        (["init"], "detected; lopen init MODULE writes it into a specification:"),
        (["init", "again"], "detected, and written into it:"),
    ):
        assert said in lopen(*arguments).stdout.splitlines()
    assert (project / ".lopen" / "config.toml").read_text() == "# mine\n"


def test_init_says_that_there_is_no_repository_and_how_to_make_one(lopen: Lopen, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    done = lopen("init", "calc", cwd=folder)
    assert done.returncode == 0
    [said] = [line for line in done.stderr.splitlines() if "git repository" in line]
    assert said.endswith(f"create one: git -C {folder} init")
    subprocess.run(["git", "-C", str(folder), "init", "-q"], check=True)
    said = lopen("init", "calc", cwd=folder).stderr
    assert "lopen run will fail: the repository has no commit yet; make a first one" in said


def test_the_specification_that_init_writes_is_refused_until_it_is_written(lopen: Lopen) -> None:
    lopen("init", "calc")
    done = lopen("check", "calc")
    assert f"{SPEC}:1: this is still the template of lopen init" in done.stdout.splitlines()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "calc: 1 problem, 6 warnings")
    said = [
        line for line in (done.stdout + done.stderr).splitlines() if "still as lopen init wrote it" in line
    ]
    assert len(said) == 5  # description, two sections, two criteria
    assert all(f"{SPEC}:" in line for line in said)
    approved = lopen("approve", "calc", "--yes")
    assert (approved.returncode, "still the template of lopen init" in approved.stderr) == (1, True)
    last = json_lines(lopen("check", "--json").stdout)[-1]
    assert (last["event"], last["problems"], last["warnings"]) == ("check", 1, 6)


@pytest.mark.parametrize("linked", [".lopen", "specs"])
def test_init_follows_no_link_out_of_the_project(
    lopen: Lopen, project: Path, tmp_path: Path, linked: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / linked).symlink_to(tmp_path / "elsewhere")
    done = lopen("init", "calc")
    assert done.returncode in (1, 2)
    assert "symbolic link" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_module_s_name_is_no_path(lopen: Lopen, project: Path) -> None:
    for name in ("../x", "", "-x", ".hidden"):
        assert lopen("init", "--", name).returncode == 2
    assert not (project / "specs").exists()


def test_the_example_is_complete(lopen: Lopen, project: Path) -> None:
    done = lopen("init", "--example")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("next: lopen run tariff  (shows it and asks for your approval)\n")
    assert "verify-" not in done.stdout + done.stderr  # it has its own
    checked = lopen("check", "--json")
    assert checked.returncode == 0, checked.stdout
    [counts] = [line for line in json_lines(checked.stdout) if line["event"] == "check"]
    assert (counts["problems"], counts["warnings"]) == (0, 0)
    assert lopen("init", "calc", "--example").returncode == 2


def test_a_broken_repository_still_gets_its_commands(lopen: Lopen, project: Path) -> None:
    (project / "pyproject.toml").write_bytes(b"\xff\xfe\x00[tool.ruff\x00")
    (project / "lib").symlink_to(project / "lib")
    (project / "test_a.py").write_bytes(b"\x00")
    os.mkfifo(project / "go.mod")
    done = lopen("init", "calc", "--json")
    assert done.returncode == 0, done.stderr
    found = [line["command"] for line in json_lines(done.stdout) if line["event"] == "init_command"]
    assert "python3 -m unittest discover" in str(found)
    assert lopen("check", "calc").stdout.endswith("\ncalc: 1 problem, 5 warnings\n")  # the template, no more
