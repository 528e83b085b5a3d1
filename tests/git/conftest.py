"""Real repositories in temporary folders, with a configuration of their own and nothing of this machine's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lopen.git.ignores import CACHE_PATTERNS
from lopen.git.refs import HEADS, Head
from lopen.git.repository import Repository
from tests.fakes import FakeClock


def run_git(folder: Path, *arguments: str) -> str:
    """git as a person would run it; returns standard output without the last newline."""
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return os.fsdecode(done.stdout).removesuffix("\n")


def file_at(repository: Repository, tree: str, path: str) -> bytes:
    """The content of a file in a tree."""
    blob = repository.entries(tree)[path].blob
    return repository.blob_contents([blob])[blob]


def begin(repository: Repository, branch: str) -> Head:
    """Stand on a branch that begins at the current commit."""
    head = repository.head().commit
    if head is not None and repository.branch_tip(branch) is None:
        repository.references.move(HEADS + branch, head, None, "begin")
    repository.references.attach_head(branch)
    return repository.head()


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's global configuration."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    config = home / ".gitconfig"
    config.write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return config


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit: `README` and `src/app.py`."""
    folder = tmp_path / "project"
    folder.mkdir()
    run_git(folder, "init", "-q")
    (folder / ".git/info/exclude").write_text(
        "".join(f"{line}\n" for line in CACHE_PATTERNS)
    )  # as in a clone
    (folder / "README").write_text("Read me\n")
    (folder / "src").mkdir()
    (folder / "src" / "app.py").write_text("print('hello')\n")
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", "Start")
    return folder


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def repository(root: Path, clock: FakeClock) -> Repository:
    return Repository.open(root, clock=clock)


@pytest.fixture
def empty_root(tmp_path: Path) -> Path:
    """A repository without commits."""
    folder = tmp_path / "unborn"
    folder.mkdir()
    run_git(folder, "init", "-q")
    return folder
