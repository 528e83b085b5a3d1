"""Comparing trees, reading files from them, and putting files back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lopen.git.errors import GitError
from lopen.git.repository import Repository
from lopen.git.trees import TreeChange
from tests.git.conftest import run_git


def head_tree(root: Path) -> str:
    return run_git(root, "rev-parse", "HEAD^{tree}")


def uncommitted(repository: Repository, max_chars: int | None = None) -> str:
    """What the work tree holds beyond HEAD, as a diff."""
    head = repository.head().commit
    assert head is not None
    return repository.diff(head, repository.snapshot(), max_chars=max_chars)


def test_a_tree_that_this_repository_never_had_is_not_there(root: Path, repository: Repository) -> None:
    assert [repository.has_tree(each) for each in (head_tree(root), "0" * 40)] == [True, False]


def test_changes_name_kind_blobs_and_modes(root: Path, repository: Repository) -> None:
    before = repository.snapshot()
    old = run_git(root, "rev-parse", "HEAD:README")
    (root / "README").unlink()
    (root / "src" / "app.py").chmod(0o755)
    (root / "new").symlink_to("x")
    after = repository.snapshot()
    deleted, added, modified = repository.changes(before, after)
    assert deleted == TreeChange("README", "deleted", old, None, "100644", None)
    assert (added.path, added.kind, added.before, added.mode_after) == ("new", "added", None, "120000")
    assert (modified.kind, modified.mode_before, modified.mode_after) == ("modified", "100644", "100755")
    assert repository.changes(after, after) == ()


def test_a_diff_shows_text_and_only_names_binaries(root: Path, repository: Repository) -> None:
    before = repository.snapshot()
    (root / "README").write_text("Changed\n")
    (root / "image").write_bytes(bytes(range(256)))
    after = repository.snapshot()
    text = repository.diff(before, after)
    assert "--- a/README\n+++ b/README\n" in text
    assert "-Read me\n+Changed\n" in text
    assert "Binary files /dev/null and b/image differ" in text
    assert "README" not in repository.diff(before, after, paths=["image"])
    assert repository.diff(before, after, paths=[]) == ""
    assert repository.diff(before, before) == ""


def test_a_diffs_shape_does_not_follow_the_persons_taste(root: Path, repository: Repository) -> None:
    for line in ("diff.noprefix=true", "diff.mnemonicPrefix=true", "color.ui=always", "diff.context=0"):
        run_git(root, "config", "--global", *line.split("="))
    (root / "README").write_text("Changed\n")
    assert "--- a/README\n+++ b/README\n" in uncommitted(repository)


def test_paths_of_a_diff_are_no_patterns(root: Path, repository: Repository) -> None:
    before = repository.snapshot()
    (root / "*").write_text("star\n")
    (root / "README").write_text("Changed\n")
    text = repository.diff(before, repository.snapshot(), paths=["*"])
    assert "+star" in text
    assert "Changed" not in text


def test_a_diff_takes_any_number_of_paths(root: Path, repository: Repository) -> None:
    (root / "large").write_text("first\n")
    before = repository.snapshot()
    folder = "packages/" + "generated-definitions/" * 9
    (root / folder).mkdir(parents=True)
    names = [f"{folder}definition-{number:05}" for number in range(12_000)]  # 2.6 MB of paths
    for name in names[::4_000]:
        (root / name).write_text(f"{name[-5:]}\n")
    (root / "large").write_text("second\n")
    (root / "README").unlink()
    text = repository.diff(before, repository.snapshot(), paths=[*names, "README"])
    assert [line for line in text.splitlines() if line[0] in "+-" and line[1] not in "+-"] == [
        "-Read me", "+00000", "+04000", "+08000",
    ]  # fmt: skip


def test_a_long_diff_is_cut_at_a_line_and_says_so(root: Path, repository: Repository) -> None:
    (root / "README").write_text("line\n" * 1_000)
    text = uncommitted(repository, max_chars=500)
    lines = text.splitlines()
    assert len(text) < 600
    assert lines[-2] == "+line"
    assert "more characters" in lines[-1]


def test_files_are_put_back_and_new_ones_deleted_with_their_empty_folders(
    root: Path, repository: Repository
) -> None:
    tree = repository.snapshot()
    index = (root / ".git" / "index").read_bytes()
    (root / "README").write_text("Changed\n")
    (root / "src" / "app.py").unlink()
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "new").write_text("x")
    (root / "a" / "kept").write_text("x")
    repository.restore(tree, ["README", "src/app.py", "a/b/new", "never/was"])
    assert (root / "README").read_text() == "Read me\n"
    assert (root / "src" / "app.py").is_file()
    assert not (root / "a" / "b").exists()
    assert (root / "a" / "kept").is_file()
    assert (root / ".git" / "index").read_bytes() == index
    repository.restore(tree, [])


def test_modes_and_links_are_put_back(root: Path, repository: Repository) -> None:
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("README")
    tree = repository.snapshot()
    (root / "run").chmod(0o644)
    (root / "link").unlink()
    (root / "link").write_text("no link\n")
    repository.restore(tree, ["run", "link"])
    assert os.access(root / "run", os.X_OK)
    assert (root / "link").readlink() == Path("README")
    assert repository.snapshot() == tree


def test_nothing_is_written_through_a_link_that_leaves_the_root(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("theirs\n")
    tree = repository.snapshot()
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(outside)
    repository.restore(tree, ["src/app.py"])
    assert (outside / "app.py").read_text() == "theirs\n"
    assert not (root / "src").is_symlink()
    assert (root / "src" / "app.py").read_text() == "print('hello')\n"


def test_nothing_is_deleted_through_a_link(root: Path, repository: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "file").write_text("theirs\n")
    (root / "link").symlink_to(outside)
    repository.restore(repository.snapshot(), ["link/deep/file", "link/deep"])
    assert (outside / "deep" / "file").is_file()
    repository.restore(head_tree(root), ["link"])
    assert not (root / "link").is_symlink()
    assert outside.is_dir()


@pytest.mark.parametrize("path", ["/etc/passwd", "a/../../x", "", "a/.GIT/x"])
def test_paths_that_are_not_the_work_trees_own_are_refused(repository: Repository, path: str) -> None:
    with pytest.raises(GitError, match="not a path in the work tree"):
        repository.restore(repository.snapshot(), [path])


def test_dirty_lists_what_is_not_committed_and_not_excused(root: Path, repository: Repository) -> None:
    assert repository.dirty(lambda _: False) == ()
    (root / "README").write_text("changed\n")
    (root / "specs" / "m").mkdir(parents=True)
    (root / "specs" / "m" / "SPECIFICATION.md").write_text("x")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "x.pyc").write_text("x")
    (root / "nested").mkdir()
    run_git(root / "nested", "init", "-q")
    assert repository.dirty(lambda path: path.startswith("specs/m/")) == ("README", "nested")


def test_dirty_sees_what_is_only_staged(root: Path, repository: Repository) -> None:
    (root / "README").write_text("staged\n")
    run_git(root, "add", "README")
    (root / "README").write_text("Read me\n")
    run_git(root, "rm", "-q", "--cached", "src/app.py")
    assert repository.dirty(lambda _: False) == ("README", "src/app.py")
