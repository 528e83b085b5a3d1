"""Opening a repository and running git in it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType

import pytest

from lopen.core.errors import ExitCode, Stopped
from lopen.git import command
from lopen.git.command import GitCommand
from lopen.git.errors import GitError, NoIdentity, NotARepository, translate
from lopen.git.refs import Head
from lopen.git.repository import Repository
from tests.fakes import FakeClock
from tests.git.conftest import run_git


def opened(root: Path) -> Repository:
    return Repository.open(root, clock=FakeClock())


def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_head_of_a_fresh_checkout(root: Path, repository: Repository) -> None:
    assert repository.head() == Head(run_git(root, "rev-parse", "HEAD"), "main")
    assert repository.branch_tip("main") == repository.head().commit
    assert repository.branch_tip("other") is None
    assert repository.layout.git_dir == root / ".git"


def test_a_repository_without_commits_opens(empty_root: Path) -> None:
    repository = opened(empty_root)
    assert repository.head() == Head(None, "main")
    assert not repository.reachable("0" * 40, "HEAD")
    assert repository.session_commits() == []


def test_a_detached_head_has_no_branch(root: Path, repository: Repository) -> None:
    run_git(root, "checkout", "-q", "--detach")
    assert repository.head() == Head(run_git(root, "rev-parse", "HEAD"), None)


def test_packed_references_are_read(root: Path, repository: Repository) -> None:
    run_git(root, "pack-refs", "--all")
    assert not (root / ".git/refs/heads/main").exists()
    assert repository.head() == Head(run_git(root, "rev-parse", "HEAD"), "main")


def test_a_linked_work_tree_works(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    run_git(root, "worktree", "add", "-q", "-b", "side", str(linked))
    repository = opened(linked)
    assert repository.head().branch == "side"
    (linked / "new").write_text("x")
    sha = repository.commit(repository.snapshot(), repository.head().commit, "New\n", "side")
    assert run_git(linked, "status", "--porcelain") == ""
    assert run_git(root, "rev-parse", "side") == sha
    assert run_git(root, "status", "--porcelain") == ""


def test_a_folder_without_a_repository(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="not a git repository") as caught:
        opened(tmp_path)
    assert "init" in caught.value.hint


def test_a_bare_repository(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", "--bare", "bare")
    with pytest.raises(NotARepository, match="bare") as caught:
        opened(tmp_path / "bare")
    assert "clone" in caught.value.hint


def test_a_folder_inside_a_repository_is_not_its_top(root: Path) -> None:
    with pytest.raises(NotARepository, match="not the top") as caught:
        opened(root / "src")
    assert str(root) in caught.value.hint


def test_a_repository_of_somebody_else(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = "fatal: detected dubious ownership in repository"
    fake_git(
        tmp_path,
        monkeypatch,
        f'test "$1" = version && echo git version 2.50 || {{ echo "{complaint}" >&2; exit 128; }}',
    )
    with pytest.raises(NotARepository, match="another user") as caught:
        opened(root)
    assert "safe.directory" in caught.value.hint


@pytest.mark.parametrize("version", ["git version 2.35.9", "nonsense"])
def test_an_old_git(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    fake_git(tmp_path, monkeypatch, f"echo {version}")
    with pytest.raises(GitError, match="too old"):
        opened(root)


def test_nobody_is_invented_to_commit_as(root: Path, own_configuration: Path) -> None:
    own_configuration.write_text("")
    repository = opened(root)
    with pytest.raises(NoIdentity) as caught:
        repository.identity()
    assert "user.email" in caught.value.hint
    with pytest.raises(NoIdentity):
        repository.commit(repository.snapshot(), repository.head().commit, "x\n", "main")
    assert run_git(root, "rev-list", "--count", "HEAD") == "1"


def test_an_identity_configured_for_some_folders_only_is_honoured(
    root: Path, own_configuration: Path
) -> None:
    work = own_configuration.with_name("work")
    work.write_text("[user]\n\temail = ada@work.example\n")
    run_git(root, "config", "--global", f"includeIf.gitdir:{root}/.path", str(work))
    repository = opened(root)
    assert repository.identity() == "Ada <ada@work.example>"
    repository.commit(repository.snapshot(), repository.head().commit, "x\n", "main")
    assert run_git(root, "log", "-1", "--format=%an <%ae> %cn <%ce>") == (
        "Ada <ada@work.example> Ada <ada@work.example>"
    )


def test_an_unknown_failure_keeps_gits_own_words() -> None:
    full = translate("frob", 3, "fatal: No space left on device\n", folder="/x")
    assert full.message == "git frob failed in /x (3): fatal: No space left on device"
    error = translate("frob", 3, "fatal: odd\n", folder="/x")
    assert error.message == "git frob failed (3): fatal: odd"
    assert len(translate("frob", 3, "x" * 10_000, folder="/x").message) < 2_100


def test_a_signal_that_unwinds_lopen_ends_git_too(tmp_path: Path) -> None:
    GitCommand(command.find_git(tmp_path), tmp_path, FakeClock()).run(
        "version"
    )  # GitPython's import runs git too
    slow, pid_file, unlocked = tmp_path / "git", tmp_path / "pid", tmp_path / "unlocked"
    ending = f'kill $!; sleep 0.1; : > "{unlocked}"; exit'
    slow.write_text(f"#!/bin/sh\ntrap '{ending}' TERM\nsleep 30 &\necho $$ > \"{pid_file}\"\nwait\n")
    slow.chmod(0o755)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Stopped(ExitCode.INTERRUPTED)

    waiting = threading.get_ident()

    def signal_once_awaited() -> None:
        for _ in range(3_000):
            stack = traceback.walk_stack(sys._current_frames()[waiting])
            awaited = any(frame.f_code.co_name == "communicate" for frame, _ in stack)
            if awaited and pid_file.exists() and pid_file.read_text():
                os.kill(os.getpid(), signal.SIGALRM)
                return
            threading.Event().wait(0.02)

    before = signal.signal(signal.SIGALRM, stop)
    watcher = threading.Thread(target=signal_once_awaited)
    watcher.start()
    try:
        GitCommand(str(slow), tmp_path, FakeClock()).run("status")
        pytest.fail("nothing was raised")
    except Stopped:
        assert unlocked.exists()  # what git does at its end is done
    finally:
        watcher.join()
        signal.signal(signal.SIGALRM, before)
    pid = int(pid_file.read_text())
    with pytest.raises(ChildProcessError):  # ended and reaped: it is no child any more
        os.waitpid(pid, 0)
