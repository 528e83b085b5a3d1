"""Work trees with more changed files than lopen takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.git.errors import TooManyFiles
from lopen.git.repository import Repository
from tests.git.conftest import run_git


@pytest.mark.parametrize(
    ("new", "told", "remedy"),
    [
        (["vendor/p{}/f"], "11 new in vendor", "printf '%s\\n' /vendor/ >> .gitignore"),
        (["src/made/p{}", "src/made/q{}"], "22 new in src/made", "printf '%s\\n' /src/made/ >> .gitignore"),
        (["calc/made/o/{}"] * 2 + ["calc/a.py"], "11 new in calc/made/o", "/calc/made/o/ >> .gitignore"),
        (["a b/{}", "c/{}"], "11 new in a b, 11 new in c", "'/a b/' /c/ >> .gitignore"),
        (["f{}"], "0 of them tracked; lopen", "add a pattern to .gitignore"),
    ],
)
def test_too_many_new_files_are_refused_by_folder(
    root: Path,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    new: list[str],
    told: str,
    remedy: str,
) -> None:
    monkeypatch.setattr("lopen.git.ignores.MOST_CHANGED", 5)
    for path in (name.format(number) for name in new for number in range(11)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    with pytest.raises(TooManyFiles) as refused:
        repository.snapshot()
    assert told in refused.value.message
    assert remedy in refused.value.hint
    kept = run_git(root, "ls-tree", "-r", "--name-only", repository.backup("s-1"))
    assert new[-1].format(7) in kept


def test_too_many_tracked_files_are_to_be_committed(
    root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lopen.git.ignores.MOST_CHANGED", 1)
    for path in ("README", "src/app.py"):
        (root / path).write_text("other")
    with pytest.raises(TooManyFiles, match="2 of them tracked;") as refused:
        repository.snapshot()
    assert refused.value.hint.startswith("commit them: git commit -a; or undo the changes: git stash")
