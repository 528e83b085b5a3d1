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
    if path.exists() and any(path.iterdir()):
        raise GitError(f"{path} is not empty", hint="see: git worktree list")
    path.parent.mkdir(parents=True, exist_ok=True)
    git.run("worktree", "prune")  # one whose folder was deleted would still hold its branch
    if references.tip(HEADS + branch) is None:
        git.run("worktree", "add", "--no-checkout", "--no-track", "-b", branch, str(path), head.commit)
    else:
        git.run("worktree", "add", "--no-checkout", str(path), branch)


def remove(git: Command, path: Path) -> None:
    """Delete a linked work tree with everything in it; its branch stays. The caller has checked what is in it."""
    git.run("worktree", "remove", "--force", str(path))
