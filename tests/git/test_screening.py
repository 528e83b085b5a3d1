"""A snapshot that would add a secret can be looked at, and leaves nothing in the repository."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from lopen.git.errors import GitError
from lopen.git.repository import Repository
from tests.fakes import FakeClock
from tests.git.conftest import run_git

KNOWN = "a-known-value-1"
LOOKS = "ghp_" + "aB3" * 12


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

    assert [(leak.path, leak.line, leak.kind) for leak in screened.leaks(tree)] == [("new.txt", 2, kind)]
    assert {c.path for c in screened.changes(clean, tree)} == {"new.txt", "other.txt"}
    assert secret in screened.diff(clean, tree)
    with pytest.raises(GitError, match=r"new\.txt:2 holds what looks like a secret"):
        screened.commit(tree, start, "x\n", "main")
    with pytest.raises(GitError, match=r"new\.txt:2"):
        screened.backup("s")

    (root / "new.txt").write_text("one\n")
    after = screened.snapshot()
    assert not screened.leaks(after)
    screened.commit(after, start, "x\n", "main")
    assert run_git(root, "show", "HEAD:other.txt") == "other"


def test_the_line_to_paste_quotes_the_file_s_name(root: Path, screened: Repository) -> None:
    (root / "a; touch PWNED").write_text(f"{KNOWN}\n")
    with pytest.raises(GitError) as caught:
        screened.backup("s")
    line = caught.value.hint.rpartition("ignore the file: ")[2]
    subprocess.run(["bash", "-c", line], cwd=root, check=True)
    assert not (root / "PWNED").exists()
    assert (root / ".gitignore").read_text().splitlines()[-1] == "/a; touch PWNED"


def test_what_the_last_commit_holds_is_no_news(root: Path, screened: Repository) -> None:
    (root / "README").write_text(f"key {LOOKS}\n")
    run_git(root, "commit", "-qam", "Known to all")
    (root / "README").write_text(f"key {LOOKS}\nmore\n")
    assert not screened.leaks(screened.snapshot())
    (root / "README").write_text(f"key {LOOKS}\nmore {KNOWN}\n")
    tree = screened.snapshot()
    assert [str(leak) for leak in screened.leaks(tree)] == ["README:2"]


def test_links_and_large_files_are_looked_into(root: Path, screened: Repository) -> None:
    (root / "link").symlink_to(f"to/{KNOWN}")
    (root / "data.bin").write_bytes(b"\0" * 2_000_000 + KNOWN.encode())
    tree = screened.snapshot()
    assert {str(leak) for leak in screened.leaks(tree)} == {"data.bin:1", "link:1"}


RAW = KNOWN.encode()


def test_other_spellings_are_found(root: Path, screened: Repository) -> None:
    spellings = (
        KNOWN.encode("utf-16"),
        KNOWN.encode("utf-16-le"),
        LOOKS.encode("utf-16"),
        RAW.hex().encode(),
        RAW.hex().upper().encode(),
        *(base64.b64encode(b"y" * n + RAW + b"z") for n in range(3)),
        base64.urlsafe_b64encode(b"xy" + RAW),
    )
    for number, spelling in enumerate(spellings):
        (root / f"{number}.txt").write_bytes(spelling)
    leaks = screened.leaks(screened.snapshot())
    assert {leak.path for leak in leaks} == {f"{number}.txt" for number in range(len(spellings))}


@pytest.mark.parametrize("name", [f"note-{KNOWN}.txt", f"{LOOKS}/x.txt"])
def test_a_name_that_holds_a_secret_is_refused_and_not_repeated(
    root: Path, screened: Repository, name: str
) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("nothing\n")
    start = screened.head().commit
    tree = screened.snapshot()
    [leak] = screened.leaks(tree)
    assert str(leak).startswith("the name of ")
    assert KNOWN not in str(leak)
    assert LOOKS not in str(leak)
    with pytest.raises(GitError, match="the name of"):
        screened.commit(tree, start, "x\n", "main")


def test_what_a_filter_makes_of_a_file_is_looked_over_too(root: Path, clock: FakeClock) -> None:
    run_git(root, "config", "--global", "filter.fill.clean", f"sed s/PLACE/{KNOWN}/")
    (root / ".gitattributes").write_text("*.txt filter=fill\n")
    screened = Repository.open(root, clock=clock, known=lambda: (KNOWN,))
    (root / "new.txt").write_text("one\nPLACE\n")
    start = screened.head().commit
    tree = screened.snapshot()
    with pytest.raises(GitError, match=r"new\.txt:2 holds what looks like a secret"):
        screened.commit(tree, start, "x\n", "main")
    with pytest.raises(GitError, match=r"new\.txt:2"):
        screened.backup("s")
    assert screened.head().commit == start
