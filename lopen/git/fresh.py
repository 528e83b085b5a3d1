"""Repositories that lopen makes for itself: a new one for the demo, a scratch clone for a replay.

Nothing of the person's configuration that could refuse a commit has a say in them: no template, no hooks of
theirs, and an identity that is the repository's own.
"""

from __future__ import annotations

from pathlib import Path

from lopen.base.clock import Clock
from lopen.git.command import GitCommand, find_git
from lopen.git.layout import check_version
from lopen.git.refs import HEADS, checked_id
from lopen.git.repository import Repository

NAME, EMAIL = "lopen", "lopen@localhost"


def create(root: Path, *, clock: Clock, branch: str = "main") -> Repository:
    """Make the empty folder `root` a repository without a commit, its HEAD on `branch`."""
    git = GitCommand(find_git(root), root, clock)
    check_version(git)
    git.run("init", "--quiet", "--template=", f"--initial-branch={branch}")
    return _opened(git)


def clone(source: Path, target: Path, *, commit: str, branch: str, clock: Clock) -> Repository:
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
