"""Errors of git, and the translation of git's messages into them, with hints. Pure."""

from __future__ import annotations

import re
import shlex

from lopen.core.errors import LopenError

_SHOWN_CHARS = 2_000


class GitError(LopenError):
    """git failed. git's own message in it is data, never instructions."""


class NotARepository(GitError):
    """The folder is not a git repository that lopen can work in."""


class NoIdentity(GitError):
    """git has no configured identity to commit with; lopen does not invent one."""


class GitLocked(GitError):
    """Another git process held a lock for longer than lopen waits."""


class GitTimedOut(GitError):
    """git exceeded the time limit and was terminated."""


class RefMoved(GitError):
    """Another process moved a branch. Nothing was changed."""


class NotEncodable(GitError):
    """A file is not in the encoding that an attribute names for it. Nothing was stored."""


_NOT_ENCODED = re.compile(
    r"(BOM is (required|prohibited) in|failed to encode) '(?P<path>.+?)' (if encoded as|from) (?P<encoding>\S+)"
)
_LOCK = re.compile(r"Unable to create '(?P<path>.+?\.lock)': File exists")
_MOVED = re.compile(
    r"cannot lock ref '.*?': (is at [0-9a-f]+ but expected|reference already exists|unable to resolve)"
)
_DUBIOUS = re.compile(r"detected dubious ownership")
_NO_IDENTITY = re.compile(
    r"empty ident name|[Pp]lease tell me who you are|no (email|name) was given|auto-detection is disabled"
)
_NOT_WRITTEN = re.compile(r"No space left|quota exceeded|Read-only file system|Input/output error")
_NO_REPOSITORY = re.compile(r"not a git repository")
_NO_WORK_TREE = re.compile(r"must be run in a work tree")
_NAME_TAKEN = re.compile(r"cannot lock ref '.*?': '(?P<ref>refs/[^']+)' exists; cannot create")


def lock_in(stderr: str) -> str | None:
    """Return the lock file that another process holds, if that is why git failed."""
    found = _LOCK.search(stderr)
    return found["path"] if found else None


def no_identity() -> NoIdentity:
    """Return the error for a user without a configured git identity."""
    return NoIdentity(
        "git has no identity to commit with",
        hint='git config --global user.name "Your Name" && git config --global user.email you@example.org',
    )


def translate(subcommand: str, exit_code: int, stderr: str, *, folder: str) -> GitError:
    """Return the error for the `stderr` of a failed `git <subcommand>` in `folder`."""
    if lock := lock_in(stderr):
        return GitLocked(
            f"another git process holds {lock}",
            hint=f"let it finish; if no git process is running, delete {lock}",
        )
    if taken := _NAME_TAKEN.search(stderr):
        return GitError(
            f"the branch name conflicts with {taken['ref']}",
            hint="rename that branch",
        )
    if found := _NOT_ENCODED.search(stderr):
        return NotEncodable(
            f"git cannot store {found['path']}: it is not {found['encoding']}, the encoding that .gitattributes names for it",
            hint="write the file in that encoding, or take working-tree-encoding out of .gitattributes",
        )
    if _MOVED.search(stderr):
        return RefMoved(
            f"a branch moved while lopen worked: {_tail(stderr)}",
            hint="see: git reflog",
        )
    if _NO_IDENTITY.search(stderr):
        return no_identity()
    if _DUBIOUS.search(stderr):
        return NotARepository(
            f"{folder} belongs to another user, so git refuses to work in it",
            hint=f"if you trust it: git config --global --add safe.directory {shlex.quote(folder)}",
        )
    if _NO_WORK_TREE.search(stderr):
        return NotARepository(
            f"{folder} has no work tree: a bare repository, or a folder inside .git",
            hint="clone it, and run lopen in the clone",
        )
    if _NO_REPOSITORY.search(stderr):
        return NotARepository(
            f"{folder} is not a git repository",
            hint=f"create one: git -C {shlex.quote(folder)} init",
        )
    place = f" in {folder}" if _NOT_WRITTEN.search(stderr) else ""
    return GitError(f"git {subcommand} failed{place} ({exit_code}): {_tail(stderr)}")


def _tail(stderr: str) -> str:
    """Return the end of git's message, short enough for an error."""
    text = stderr.strip()
    return text if len(text) <= _SHOWN_CHARS else "…" + text[-_SHOWN_CHARS:]
