"""The work tree as a tree id."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lopen.git.errors import GitError
from lopen.git.repository import Repository
from tests.fakes import FakeClock
from tests.git.conftest import file_at, run_git


def names(root: Path, tree: str) -> set[str]:
    return set(filter(None, run_git(root, "ls-tree", "-r", "-z", "--name-only", tree).split("\0")))


def test_a_snapshot_is_the_tree_that_git_would_commit(root: Path, repository: Repository) -> None:
    (root / "README").write_text("Changed\n")
    (root / "src" / "app.py").unlink()
    (root / "new").mkdir()
    (root / "new" / "file").write_text("new\n")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("/nowhere")
    tree = repository.snapshot()
    run_git(root, "add", "-A")
    assert tree == run_git(root, "write-tree")


def test_the_users_index_head_and_status_stay_as_they_were(root: Path, repository: Repository) -> None:
    (root / "README").write_text("Changed\n")
    (root / "untracked").write_text("x")
    status = run_git(root, "status", "--porcelain")  # may rewrite the index, so it comes first
    index, head = (root / ".git" / "index").read_bytes(), repository.head()
    repository.snapshot()
    assert (root / ".git" / "index").read_bytes() == index
    assert repository.head() == head
    assert run_git(root, "status", "--porcelain") == status


def test_a_change_within_one_tick_of_the_clock_is_seen(root: Path, repository: Repository) -> None:
    file = root / "README"
    trees = set()
    for text in ("a\n", "b\n", "c\n", "d\n"):
        file.write_text(text)
        os.utime(file, ns=(10**18, 10**18))
        trees.add(repository.snapshot())
    assert len(trees) == 4


def test_strange_file_names_are_kept(root: Path, repository: Repository) -> None:
    strange = {
        "with\nnewline",
        'with"quote',
        "-dash",
        "tab\there",
        "ünï",
        " blank ",
        "back\\slash",
        ":(top)x",
        "*",
    }
    for name in strange:
        (root / name).write_text("x")
    tree = repository.snapshot()
    assert names(root, tree) == {"README", "src/app.py", *strange}
    assert {file_at(repository, tree, name) for name in strange} == {b"x"}
    assert {change.path for change in repository.changes(run_git(root, "rev-parse", "HEAD"), tree)} == strange


def test_a_name_that_is_not_utf8_is_kept(root: Path, repository: Repository) -> None:
    raw = b"caf\xe9"
    (Path(os.fsdecode(os.fsencode(root) + b"/" + raw))).write_bytes(b"x")
    tree = repository.snapshot()
    name = os.fsdecode(raw)
    assert name in names(root, tree)
    assert file_at(repository, tree, name) == b"x"
    repository.restore(run_git(root, "rev-parse", "HEAD^{tree}"), [name])
    assert not os.path.lexists(os.fsencode(root) + b"/" + raw)


def test_ignored_files_stay_out_and_leave_once_they_become_ignored(
    root: Path, repository: Repository
) -> None:
    (root / "run.log").write_text("x")
    assert "run.log" in names(root, repository.snapshot())
    (root / ".gitignore").write_text("*.log\n")
    assert names(root, repository.snapshot()) == {".gitignore", "README", "src/app.py"}


def test_the_persons_global_excludes_count(root: Path, own_configuration: Path, clock: FakeClock) -> None:
    excludes = own_configuration.with_name("ignored")
    excludes.write_text("*.swp\n")
    run_git(root, "config", "--global", "core.excludesFile", str(excludes))
    (root / "x.swp").write_text("x")
    assert "x.swp" not in names(root, Repository.open(root, clock=clock).snapshot())


def test_lopens_own_state_stays_out_whatever_an_ignore_file_says(root: Path, repository: Repository) -> None:
    state = root / ".lopen"
    state.mkdir()
    (state / ".gitignore").write_text("!state.db\n")
    (state / "config.toml").write_text("")
    (state / "state.db").write_text("x")
    (state / "cache").mkdir()
    (state / "cache" / "x").write_text("x")
    assert names(root, repository.snapshot()) == {
        "README",
        "src/app.py",
        ".lopen/.gitignore",
        ".lopen/config.toml",
    }


def test_well_known_caches_stay_out_unless_tracked(root: Path, repository: Repository) -> None:
    for folder in ("__pycache__", "src/__pycache__", "node_modules/x", ".pytest_cache", "a.egg-info"):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").write_text("x")
    assert names(root, repository.snapshot()) == {"README", "src/app.py"}
    run_git(root, "add", "-f", "node_modules/x/file")
    run_git(root, "commit", "-qm", "Vendor it")
    (root / "node_modules/x/file").write_text("changed")
    tree = repository.snapshot()
    assert file_at(repository, tree, "node_modules/x/file") == b"changed"


def test_target_is_a_cache_only_beside_a_build_file(root: Path, repository: Repository) -> None:
    for folder in ("target", "rust/target", "docs/target"):
        (root / folder / "deep").mkdir(parents=True)
        (root / folder / "deep" / "file").write_text("x")
    assert "docs/target/deep/file" in names(root, repository.snapshot())
    (root / "Cargo.toml").write_text("")
    (root / "rust" / "Cargo.toml").write_text("")
    found = names(root, repository.snapshot())
    assert "docs/target/deep/file" in found
    assert not {"target/deep/file", "rust/target/deep/file"} & found


def test_left_overs_stay_out_while_their_content_is_the_same(root: Path, repository: Repository) -> None:
    (root / "report\n.xml").write_text("left by a test run")
    (root / "README").write_text("changed by a test run\n")
    (root / "link").symlink_to("README")
    left = repository.blobs(["report\n.xml", "README", "link", "missing", "src"])
    assert set(left) == {"report\n.xml", "README", "link"}
    head = run_git(root, "rev-parse", "HEAD^{tree}")
    assert repository.snapshot(left) == head
    (root / "report\n.xml").write_text("edited since")
    assert names(root, repository.snapshot(left)) == {"README", "src/app.py", "report\n.xml"}


def test_blobs_are_what_a_snapshot_would_hold_with_line_ends_converted(root: Path, clock: FakeClock) -> None:
    run_git(root, "config", "core.autocrlf", "true")
    repository = Repository.open(root, clock=clock)
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    tree = repository.snapshot()
    assert file_at(repository, tree, "crlf.txt") == b"a\nb\n"
    assert repository.snapshot(repository.blobs(["crlf.txt"])) == run_git(root, "rev-parse", "HEAD^{tree}")


def test_a_nested_repository_is_named_and_left_out(root: Path, repository: Repository) -> None:
    for name in ("with commits", "without"):
        nested = root / "fixtures" / name
        nested.mkdir(parents=True)
        run_git(nested, "init", "-q")
        (nested / "file").write_text("x")
    run_git(root / "fixtures" / "with commits", "add", "-A")
    run_git(root / "fixtures" / "with commits", "commit", "-qm", "x")
    assert names(root, repository.snapshot()) == {"README", "src/app.py"}
    assert repository.embedded == ("fixtures/with commits", "fixtures/without")


def test_a_file_may_become_a_folder_and_a_folder_a_file_or_a_link(root: Path, repository: Repository) -> None:
    (root / "README").unlink()
    (root / "README").mkdir()
    (root / "README" / "part").write_text("x")
    shutil.rmtree(root / "src")
    (root / "src").write_text("now a file")
    assert names(root, repository.snapshot()) == {"README/part", "src"}
    (root / "src").unlink()
    (root / "src").symlink_to("/etc")
    tree = repository.snapshot()
    assert file_at(repository, tree, "src") == b"/etc"
    assert names(root, tree) == {"README/part", "src"}


def test_pipes_and_sockets_are_passed_over(root: Path, repository: Repository) -> None:
    os.mkfifo(root / "pipe")
    assert names(root, repository.snapshot()) == {"README", "src/app.py"}


def test_a_damaged_user_index_does_not_matter(root: Path, repository: Repository) -> None:
    (root / ".git" / "index").write_bytes(b"DIRC nonsense")
    assert repository.snapshot() == run_git(root, "rev-parse", "HEAD^{tree}")


def test_a_repository_of_the_newer_object_format_works(tmp_path: Path, clock: FakeClock) -> None:
    folder = tmp_path / "sha256"
    folder.mkdir()
    run_git(folder, "init", "-q", "--object-format=sha256")
    (folder / "file").write_text("x")
    (folder / "link").symlink_to("file")
    repository = Repository.open(folder, clock=clock)
    tree = repository.snapshot()
    assert len(tree) == 64
    sha = repository.commit(tree, None, "Start\n", "main")
    assert repository.head().commit == sha
    (folder / "link").unlink()
    (folder / "link").symlink_to("elsewhere")
    assert repository.snapshot(repository.blobs(["link"])) == tree


def test_an_unreadable_file_is_named(root: Path, repository: Repository) -> None:
    """Root reads everything, so the file vanishes behind a failing filter of the person's own instead."""
    run_git(root, "config", "--global", "filter.broken.clean", "false")
    run_git(root, "config", "--global", "filter.broken.required", "true")
    (root / ".gitattributes").write_text("*.bin filter=broken\n")
    (root / "x.bin").write_text("x")
    with pytest.raises(GitError, match=r"x\.bin"):
        repository.snapshot()


def test_a_filter_of_the_persons_own_configuration_works(root: Path, clock: FakeClock) -> None:
    run_git(root, "config", "--global", "filter.upper.clean", "tr a-z A-Z")
    run_git(root, "config", "--global", "filter.upper.smudge", "tr A-Z a-z")
    (root / ".gitattributes").write_text("*.up filter=upper\n")
    (root / "x.up").write_text("loud\n")
    repository = Repository.open(root, clock=clock)
    tree = repository.snapshot()
    assert file_at(repository, tree, "x.up") == b"LOUD\n"
    (root / "x.up").unlink()
    repository.restore(tree, ["x.up"])
    assert (root / "x.up").read_text() == "loud\n"
    assert repository.ignored_filters == ()
