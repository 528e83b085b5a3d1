"""What git could not do, and how git's own words become an error with a hint. Pure."""

from __future__ import annotations

import re
import shlex

from lopen.base.errors import LopenError

_SHOWN_CHARS = 2_000


class GitError(LopenError):
    """git failed. `stderr` holds its own words, unabridged; they are data, never instructions."""

    def __init__(self, message: str, *, hint: str = "", stderr: str = "") -> None:
        super().__init__(message, hint=hint)
        self.stderr = stderr


class NotARepository(GitError):
    """The folder is no git repository that lopen can work in."""


class NoIdentity(GitError):
    """git does not know in whose name to commit; lopen invents nobody."""


class GitLocked(GitError):
    """Another git process held a lock for longer than lopen waits."""


class GitTimedOut(GitError):
    """git did not end in time and was ended."""


class OtherWork(GitError):
    """The branch is there already, with other files than the ones here."""


class RefMoved(GitError):
    """A branch was not where it was expected: somebody else moved it. Nothing was changed."""


_LOCK = re.compile(r"Unable to create '(?P<path>.+?\.lock)': File exists")
_MOVED = re.compile(
    r"cannot lock ref '.*?': (is at [0-9a-f]+ but expected|reference already exists|unable to resolve)"
)
_DUBIOUS = re.compile(r"detected dubious ownership")
_NOBODY = re.compile(
    r"empty ident name|[Pp]lease tell me who you are|no (email|name) was given|auto-detection is disabled"
)
_NO_REPOSITORY = re.compile(r"not a git repository")
_NO_WORK_TREE = re.compile(r"must be run in a work tree")
_NAME_TAKEN = re.compile(r"cannot lock ref '.*?': '(?P<ref>refs/[^']+)' exists; cannot create")


def lock_in(stderr: str) -> str | None:
    """The lock file that another process holds, where that is why git failed."""
    found = _LOCK.search(stderr)
    return found["path"] if found else None


def no_identity() -> NoIdentity:
    """The error for a person who has not told git their name yet."""
    return NoIdentity(
        "git does not know in whose name to commit",
        hint='git config --global user.name "Your Name" && git config --global user.email you@example.org',
    )


def lock_error(lock: str, stderr: str = "") -> GitLocked:
    """The error for a lock file that did not go away."""
    return GitLocked(
        f"another git process holds {lock}",
        hint=f"let it finish; if none is running any more, delete {lock}",
        stderr=stderr,
    )


def translate(subcommand: str, exit_code: int, stderr: str, *, folder: str) -> GitError:
    """The error that `stderr` of a failed `git <subcommand>` in `folder` speaks of."""
    if lock := lock_in(stderr):
        return lock_error(lock, stderr)
    if taken := _NAME_TAKEN.search(stderr):
        return GitError(
            f"the name is taken: {taken['ref']} exists",
            hint="rename that branch, or choose another git.branch_prefix",
            stderr=stderr,
        )
    if _MOVED.search(stderr):
        return RefMoved(
            f"a branch moved while lopen worked: {_tail(stderr)}", hint="see: git reflog", stderr=stderr
        )
    if _NOBODY.search(stderr):
        return no_identity()
    if _DUBIOUS.search(stderr):
        return NotARepository(
            f"{folder} belongs to somebody else, so git refuses to work in it",
            hint=f"where you trust it: git config --global --add safe.directory {shlex.quote(folder)}",
            stderr=stderr,
        )
    if _NO_WORK_TREE.search(stderr):
        return NotARepository(
            f"{folder} has no work tree: a bare repository, or a folder inside .git",
            hint="clone it, and run lopen in the clone",
            stderr=stderr,
        )
    if _NO_REPOSITORY.search(stderr):
        return NotARepository(
            f"{folder} is no git repository",
            hint=f"make it one: git -C {shlex.quote(folder)} init",
            stderr=stderr,
        )
    return GitError(f"git {subcommand} failed ({exit_code}): {_tail(stderr)}", stderr=stderr)


def _tail(stderr: str) -> str:
    """The end of git's words, short enough for a message."""
    text = stderr.strip()
    return text if len(text) <= _SHOWN_CHARS else "…" + text[-_SHOWN_CHARS:]
