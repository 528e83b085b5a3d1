"""Linked work trees for `git.isolation = "worktree"`: the user's checkout is never touched."""

from __future__ import annotations

from pathlib import Path

from lopen.git.command import Command
from lopen.git.commits import unborn_error
from lopen.git.errors import GitError
from lopen.git.refs import HEADS, References


def add(git: Command, references: References, path: Path, branch: str) -> None:
    """Link a new work tree at `path` with HEAD on `branch` (made from the current head where new). No file yet.

    git leaves the files out, because checking them out here would run the repository's own filters.

    Raises:
        GitError: `path` is taken, the branch is checked out elsewhere, or there is no commit yet.
    """
    head = references.head()
    if head.commit is None:
        raise unborn_error(head.branch or "HEAD")
    _prepare(git, path)
    if head.branch == branch:
        raise GitError(
            f"{branch} is checked out in {git.folder}, so no work tree beside it can have it",
            hint="leave the branch there (git switch main, say), then: lopen resume",
        )
    if elsewhere := references.checked_out_elsewhere(branch):
        raise GitError(
            f"{branch} is checked out in another work tree ({elsewhere})",
            hint="see: git worktree list; git worktree remove takes one away",
        )
    if references.tip(HEADS + branch) is None:
        git.run("worktree", "add", "--no-checkout", "--no-track", "-b", branch, str(path), head.commit)
    else:
        git.run("worktree", "add", "--no-checkout", str(path), branch)


def add_detached(git: Command, path: Path, commit: str) -> None:
    """Link a new work tree at `path` with HEAD at `commit`, on no branch. No file yet.

    Raises:
        GitError: `path` is taken.
    """
    _prepare(git, path)
    git.run("worktree", "add", "--no-checkout", "--detach", str(path), commit)


def remove(git: Command, path: Path) -> None:
    """Delete a linked work tree with everything in it; its branch stays. The caller has checked what is in it."""
    git.run("worktree", "remove", "--force", "--force", str(path))  # twice: one that was locked goes too


def forget(git: Command, path: Path) -> None:
    """Forget a work tree whose folder is gone, also one that git was killed over: it would still hold its branch."""
    git.run("worktree", "unlock", str(path), accept=(0, 128))
    git.run("worktree", "prune")


def _prepare(git: Command, path: Path) -> None:
    if path.exists() and any(path.iterdir()):
        raise GitError(f"{path} is not empty", hint="see: git worktree list")
    path.parent.mkdir(parents=True, exist_ok=True)
    git.run("worktree", "prune")  # one whose folder was deleted would still hold its branch
