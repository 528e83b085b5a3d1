"""Linked work trees for `git.isolation = "worktree"`: the user's checkout is never touched."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from lopen.git import trees
from lopen.git.branches import require_commit
from lopen.git.command import GitCommand
from lopen.git.errors import GitError
from lopen.git.refs import HEADS
from lopen.git.repository import Repository


def add(repository: Repository, path: Path, branch: str) -> Repository:
    """A linked work tree at `path` with its files, HEAD on `branch` (made from the current head where new).

    Raises:
        GitError: `path` is taken, the branch is checked out elsewhere, or there is no commit yet.
    """
    references = repository.references
    start = require_commit(repository.head())
    _prepare(references.git, path)
    if repository.head().branch == branch:
        raise GitError(
            f"{branch} is checked out in {repository.root}, so no work tree beside it can have it",
            hint="leave the branch there (git switch main, say), then: lopen resume",
        )
    if elsewhere := references.checked_out_elsewhere(branch):
        raise GitError(
            f"{branch} is checked out in another work tree ({elsewhere})",
            hint="see: git worktree list; git worktree remove takes one away",
        )
    if references.tip(HEADS + branch) is None:
        return _linked(repository, path, branch, "--no-track", "-b", branch, str(path), start)
    return _linked(repository, path, branch, str(path), branch)


def add_detached(repository: Repository, path: Path, commit: str, branch: str) -> Repository:
    """A linked work tree at `path` with the files of `commit`, HEAD on no branch; `branch` is to be its own.

    Raises:
        GitError: `path` is taken.
    """
    _prepare(repository.references.git, path)
    return _linked(repository, path, branch, "--detach", str(path), commit)


def remove(repository: Repository, path: Path, allow: Callable[[str], bool] = lambda _: False) -> None:
    """Delete a linked work tree with everything in it; its branch stays. `allow` excuses uncommitted paths.

    Raises:
        GitError: it holds uncommitted work.
    """
    git = repository.references.git
    left = Repository.open(path, clock=git.clock).dirty(allow)
    if left:
        raise GitError(
            f"{path} holds uncommitted work: {', '.join(left[:5])}",
            hint=f"git worktree remove --force {shlex.quote(str(path))}",
        )
    git.run("worktree", "remove", "--force", "--force", str(path))  # twice: one that was locked goes too


def forget(repository: Repository, path: Path) -> None:
    """Forget a work tree whose folder is gone, also one that git was killed over: it would still hold its branch."""
    git = repository.references.git
    git.run("worktree", "unlock", str(path), accept=(0, 128))
    git.run("worktree", "prune")


def _prepare(git: GitCommand, path: Path) -> None:
    if path.exists() and any(path.iterdir()):
        raise GitError(f"{path} is not empty", hint="see: git worktree list")
    path.parent.mkdir(parents=True, exist_ok=True)
    git.run("worktree", "prune")  # one whose folder was deleted would still hold its branch


def _linked(repository: Repository, path: Path, branch: str, *how: str) -> Repository:
    """Link a work tree and fill it.

    git leaves the files out, because checking them out here would run the repository's own filters.
    """
    git = repository.references.git
    git.run("worktree", "add", "--no-checkout", *how)
    linked = repository.linked(path, branch)
    linked.align_index()
    tree = trees.tree_of(git, require_commit(linked.head()))
    linked.restore(tree, trees.entries(git, tree))
    linked.align_index()
    return linked
