"""Further repositories and work trees that lopen makes: a new repository, a scratch clone, a linked work tree.

A new repository or clone uses no template, no hooks and no identity of the user, so that nothing in the user's
configuration can refuse a commit. Linked work trees serve `git.isolation = "worktree"`: the user's checkout is never
touched.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from lopen.core.clock import Clock
from lopen.git.branches import require_commit
from lopen.git.command import GitCommand, find_git
from lopen.git.errors import GitError
from lopen.git.layout import check_version
from lopen.git.refs import HEADS, require_id
from lopen.git.repository import Repository

NAME, EMAIL = "lopen", "lopen@localhost"


def create_repository(root: Path, *, clock: Clock, branch: str = "main") -> Repository:
    """Create a repository without a commit in the empty folder `root`, with HEAD on `branch`."""
    git = GitCommand(find_git(root), root, clock)
    check_version(git)
    git.run("init", "--quiet", "--template=", f"--initial-branch={branch}")
    return _opened(git)


def clone_repository(source: Path, target: Path, *, commit: str, branch: str, clock: Clock) -> Repository:
    """Clone `source` into the empty folder `target`, with the single branch `branch` checked out at `commit`.

    The clone shares no file with `source`, so that a command in it cannot reach `source`; it contains all its
    objects and has no remote.

    Raises:
        GitError: `source` is not a repository, or does not contain the commit.
    """
    git = GitCommand(find_git(source), target, clock)
    check_version(git)
    local = git.with_options({"GIT_ALLOW_PROTOCOL": "file"})
    plain = ("--quiet", "--template=", "--no-checkout", "--no-hardlinks", "--no-tags")
    local.run("clone", *plain, "--", str(source), str(target))
    git.run("remote", "remove", "origin")
    for ref in git.run("for-each-ref", "--format=%(refname)", "refs/heads").text.split():
        git.run("update-ref", "-d", ref)
    git.run("symbolic-ref", "HEAD", HEADS + branch)
    repository = _opened(git)
    repository.reset_to(require_id(commit))
    return repository


def _opened(git: GitCommand) -> Repository:
    """Open the repository in the command's folder, with its own identity and hooks folder."""
    for key, value in (
        ("user.name", NAME),
        ("user.email", EMAIL),
        ("core.hooksPath", str(git.folder / ".git" / "hooks")),
    ):
        git.run("config", key, value)
    return Repository.open(git.folder, clock=git.clock)


def add_work_tree(repository: Repository, path: Path, branch: str) -> Repository:
    """Add a linked work tree at `path` with HEAD on `branch`, created at the current head if it is new.

    Raises:
        GitError: `path` is not empty, the branch is checked out elsewhere, or there is no commit yet.
    """
    references = repository.references
    start = require_commit(repository.head())
    _prepare(references.git, path)
    if repository.head().branch == branch:
        raise GitError(
            f"{branch} is checked out in {repository.root}, so another work tree cannot use it",
            hint="switch to another branch there, for example git switch main, then: lopen resume",
        )
    if elsewhere := references.checked_out_elsewhere(branch):
        raise GitError(
            f"{branch} is checked out in another work tree ({elsewhere})",
            hint="see: git worktree list; git worktree remove removes one",
        )
    if references.tip(HEADS + branch) is None:
        return _linked(repository, path, branch, "--no-track", "-b", branch, str(path), start)
    return _linked(repository, path, branch, str(path), branch)


def add_detached_work_tree(repository: Repository, path: Path, commit: str, branch: str) -> Repository:
    """Add a linked work tree at `path` with a detached HEAD at `commit`; `branch` is the one it will use.

    Raises:
        GitError: `path` is not empty.
    """
    _prepare(repository.references.git, path)
    return _linked(repository, path, branch, "--detach", str(path), commit)


def remove_work_tree(
    repository: Repository, path: Path, allow: Callable[[str], bool] = lambda _: False
) -> None:
    """Delete a linked work tree; its branch stays. `allow` accepts uncommitted paths.

    Raises:
        GitError: it contains other uncommitted work.
    """
    git = repository.references.git
    uncommitted = Repository.open(path, clock=git.clock).dirty(allow)
    if uncommitted:
        raise GitError(
            f"{path} has uncommitted work: {', '.join(uncommitted[:5])}",
            hint=f"git worktree remove --force {shlex.quote(str(path))}",
        )
    git.run("worktree", "remove", "--force", "--force", str(path))  # twice, to remove a locked one too


def forget_work_tree(repository: Repository, path: Path) -> None:
    """Remove git's record of a deleted work tree, which otherwise still occupies its branch, locked or not."""
    git = repository.references.git
    git.run("worktree", "unlock", str(path), accept=(0, 128))
    git.run("worktree", "prune")


def _prepare(git: GitCommand, path: Path) -> None:
    if path.exists() and any(path.iterdir()):
        raise GitError(f"{path} is not empty", hint="see: git worktree list")
    path.parent.mkdir(parents=True, exist_ok=True)
    git.run("worktree", "prune")  # a deleted work tree would still occupy its branch


def _linked(repository: Repository, path: Path, branch: str, *how: str) -> Repository:
    """Add a work tree without files, then restore them.

    A checkout by `git worktree add` would run the repository's own filters.
    """
    git = repository.references.git
    git.run("worktree", "add", "--no-checkout", *how)
    linked = repository.linked(path, branch)
    linked.align_index()
    tree = linked.tree_of(require_commit(linked.head()))
    linked.restore(tree, linked.entries(tree))
    linked.align_index()
    return linked
