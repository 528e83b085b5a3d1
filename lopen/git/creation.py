"""Further repositories and work trees that lopen makes: a new repository, a scratch clone, a linked work tree.

A new repository or clone uses no template, no hooks and no identity of the user, so that nothing in the user's
configuration can refuse a commit. Linked work trees serve `git.isolation = "worktree"`: the user's checkout is never
touched.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from lopen.base.clock import Clock
from lopen.git import trees
from lopen.git.branches import require_commit
from lopen.git.command import GitCommand, find_git
from lopen.git.errors import GitError
from lopen.git.layout import check_version
from lopen.git.refs import HEADS, checked_id
from lopen.git.repository import Repository

NAME, EMAIL = "lopen", "lopen@localhost"


def create_repository(root: Path, *, clock: Clock, branch: str = "main") -> Repository:
    """Make the empty folder `root` a repository without a commit, its HEAD on `branch`."""
    git = GitCommand(find_git(root), root, clock)
    check_version(git)
    git.run("init", "--quiet", "--template=", f"--initial-branch={branch}")
    return _opened(git)


def clone_repository(source: Path, target: Path, *, commit: str, branch: str, clock: Clock) -> Repository:
    """A clone of `source` in the empty folder `target` with `branch`, its only one, at `commit`, files included.

    It shares no file with `source` (a command in the clone cannot reach it), holds every object of it, and
    does not know where it came from.

    Raises:
        GitError: `source` is no repository, or has no such commit.
    """
    git = GitCommand(find_git(source), target, clock)
    check_version(git)
    local = git.having({"GIT_ALLOW_PROTOCOL": "file"})
    plain = ("--quiet", "--template=", "--no-checkout", "--no-hardlinks", "--no-tags")
    local.run("clone", *plain, "--", str(source), str(target))
    git.run("remote", "remove", "origin")
    for ref in git.run("for-each-ref", "--format=%(refname)", "refs/heads").text.split():
        git.run("update-ref", "-d", ref)
    git.run("symbolic-ref", "HEAD", HEADS + branch)
    repository = _opened(git)
    repository.reset_to(checked_id(commit))
    return repository


def _opened(git: GitCommand) -> Repository:
    """The repository in the command's folder, with an identity and a hooks folder of its own."""
    for key, value in (
        ("user.name", NAME),
        ("user.email", EMAIL),
        ("core.hooksPath", str(git.folder / ".git" / "hooks")),
    ):
        git.run("config", key, value)
    return Repository.open(git.folder, clock=git.clock)


def add_work_tree(repository: Repository, path: Path, branch: str) -> Repository:
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


def add_detached_work_tree(repository: Repository, path: Path, commit: str, branch: str) -> Repository:
    """A linked work tree at `path` with the files of `commit`, HEAD on no branch; `branch` is to be its own.

    Raises:
        GitError: `path` is taken.
    """
    _prepare(repository.references.git, path)
    return _linked(repository, path, branch, "--detach", str(path), commit)


def remove_work_tree(
    repository: Repository, path: Path, allow: Callable[[str], bool] = lambda _: False
) -> None:
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


def forget_work_tree(repository: Repository, path: Path) -> None:
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
