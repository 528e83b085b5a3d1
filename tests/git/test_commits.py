"""The module's branch, commits on it, and finding them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.git import commits
from lopen.git.errors import GitError, GitLocked, RefMoved
from lopen.git.repository import Repository
from tests.fakes import FakeClock
from tests.git.conftest import begin, run_git


def task_message(task_id: str, session: str = "m-20260101-1") -> str:
    return commits.completion_message(
        module="m",
        task=f"Task {task_id}",
        component="Core",
        session=session,
        task_id=task_id,
        verdict="passed (high)",
    )


def commit(repository: Repository, text: str, branch: str) -> str:
    return repository.commit(repository.snapshot(), repository.head().commit, text, branch)


def test_a_new_branch_starts_at_the_head_without_touching_a_file(root: Path, repository: Repository) -> None:
    (root / "README").write_text("uncommitted\n")
    run_git(root, "add", "README")
    (root / "README").write_text("more\n")
    before, start = run_git(root, "status", "--porcelain"), repository.head().commit
    head = begin(repository, "lopen/m")
    assert (head.commit, head.branch) == (start, "lopen/m")
    assert run_git(root, "status", "--porcelain") == before
    assert begin(repository, "lopen/m") == head


def test_a_branch_called_like_the_prefix_is_in_the_way(root: Path, repository: Repository) -> None:
    run_git(root, "branch", "lopen")
    with pytest.raises(GitError, match="name conflicts with"):
        begin(repository, "lopen/m")


@pytest.mark.parametrize("name", ["-x", "a..b", ""])
def test_a_name_that_git_does_not_take_is_refused(repository: Repository, name: str) -> None:
    with pytest.raises(GitError, match="invalid branch name"):
        repository.references.check_name(name)


def test_a_commit_moves_the_branch_and_leaves_a_clean_status(root: Path, repository: Repository) -> None:
    start = begin(repository, "lopen/m").commit
    (root / "README").write_text("done\n")
    (root / "src" / "app.py").unlink()
    (root / "new").write_text("x")
    tree = repository.snapshot()
    sha = repository.commit(tree, start, task_message("t1"), "lopen/m")
    assert run_git(root, "rev-parse", "HEAD", "HEAD^", "HEAD^{tree}").split("\n") == [sha, start, tree]
    assert run_git(root, "status", "--porcelain") == ""
    assert run_git(root, "log", "-1", "--format=%B").rstrip() == task_message("t1").rstrip()
    assert run_git(root, "reflog", "-1", "--format=%gs") == "lopen: feat(m): complete Task t1 in Core"
    assert repository.snapshot() == tree


def test_what_was_not_in_the_tree_stays_uncommitted(root: Path, repository: Repository) -> None:
    tree = repository.snapshot()
    (root / "left").write_text("x")
    (root / "README").write_text("later\n")
    repository.commit(tree, repository.head().commit, "x\n", "main")
    assert run_git(root, "status", "--porcelain").split("\n") == [" M README", "?? left"]


def test_a_commit_is_refused_where_head_is_on_another_branch(root: Path, repository: Repository) -> None:
    tree, head = repository.snapshot(), repository.head().commit
    with pytest.raises(GitError, match="on main, not on lopen/m"):
        repository.commit(tree, head, "x\n", "lopen/m")
    run_git(root, "checkout", "-q", "--detach")
    with pytest.raises(GitError, match="on no branch, not on main"):
        repository.commit(tree, head, "x\n", "main")


def test_a_commit_is_refused_where_the_branch_moved(root: Path, repository: Repository) -> None:
    tree, parent = repository.snapshot(), repository.head().commit
    run_git(root, "commit", "-q", "--allow-empty", "-m", "Somebody else's")
    theirs = repository.head().commit
    with pytest.raises(RefMoved):
        repository.commit(tree, parent, "x\n", "main")
    assert repository.head().commit == theirs


def test_moving_a_branch_compares_and_swaps_in_git_itself(root: Path, repository: Repository) -> None:
    old = repository.head().commit
    run_git(root, "commit", "-q", "--allow-empty", "-m", "x")
    new = run_git(root, "rev-parse", "HEAD")
    with pytest.raises(RefMoved):
        repository.references.move("refs/heads/main", str(old), "1" * 40, "x")
    with pytest.raises(RefMoved):
        repository.references.move("refs/heads/main", str(old), None, "x")
    assert run_git(root, "rev-parse", "HEAD") == new


def test_a_branch_of_lopen_s_that_stands_for_another_one_moves_alone(
    root: Path, repository: Repository
) -> None:
    run_git(root, "symbolic-ref", "refs/heads/lopen/m", "refs/heads/main")
    old = repository.head().commit
    new = repository.commit_of(repository.snapshot(), old, "x\n")
    repository.references.move("refs/heads/lopen/m", new, old, "x")
    assert run_git(root, "rev-parse", "main", "lopen/m").split() == [old, new]


@pytest.mark.parametrize("text", ["-m x --amend", "# no comment\n", "ünï\n\nbödy", "\ud800 lone"])
def test_a_message_is_taken_as_it_is(root: Path, repository: Repository, text: str) -> None:
    commit(repository, text, "main")
    expected = text.encode("utf-8", "replace").decode().rstrip()
    assert run_git(root, "log", "-1", "--format=%B").rstrip() == expected


def test_a_held_index_lock_is_waited_for_and_then_named(
    root: Path, repository: Repository, clock: FakeClock
) -> None:
    lock = root / ".git" / "index.lock"
    lock.touch()
    (root / "README").write_text("done\n")
    with pytest.raises(GitLocked, match=r"index\.lock") as caught:
        commit(repository, "x\n", "main")
    assert str(lock) in caught.value.hint
    assert 4 < sum(clock.slept) < 6
    lock.unlink()
    repository.align_index()
    assert run_git(root, "status", "--porcelain") == ""


def test_a_lock_that_goes_away_is_only_a_pause(root: Path, tmp_path: Path) -> None:
    lock = root / ".git" / "refs" / "heads" / "main.lock"
    index_lock = root / ".git" / "index.lock"

    class Releasing(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            (lock if lock.exists() else index_lock).unlink()

    clock = Releasing()
    repository = Repository.open(root, clock=clock)
    lock.touch()
    index_lock.touch()
    sha = commit(repository, "x\n", "main")
    assert repository.head().commit == sha
    assert clock.slept == [0.05, 0.05]


def test_signing_happens_only_where_asked_for(root: Path, tmp_path: Path, clock: FakeClock) -> None:
    signer = tmp_path / "signer"
    signer.write_text('#!/bin/sh\ncat >/dev/null\necho "[GNUPG:] SIG_CREATED " >&2\necho SIGNED\n')
    signer.chmod(0o755)
    run_git(root, "config", "--global", "gpg.program", str(signer))
    run_git(root, "config", "--global", "commit.gpgSign", "true")
    commit(Repository.open(root, clock=clock), "unsigned\n", "main")
    assert "gpgsig" not in run_git(root, "cat-file", "commit", "HEAD")
    commit(Repository.open(root, clock=clock, sign=True), "signed\n", "main")
    assert "gpgsig SIGNED" in run_git(root, "cat-file", "commit", "HEAD")


def test_commits_are_found_by_their_trailers(root: Path, repository: Repository) -> None:
    start = begin(repository, "lopen/m").commit
    commit(repository, commits.approval_message(module="m", session="m-20260101-1"), "lopen/m")
    first = commit(repository, task_message("t1"), "lopen/m")
    second = commit(repository, task_message("t2", session="m-20260102-1"), "lopen/m")
    run_git(root, "commit", "-q", "--allow-empty", "-m", "By hand\n\nLopen-Session in the text is no trailer")
    found = repository.session_commits(since=start)
    assert [(c.session, c.task, c.verdict) for c in found] == [
        ("m-20260101-1", None, None),
        ("m-20260101-1", "t1", "passed (high)"),
        ("m-20260102-1", "t2", "passed (high)"),
    ]
    by_hand = run_git(root, "rev-parse", "lopen/m")
    assert repository.commit_ids("lopen/m", since=start) == {*(c.sha for c in found), by_hand}
    assert repository.commit_ids("lopen/m", since="0" * 40) >= {start, by_hand}
    assert found[1].sha == first
    assert found[1].parent == found[0].sha
    assert found[1].tree == run_git(root, "rev-parse", f"{first}^{{tree}}")
    assert found[1].subject == "feat(m): complete Task t1 in Core"
    assert [c.sha for c in repository.session_commits("m-20260102-1")] == [second]
    assert repository.find_commit("m-20260101-1", "t1", within="lopen/m", since=start) == found[1]
    assert repository.find_commit("m-20260101-1", "t2") is None
    assert repository.find_commit("m-20260101-1", "t1", within="main") is None


def test_only_trailers_count_not_the_text_of_a_message(root: Path, repository: Repository) -> None:
    forged = (
        "x\n\nLopen-Session: m-20260101-1\nLopen-Task: t1\n\nMore text follows, so that was no trailer.\n"
    )
    commit(repository, forged, "main")
    assert repository.session_commits() == []


def test_the_repository_s_configuration_of_trailers_hides_none(root: Path, repository: Repository) -> None:
    run_git(root, "config", "trailer.Lopen-Session.key", "Other: ")
    run_git(root, "config", "trailer.separators", "=")
    sha = commit(repository, task_message("t1"), "main")
    assert [c.sha for c in repository.session_commits("m-20260101-1")] == [sha]


def test_a_branch_moves_durably_whatever_the_repository_says(
    root: Path, repository: Repository, own_configuration: Path, tmp_path: Path
) -> None:
    run_git(root, "config", "core.fsyncMethod", "writeout-only")
    run_git(root, "config", "core.fsync", "none")
    trace = tmp_path / "trace"
    with own_configuration.open("a") as file:
        file.write(f"[trace2]\n\tperfTarget = {trace}\n")
    begin(repository, "lopen/m")
    commit(repository, task_message("t1"), "lopen/m")
    said = trace.read_text()
    assert "fsync/hardware-flush" in said
    assert "fsync/writeout-only" not in said
