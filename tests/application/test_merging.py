"""Merging while somebody else works on the same branches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lopen.application.merging import accept, prepare
from lopen.files.workplace import Workplace
from lopen.git.errors import RefMoved
from lopen.git.repository import Repository
from lopen.workflow.session import Session
from tests.fakes import FakeClock
from tests.store.history import NOW


def git(folder: Path, *arguments: str) -> str:
    """git as a person would run it."""
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *person, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("on", ["main", "lopen/calc"])
@pytest.mark.parametrize("when", ["before the files change", "after the files changed"])
def test_a_target_that_moved_leaves_everything_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, when: str
) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        git(tmp_path, "config", key, value)
    for branch, name in (("main", "a"), ("lopen/calc", "calc.py"), ("main", "b")):
        git(tmp_path, "switch", "-q", *(["-c"] if name == "calc.py" else []), branch) if name != "a" else None
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-q", "-m", name)
    elsewhere = git(tmp_path, "commit-tree", "-p", "main", "-m", "Meanwhile", "main^{tree}")
    git(tmp_path, "switch", "-q", on)
    before = git(tmp_path, "ls-files", "-s")
    repository = Repository.open(tmp_path, clock=FakeClock())
    place = Workplace(repository, repository)
    merge = prepare(place, Session("calc-20260301-1", "calc", NOW, branch="lopen/calc"), "main")
    assert merge is not None
    change = repository.restore

    def meanwhile(tree: str, paths: list[str]) -> None:
        change(tree, paths)
        git(tmp_path, "update-ref", "refs/heads/main", elsewhere)

    if when == "after the files changed":
        monkeypatch.setattr(repository, "restore", meanwhile)
    else:
        git(tmp_path, "update-ref", "refs/heads/main", elsewhere)

    with pytest.raises(RefMoved):
        accept(place, merge)

    assert git(tmp_path, "symbolic-ref", "--short", "HEAD") == on
    assert git(tmp_path, "rev-parse", "main") == elsewhere
    assert (git(tmp_path, "ls-files", "-s"), git(tmp_path, "status", "--porcelain")) == (before, "")
