"""The programs that lopen starts itself are never a repository's."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.core import trusted_programs
from lopen.core.trusted_programs import distrust, find_program


@pytest.fixture(autouse=True)
def _trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trusted_programs, "_BROUGHT", set())


def program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tool"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_first_one_outside_of_the_project_is_taken(tmp_path: Path) -> None:
    inside, outside = program(tmp_path / "project/bin"), program(tmp_path / "project-tools")
    folders = [str(inside.parent), str(outside.parent)]
    assert find_program("tool", folders, tmp_path / "project") == str(outside)
    assert find_program("tool", folders, tmp_path / "other") == str(inside)
    assert find_program("tool", folders[:1], tmp_path / "project") is None


def test_one_in_a_distrusted_project_is_not_taken_wherever_the_work_is_done(tmp_path: Path) -> None:
    inside = program(tmp_path / "project/bin")
    link = tmp_path / "link"
    link.symlink_to(inside.parent)
    distrust(tmp_path / "project")
    assert find_program("tool", [str(inside.parent), str(link)], tmp_path / "demo") is None


def test_relative_folders_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    assert find_program("tool", ["", ".", "bin"], tmp_path / "project") is None
