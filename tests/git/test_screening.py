"""A snapshot that would add a secret can be looked at, and leaves nothing in the repository."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.clock import FakeClock
from lopen.git.errors import GitError
from lopen.git.repository import Repository
from tests.git.conftest import run_git

KNOWN = "a-known-value-1"
LOOKS = "ghp_" + "aB3" * 12


def stored(root: Path) -> bytes:
    return subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=root, check=True, capture_output=True
    ).stdout


@pytest.fixture
def screened(root: Path, clock: FakeClock) -> Repository:
    return Repository.open(root, clock=clock, known=lambda: (KNOWN,))


@pytest.mark.parametrize(("secret", "kind"), [(KNOWN, "known"), (LOOKS, "github_token")])
def test_it_is_named_can_be_compared_and_is_not_committed(
    root: Path, screened: Repository, secret: str, kind: str
) -> None:
    start = screened.head().commit
    assert start is not None
    clean = screened.snapshot()
    (root / "new.txt").write_text(f"one\ntwo {secret}\n")
    (root / "other.txt").write_text("other\n")

    tree = screened.snapshot()

    assert [(leak.path, leak.line, leak.kind) for leak in screened.leaks] == [("new.txt", 2, kind)]
    assert {c.path for c in screened.changes(clean, tree)} == {"new.txt", "other.txt"}
    assert secret in screened.diff(clean, tree)
    with pytest.raises(GitError, match=r"new\.txt:2 holds what looks like a secret"):
        screened.commit(tree, start, "x\n", "main")
    with pytest.raises(GitError, match=r"new\.txt:2"):
        screened.backup("s")
    assert secret.encode() not in stored(root)

    (root / "new.txt").write_text("one\n")
    after = screened.snapshot()
    assert not screened.leaks
    screened.commit(after, start, "x\n", "main")
    assert run_git(root, "fsck", "--strict") == ""
    assert run_git(root, "show", "HEAD:other.txt") == "other"


def test_the_line_to_paste_quotes_the_file_s_name(root: Path, screened: Repository) -> None:
    (root / "a; touch PWNED").write_text(f"{KNOWN}\n")
    with pytest.raises(GitError) as caught:
        screened.backup("s")
    line = caught.value.hint.rpartition("have git ignore the file: ")[2]
    subprocess.run(["bash", "-c", line], cwd=root, check=True)
    assert not (root / "PWNED").exists()
    assert (root / ".gitignore").read_text().splitlines()[-1] == "/a; touch PWNED"


def test_what_the_last_commit_holds_is_no_news(root: Path, screened: Repository) -> None:
    (root / "README").write_text(f"key {LOOKS}\n")
    run_git(root, "commit", "-qam", "Known to all")
    (root / "README").write_text(f"key {LOOKS}\nmore\n")
    screened.snapshot()
    assert not screened.leaks
    (root / "README").write_text(f"key {LOOKS}\nmore {KNOWN}\n")
    screened.snapshot()
    assert [str(leak) for leak in screened.leaks] == ["README:2"]


def test_links_and_large_files_are_looked_into(root: Path, screened: Repository) -> None:
    (root / "link").symlink_to(f"to/{KNOWN}")
    (root / "data.bin").write_bytes(b"\0" * 2_000_000 + KNOWN.encode())
    screened.snapshot()
    assert {str(leak) for leak in screened.leaks} == {"data.bin:1", "link:1"}


def test_looking_over_starts_no_process(
    root: Path, spawned: Callable[[], list[str]], clock: FakeClock
) -> None:
    repository = Repository.open(root, clock=clock, known=lambda: (KNOWN,))
    repository.snapshot()
    spawned()
    (root / "README").write_text("changed\n")
    repository.snapshot()
    assert len(spawned()) == 3
