"""What a command changed in the git folder is found and put back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git.repository import Repository
from tests.git.conftest import run_git


def restored(repository: Repository, change: Callable[[], object]) -> list[str]:
    before = repository.protected_state()
    change()
    found = repository.restore_protected(before)
    assert not found.objects_vanished
    assert not repository.restore_protected(before).found
    return [os.path.relpath(path, repository.root) for path in found.restored]


def test_nothing_changed_is_nothing_found(root: Path, repository: Repository) -> None:
    assert restored(repository, lambda: run_git(root, "add", "-A")) == []


def test_references_and_head_are_put_back(root: Path, repository: Repository) -> None:
    head = repository.head()

    def meddle() -> None:
        run_git(root, "checkout", "-q", "-b", "mine")
        run_git(root, "commit", "-q", "--allow-empty", "-m", "mine")
        run_git(root, "tag", "v1")
        run_git(root, "branch", "-f", "main", "mine")

    assert restored(repository, meddle) == [
        ".git/HEAD",
        ".git/refs/heads/main",
        ".git/refs/heads/mine",
        ".git/refs/tags/v1",
    ]
    assert repository.head() == head
    assert run_git(root, "tag") == ""


def test_locks_that_a_command_left_are_removed(root: Path, repository: Repository) -> None:
    held = root / ".git/config.lock"
    held.touch()

    def meddle() -> None:
        for name in ("index", "HEAD", "packed-refs", "refs/heads/main"):
            (root / f".git/{name}.lock").touch()
        (root / ".git/shallow.lock").mkdir()

    names = ("refs/heads/main", "HEAD", "index", "packed-refs", "shallow")
    assert restored(repository, meddle) == [f".git/{name}.lock" for name in names]
    assert held.exists(), "it was there before"


def test_packed_references_are_put_back(root: Path, repository: Repository) -> None:
    run_git(root, "pack-refs", "--all")
    assert restored(repository, lambda: run_git(root, "update-ref", "-d", "refs/heads/main")) == [
        ".git/packed-refs"
    ]
    assert repository.head().commit is not None


def test_references_that_git_packs_anew_are_put_back_without_a_word(
    root: Path, repository: Repository
) -> None:
    run_git(root, "tag", "-am", "One", "v1")
    run_git(root, "update-ref", "refs/notes/x", "HEAD")
    run_git(root, "pack-refs", "--all")
    run_git(
        root, "commit", "-q", "--allow-empty", "-m", "Two"
    )  # main has a file again, and the packed one is stale
    before = run_git(root, "for-each-ref")
    for command in ("pack-refs --all", "gc -q", "update-server-info"):
        assert restored(repository, partial(run_git, root, *command.split())) == [], command
        assert run_git(root, "for-each-ref") == before
        assert (root / ".git/refs/heads/main").is_file()

    def repoint() -> None:
        run_git(root, "update-ref", "refs/tags/v1", "HEAD")
        run_git(root, "pack-refs", "--all")

    assert restored(repository, repoint) == [".git/packed-refs"]
    assert run_git(root, "for-each-ref") == before
    linked = root.parent / "linked"
    run_git(root, "worktree", "add", "-q", "-b", "mine", str(linked))
    other = repository.linked(linked, "mine")
    assert restored(other, lambda: run_git(linked, "gc", "-q")) == []
    assert other.head().commit == run_git(root, "rev-parse", "mine")


def test_configuration_hooks_and_alternates_are_put_back(root: Path, repository: Repository) -> None:
    def meddle() -> None:
        run_git(root, "config", "core.fsmonitor", "evil")
        (root / ".git/hooks/pre-commit").write_text("evil")
        (root / ".git/info/attributes").write_text("* filter=evil\n")
        (root / ".git/objects/info/alternates").write_text("/elsewhere\n")
        (root / ".git/config.worktree").write_text("evil")

    assert restored(repository, meddle) == [
        ".git/config",
        ".git/config.worktree",
        ".git/hooks/pre-commit",
        ".git/info/attributes",
        ".git/objects/info/alternates",
    ]


def test_contents_count_not_times(root: Path, repository: Repository) -> None:
    config = root / ".git" / "config"

    def meddle() -> None:
        stat, size = config.stat(), len(config.read_bytes())
        config.write_bytes(config.read_bytes().replace(b"bare = false", b"bare = true "))
        assert len(config.read_bytes()) == size
        os.utime(config, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert restored(repository, meddle) == [".git/config"]


def test_modes_are_put_back(root: Path, repository: Repository) -> None:
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    assert restored(repository, lambda: hook.chmod(0o644)) == [".git/hooks/pre-commit"]
    assert os.access(hook, os.X_OK)


def test_the_marks_of_an_unfinished_merge_are_removed(root: Path, repository: Repository) -> None:
    mark = root / ".git" / "MERGE_HEAD"
    assert restored(repository, lambda: mark.write_text("x")) == [".git/MERGE_HEAD"]
    assert not mark.exists()


@pytest.mark.parametrize("name", ["hooks", "refs", "info"])
def test_a_folder_replaced_by_a_link_is_put_back_and_the_links_target_left_alone(
    root: Path, repository: Repository, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    folder = root / ".git" / name

    def meddle() -> None:
        shutil.copytree(folder, outside)
        shutil.rmtree(folder)
        folder.symlink_to(outside)

    assert f".git/{name}" in restored(repository, meddle)
    assert not folder.is_symlink()
    assert repository.head().commit is not None
    assert any(path.is_file() for path in outside.rglob("*"))


def test_alternates_behind_a_link_are_put_back_without_touching_its_target(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "alternates").write_text("theirs\n")

    def meddle() -> None:
        shutil.rmtree(root / ".git/objects/info")
        (root / ".git/objects/info").symlink_to(outside)

    restored(repository, meddle)
    assert (outside / "alternates").exists()


def test_files_and_folders_that_changed_places_are_put_back(root: Path, repository: Repository) -> None:
    def meddle() -> None:
        (root / ".git/HEAD").unlink()
        (root / ".git/HEAD").mkdir()
        (root / ".git/HEAD/x").write_text("x")
        shutil.rmtree(root / ".git/refs/heads")
        (root / ".git/refs/heads").write_text("x")

    restored(repository, meddle)
    assert repository.head().branch == "main"
    assert run_git(root, "status", "--porcelain") == ""


def test_the_git_file_of_a_linked_work_tree_is_put_back(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    run_git(root, "worktree", "add", "-q", "-b", "side", str(linked))
    repository = Repository.open(linked, clock=FakeClock())

    def meddle() -> None:
        (linked / ".git").write_text("gitdir: /elsewhere\n")
        (root / ".git/HEAD").write_text("ref: refs/heads/side\n")
        (root / ".git/worktrees/linked/HEAD").write_text("ref: refs/heads/main\n")

    assert restored(repository, meddle) == [
        ".git",
        "../project/.git/HEAD",
        "../project/.git/worktrees/linked/HEAD",
    ]


def test_no_process_is_started_where_nothing_vanished(root: Path, spawned: Callable[[], list[str]]) -> None:
    repository = Repository.open(root, clock=FakeClock())
    repository.protected_state()  # the first one looks for nested repositories
    spawned()
    before = repository.protected_state()
    (root / ".git" / "HEAD").write_text("x")
    repository.restore_protected(before)
    assert spawned() == []


def test_vanished_objects_are_noticed(root: Path, repository: Repository) -> None:
    before = repository.protected_state()
    blob = run_git(root, "rev-parse", "HEAD:README")
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = repository.restore_protected(before)
    assert found.objects_vanished
    assert found.restored == ()


def test_a_vanished_pack_is_noticed(root: Path, repository: Repository) -> None:
    run_git(root, "gc", "-q")
    before = repository.protected_state()
    shutil.rmtree(root / ".git/objects/pack")
    assert repository.restore_protected(before).objects_vanished


def test_repacking_is_no_loss(root: Path, repository: Repository) -> None:
    before = repository.protected_state()
    run_git(root, "gc", "-q")
    found = repository.restore_protected(before)
    assert not found.objects_vanished
    assert run_git(root, "status", "--porcelain") == ""


def test_a_deleted_git_folder_is_noticed(root: Path, repository: Repository) -> None:
    before = repository.protected_state()
    shutil.rmtree(root / ".git")
    assert repository.restore_protected(before).objects_vanished


@pytest.fixture
def submodule(root: Path, tmp_path: Path) -> Path:
    """A repository with the submodule `sub`, the folder of an uninitialised one at `empty`, and a clone at `own`."""
    library = tmp_path / "library"
    run_git(tmp_path, "init", "-q", str(library))
    run_git(library, "commit", "-q", "--allow-empty", "-m", "x")
    for name in ("sub", "empty"):
        run_git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), name)
    run_git(root, "commit", "-qm", "Submodules")
    run_git(root, "submodule", "deinit", "-q", "-f", "empty")
    run_git(root, "clone", "-q", str(library), "own")
    return root


def test_what_would_run_in_a_nested_repository_is_put_back(submodule: Path, clock: FakeClock) -> None:
    root, repository = submodule, Repository.open(submodule, clock=clock)

    def meddle() -> None:
        (root / "sub/.git").write_text("gitdir: ../planted\n")
        (root / "empty/.git").mkdir()
        (root / "empty/.git/config").write_text("evil")
        for folder in (".git/modules/sub", "own/.git"):
            (root / folder / "config").write_text("evil")
            (root / folder / "hooks").mkdir(exist_ok=True)
            (root / folder / "hooks/post-commit").write_text("evil")

    assert restored(repository, meddle) == [
        ".git/modules/sub/config",
        ".git/modules/sub/hooks/post-commit",
        "empty/.git/config",
        "own/.git/config",
        "own/.git/hooks/post-commit",
        "sub/.git",
    ]
    assert run_git(root, "-C", "sub", "rev-parse", "--git-dir").endswith(".git/modules/sub")


def test_a_link_in_the_place_of_a_submodule_leads_nothing_out(
    submodule: Path, clock: FakeClock, tmp_path: Path
) -> None:
    root, repository = submodule, Repository.open(submodule, clock=clock)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".git").write_text("theirs")

    def meddle() -> None:
        (root / "sub").rename(root / "moved")
        (root / "sub").symlink_to(outside)

    assert "sub" in restored(repository, meddle)
    assert (outside / ".git").read_text() == "theirs"
    assert (root / "sub/.git").is_file()


def test_a_git_folder_in_the_project_is_guarded_where_it_lies(root: Path, clock: FakeClock) -> None:
    (root / ".git").rename(root / "meta.git")
    (root / ".git").write_text("gitdir: meta.git\n")
    repository = Repository.open(root, clock=clock)
    assert (repository.read_only_paths(), repository.has_several_git_folders()) == (
        (str(root / "meta.git"),),
        True,
    )
    assert restored(repository, lambda: run_git(root, "config", "core.fsmonitor", "x")) == ["meta.git/config"]


def test_configured_hooks_behind_links_are_put_back(root: Path, clock: FakeClock) -> None:
    (root / "real").mkdir()
    (root / "real/pre-push").write_text("mine")
    (root / "hooks").symlink_to("real")
    run_git(root, "config", "core.hooksPath", "hooks")
    run_git(root, "config", "--add", "core.hooksPath", ".")  # the project's own files stay writable
    repository = Repository.open(root, clock=clock)
    assert repository.read_only_paths() == (str(root / "real"),)

    def meddle() -> None:
        (root / "real/pre-push").write_text("evil")
        (root / "hooks").unlink()
        (root / "hooks").symlink_to("planted")
        (root / "post-checkout").write_text("evil")
        (root / "README").write_text("better")

    assert restored(repository, meddle) == ["hooks", "post-checkout", "real/pre-push"]
    assert (os.readlink(root / "hooks"), (root / "README").read_text()) == ("real", "better")
