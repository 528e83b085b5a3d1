"""A snapshot that would add a secret can be looked at, and leaves nothing in the repository."""

from __future__ import annotations

import base64
import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lopen.core.clock import FakeClock
from lopen.git.errors import GitError
from lopen.git.repository import Repository
from lopen.git.screening import SecretScreen
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

    (root / "new.txt").write_text("one\n")
    after = screened.snapshot()
    assert not screened.leaks
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


RAW = KNOWN.encode()


@pytest.mark.parametrize(
    "spelling",
    [
        KNOWN.encode("utf-16"),
        KNOWN.encode("utf-16-le"),
        b"\xfe\xff" + KNOWN.encode("utf-16-be"),
        LOOKS.encode("utf-16"),
        RAW.hex().encode(),
        RAW.hex().upper().encode(),
        *(base64.b64encode(b"y" * n + RAW + b"z" * m) for n in range(3) for m in range(3)),
    ],
)
def test_other_spellings_are_found(root: Path, screened: Repository, spelling: bytes) -> None:
    (root / "new.txt").write_bytes(spelling)
    screened.snapshot()
    assert {leak.path for leak in screened.leaks} == {"new.txt"}


@pytest.mark.parametrize("known", ["a?known>value~1", "ÿ" * 9])
def test_the_other_base64_alphabet_too(root: Path, clock: FakeClock, known: str) -> None:
    screened = Repository.open(root, clock=clock, known=lambda: (known,))
    (root / "new.txt").write_bytes(base64.urlsafe_b64encode(b"xy" + known.encode()))
    screened.snapshot()
    assert [str(leak) for leak in screened.leaks] == ["new.txt:1"]


@pytest.mark.parametrize("name", [f"note-{KNOWN}.txt", f"{LOOKS}/x.txt"])
def test_a_name_that_holds_a_secret_is_refused_and_not_repeated(
    root: Path, screened: Repository, name: str
) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("nothing\n")
    start = screened.head().commit
    tree = screened.snapshot()
    [leak] = screened.leaks
    assert str(leak).startswith("the name of ")
    assert KNOWN not in str(leak)
    assert LOOKS not in str(leak)
    with pytest.raises(GitError, match="the name of"):
        screened.commit(tree, start, "x\n", "main")


def test_files_of_any_size_are_searched_also_across_blocks(root: Path, screened: Repository) -> None:
    for at in (1024 * 1024 - 5, 17 * 1024 * 1024, 18 * 1024 * 1024 - 1):
        with (root / "big.dat").open("wb") as file:
            file.write(b"one\ntwo\n")
            file.seek(at)
            file.write(b"\n" + RAW)
        screened.snapshot()
        assert [str(leak) for leak in screened.leaks] == ["big.dat:4"], at


def test_a_file_that_cannot_be_read_is_refused_with_its_place(
    root: Path, screened: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def failing(path: Any, *given: Any, **named: Any) -> int:
        if str(path).endswith("torn.txt"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path, *given, **named)

    (root / "torn.txt").write_text("x\n")
    monkeypatch.setattr("lopen.git.screening.os.open", failing)
    screened.snapshot()
    assert [(str(leak), leak.kind) for leak in screened.leaks] == [
        ("torn.txt:1", "cannot be read: Input/output error")
    ]


def test_looking_over_starts_no_process(
    root: Path, spawned: Callable[[], list[str]], clock: FakeClock
) -> None:
    repository = Repository.open(root, clock=clock, known=lambda: (KNOWN,))
    repository.snapshot()
    spawned()
    (root / "README").write_text("changed\n")
    repository.snapshot()
    assert len(spawned()) == 3


def test_what_a_filter_makes_of_a_file_is_looked_over_too(root: Path, clock: FakeClock) -> None:
    run_git(root, "config", "--global", "filter.fill.clean", f"sed s/PLACE/{KNOWN}/")
    (root / ".gitattributes").write_text("*.txt filter=fill\n")
    screened = Repository.open(root, clock=clock, known=lambda: (KNOWN,))
    (root / "new.txt").write_text("one\nPLACE\n")
    start = screened.head().commit
    tree = screened.snapshot()
    assert not screened.leaks
    with pytest.raises(GitError, match=r"new\.txt:2 holds what looks like a secret"):
        screened.commit(tree, start, "x\n", "main")
    with pytest.raises(GitError, match=r"new\.txt:2"):
        screened.backup("s")
    assert screened.head().commit == start


def test_what_changed_since_it_was_looked_over_is_looked_over_again(
    root: Path, screened: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "new.txt"
    path.write_text("nothing\n")
    looked = SecretScreen.leaks

    def then_changed(self: SecretScreen, *given: Any) -> Any:
        found = looked(self, *given)
        path.write_text(f"one\n{KNOWN}\n")
        return found

    monkeypatch.setattr(SecretScreen, "leaks", then_changed)
    start = screened.head().commit
    tree = screened.snapshot()
    monkeypatch.undo()
    path.write_text("nothing\n")
    with pytest.raises(GitError, match=r"new\.txt:2 holds what looks like a secret"):
        screened.commit(tree, start, "x\n", "main")
