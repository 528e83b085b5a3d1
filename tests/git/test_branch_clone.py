"""A repository that holds what a clone of the branch would, and nothing that the project's holds besides."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git import branch_clone
from lopen.git.branch_clone import BranchClone
from lopen.git.repository import Repository
from tests.git.conftest import run_git

# What happens in the project, step by step; the clone follows each
STEPS = {
    "nothing yet": "true",
    "a change": "echo 1 > README; mkdir -p deep/er; echo 1 > deep/er/file; ln -s README link; chmod +x src/app.py",
    "another attempt": "echo 2 > README; echo 2 > deep/er/file",
    "a folder becomes a file": "rm -r deep; echo x > deep",
    "a commit": "git add -A; git commit -qm Second; git tag -am Two v2",
    "a file becomes a folder": "rm deep; mkdir deep; echo y > deep/file; rm link; echo z > link",
    "everything in packs": "git add -A; git gc -q",
    "two commits": "git commit -qm Third; echo 3 > README; git commit -qam Fourth",
    "a revert": "git reset -q --hard HEAD~2",
    "a merge": "git switch -qc side HEAD~1; echo s > side; git add -A; git commit -qm Side; "
    "git switch -q main; git merge -qm Merge side",
    "a branch elsewhere": "git branch old HEAD~1; git tag light HEAD~1; git switch -qc lopen/calc; echo 4 > README",
    "no branch": "git switch -q --detach; echo 5 > README",
    "all as in the commit": "git checkout -q -- README",
}


def objects(folder: Path, *which: str) -> set[str]:
    """The names of the objects that git lists in a git folder."""
    return {line.split(" ")[0] for line in run_git(folder, f"--git-dir={folder}", *which).splitlines()}


def checked(clone: BranchClone, repository: Repository, *, exposed: bool) -> str:
    """Bring the clone to the work tree; check what it holds against git's own view, and return its folder."""
    tree = repository.snapshot()
    clone.bring_to(tree, "Work\n", exposed=exposed)
    git = f"--git-dir={clone.folder}"
    run_git(clone.folder, git, "fsck", "--strict", "--no-dangling")
    assert run_git(clone.folder, git, "rev-parse", "HEAD^{tree}") == tree
    assert run_git(clone.folder, git, f"--work-tree={repository.root}", "status", "--porcelain") == ""
    assert run_git(clone.folder, git, "write-tree") == tree  # the index
    head = repository.head()
    assert run_git(clone.folder, git, "branch", "--show-current") == (head.branch or "")
    reachable = objects(clone.folder, "rev-list", "--objects", "--all", "HEAD")
    extra = objects(clone.folder, "cat-file", "--batch-all-objects", "--batch-check") - reachable
    return run_git(clone.folder, git, "cat-file", "--batch-all-objects", "--batch-check") if extra else ""


@pytest.mark.parametrize(("exposed", "most"), [(False, 2_000), (True, 2_000), (False, 2)])
def test_every_object_is_one_that_a_clone_has(
    root: Path,
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    exposed: bool,
    most: int,
) -> None:
    monkeypatch.setattr(branch_clone, "MOST_COMMITS", most)
    run_git(root, "tag", "-am", "One", "v1")
    clone = repository.clone(tmp_path / "clone")
    assert clone is not None
    for step, line in STEPS.items():
        subprocess.run(["/bin/sh", "-ec", line], cwd=root, check=True)

        assert checked(clone, repository, exposed=exposed) == "", step

        if most > 2:
            whole = tmp_path / "whole"
            run_git(tmp_path, "clone", "-q", str(root), str(whole))
            tags = run_git(whole, "describe", "--tags", "--abbrev=0")
            assert (
                run_git(clone.folder, f"--git-dir={clone.folder}", "describe", "--tags", "--abbrev=0") == tags
            )
            subprocess.run(["rm", "-rf", str(whole)], check=True)


def test_what_a_command_changes_in_it_is_gone(root: Path, repository: Repository, tmp_path: Path) -> None:
    clone = repository.clone(tmp_path / "clone")
    assert clone is not None
    checked(clone, repository, exposed=True)
    head = clone.folder / "HEAD"
    for spoil in (lambda: head.write_text("0" * 40 + "\n"), lambda: (clone.folder / "hooks" / "x").mkdir()):
        spoil()
        checked(clone, repository, exposed=True)
        assert head.read_text() == "ref: refs/heads/main\n"
        assert not (clone.folder / "hooks" / "x").exists()


def test_its_files_have_the_same_age(root: Path, repository: Repository, tmp_path: Path) -> None:
    clone = repository.clone(tmp_path / "clone")
    assert clone is not None
    checked(clone, repository, exposed=False)
    os.utime(clone.folder / "config", (1, 1))
    (root / "new").write_text("1\n")

    clone.bring_to(repository.snapshot(), "Work\n", exposed=False)

    assert (clone.folder / "config").stat().st_mtime > 1


def test_other_kinds_of_repositories_have_one_too(tmp_path: Path, root: Path, clock: FakeClock) -> None:
    kinds = {
        "unborn": "true",
        "sha256": "git init -q --object-format=sha256 .; git commit -q --allow-empty -m x",
    }
    for name, line in kinds.items():
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(
            ["/bin/sh", "-ec", f"git init -q . ; rm -rf .git; {line}; git init -q ."], cwd=folder, check=True
        )
        (folder / "file").write_text("1\n")
        repository = Repository.open(folder, clock=clock)
        clone = repository.clone(tmp_path / f"{name}.clone")
        assert clone is not None
        assert checked(clone, repository, exposed=False) == ""
    for name, how in {"shallow": "--depth=1", "partial": "--filter=blob:none"}.items():
        folder = tmp_path / name
        run_git(root, "config", "uploadpack.allowFilter", "true")
        (root / "README").write_text(f"{name}\n")
        run_git(root, "commit", "-qam", name)
        run_git(tmp_path, "clone", "-q", how, f"file://{root}", str(folder))
        (folder / "file").write_text("1\n")
        repository = Repository.open(folder, clock=clock)
        clone = repository.clone(tmp_path / f"{name}.clone")
        assert clone is not None
        clone.bring_to(repository.snapshot(), "Work\n", exposed=False)
        assert run_git(folder, f"--git-dir={clone.folder}", "show", "HEAD:file") == "1", name


def test_a_large_file_is_copied_in_pieces(root: Path, repository: Repository, tmp_path: Path) -> None:
    (root / "large.bin").write_bytes(os.urandom(12 << 20))
    tree = repository.snapshot()
    clone = repository.clone(tmp_path / "clone")
    assert clone is not None
    tracemalloc.start()
    clone.bring_to(tree, "Work\n", exposed=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20
    assert run_git(clone.folder, f"--git-dir={clone.folder}", "cat-file", "-s", "HEAD:large.bin") == str(
        12 << 20
    )
