"""Work trees with more changed files than lopen takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.git.errors import TooManyFiles
from lopen.git.repository import Repository
from tests.git.conftest import run_git


def test_too_many_changed_files_are_refused_by_folder(
    root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lopen.git.ignores.MOST_CHANGED", 5)
    (root / "a b").mkdir()
    for number in range(11):
        (root / f"a b/{number}").write_text("x")
    with pytest.raises(
        TooManyFiles, match="11 files differ from the last commit, 11 of them in a b"
    ) as refused:
        repository.snapshot()
    assert "echo '/a b/' >> .gitignore" in refused.value.hint
    assert "a b/7" in run_git(root, "ls-tree", "-r", "--name-only", repository.backup("s-1"))
