"""Commit messages with lopen's trailers, writing commits of snapshots, and finding lopen's own commits.

Names in a message come from a model or a user. They are reduced to one line, so that they can neither end the
subject nor forge a trailer. See docs/reference/git.md.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lopen.git.command import GitCommand
from lopen.git.errors import GitError, no_identity
from lopen.git.refs import require_id, single_line
from lopen.git.screening import Leak

Convention = Literal["conventional", "plain"]

SESSION = "Lopen-Session"
TASK = "Lopen-Task"
VERDICT = "Lopen-Verdict"
WALK_LIMIT = 20_000  # commits examined in one search, newest first

_IDENTITY = re.compile(r"(?P<name>[^<\n]*) <(?P<email>[^<>]*)> \d+ [+-]\d{4}")
_FORMAT = "%x00".join(["%H", "%P", "%T", "%s", "%B"])
_BLANK = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """A commit with lopen's trailers. `task` and `verdict` are None for an approval."""

    sha: str
    parent: str | None
    tree: str
    subject: str
    session: str
    task: str | None
    verdict: str | None


def completion_message(
    *,
    module: str,
    task: str,
    component: str,
    session: str,
    task_id: str,
    verdict: str,
    convention: Convention = "conventional",
) -> str:
    """Return the message of a completed task's commit. `verdict` has the form `passed (<confidence>)`."""
    done = f"complete {single_line(task)} in {single_line(component)}"
    subject = (
        f"feat({single_line(module)}): {done}" if convention == "conventional" else done[0].upper() + done[1:]
    )
    return _with_trailers(subject, {SESSION: session, TASK: task_id, VERDICT: verdict})


def approval_message(*, module: str, session: str, convention: Convention = "conventional") -> str:
    """Return the message of a branch's first commit, which contains the specification and its research."""
    name = single_line(module)
    plain = f"Approve the specification of {name}"
    subject = f"docs({name}): approve specification" if convention == "conventional" else plain
    return _with_trailers(subject, {SESSION: session})


def _with_trailers(subject: str, trailers: dict[str, str]) -> str:
    lines = "".join(f"{name}: {single_line(value)}\n" for name, value in trailers.items())
    return f"{subject}\n\n{lines}"


def identity(git: GitCommand) -> Mapping[str, str]:
    """Return the identity to commit with, as environment variables for git.

    `git` works in the person's repository, where their `includeIf "gitdir:…"` applies.

    Raises:
        NoIdentity: none is configured.
    """
    found: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        match = _IDENTITY.fullmatch(git.run("var", f"GIT_{who}_IDENT").text)
        if match is None or not match["email"]:
            raise no_identity()
        found |= {f"GIT_{who}_NAME": match["name"], f"GIT_{who}_EMAIL": match["email"]}
    return found


def write_commit(
    git: GitCommand, tree: str, ancestors: Sequence[str | None], message: str, *, sign: bool
) -> str:
    """Write a commit object, durable on return, and return its id. `git` has an identity."""
    parents = [part for parent in ancestors if parent for part in ("-p", require_id(parent))]
    signature = ["-S"] if sign else []
    text = message.encode("utf-8", "replace")
    answer = git.run("commit-tree", *signature, *parents, "-F", "-", require_id(tree), stdin=text)
    return answer.text


def walk(git: GitCommand, start: str, *, since: str | None = None) -> list[CommitInfo]:
    """Return lopen's commits that are reachable from `start` and not from `since`, oldest first.

    At most 20,000 commits are examined. An unknown `since` is ignored.
    """
    answer = _listed(git, start, since, "--no-commit-header", f"--format={_FORMAT}%x1e")
    found = [info for info in map(_info, answer.split("\x1e\n")) if info is not None]
    return found[::-1]


def ids(git: GitCommand, start: str, *, since: str | None = None) -> frozenset[str]:
    """Return the ids of all commits that `walk` examines, in a third of the time that their messages take."""
    return frozenset(_listed(git, start, since).split())


def _listed(git: GitCommand, start: str, since: str | None, *form: str) -> str:
    command = ("rev-list", "--topo-order", f"--max-count={WALK_LIMIT}", *form, require_id(start))
    if since:
        answer = git.run(*command, f"^{require_id(since)}", accept=(0, 128))
        if not answer.exit_code:
            return os.fsdecode(answer.stdout)
    return os.fsdecode(git.run(*command).stdout)


def _info(record: str) -> CommitInfo | None:
    if record.count("\0") != 4:
        return None  # the end of the list, or a message with a NUL, which lopen does not write
    sha, parents, tree, subject, message = record.split("\0")
    found = trailers(message)
    session = found.get(SESSION)
    if not session:
        return None
    parent = parents.split(" ")[0] or None
    return CommitInfo(
        sha, parent, tree, subject, session, found.get(TASK) or None, found.get(VERDICT) or None
    )


def trailers(message: str) -> dict[str, str]:
    """Return lopen's trailers in the last paragraph of a message, the first one of each name.

    git's own parser is not used, because the repository's configuration changes its result.
    """
    _, *rest = _BLANK.split(message.rstrip())
    found: dict[str, str] = {}
    for line in rest[-1].split("\n") if rest else ():
        name, colon, value = line.partition(":")
        if colon and name in (SESSION, TASK, VERDICT):
            found.setdefault(name, value.strip())
    return found


def refuse_leaks(leaks: Sequence[Leak], purpose: str) -> None:
    """Raise `GitError` if there is a leak; `purpose` completes "it would be …"."""
    if not leaks:
        return
    first = leaks[0]
    raise GitError(
        f"{first} holds what looks like a secret ({first.kind}); it would be {purpose}, permanently",
        hint=f"remove it from the file, or ignore the file: echo {shlex.quote(f'/{first.path}')} >> .gitignore",
    )
