"""Making commits of snapshots, and finding lopen's own by their trailers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lopen.git.command import Command
from lopen.git.errors import no_identity
from lopen.git.message import SESSION, TASK, VERDICT
from lopen.git.refs import checked_id

WALK_LIMIT = 20_000  # commits looked at in one search, newest first

_IDENTITY = re.compile(r"(?P<name>.*?) <(?P<email>[^>]*)> \d+ [+-]\d{4}")
_FORMAT = "%x00".join(["%H", "%P", "%T", "%s", "%B"])
_BLANK = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """A commit that carries lopen's trailers. `task` and `verdict` are None for an approval."""

    sha: str
    parent: str | None
    tree: str
    subject: str
    session: str
    task: str | None
    verdict: str | None


def identity(git: Command) -> Mapping[str, str]:
    """In whose name to commit, as the variables that say so to git.

    Asked through the repository's own door, where the person's `includeIf "gitdir:…"` holds.

    Raises:
        NoIdentity: nobody is configured.
    """
    found: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        match = _IDENTITY.fullmatch(git.run("var", f"GIT_{who}_IDENT").text)
        if match is None or not match["email"]:
            raise no_identity()
        found |= {f"GIT_{who}_NAME": match["name"], f"GIT_{who}_EMAIL": match["email"]}
    return found


def write_commit(git: Command, tree: str, parent: str | None, message: str, *, sign: bool) -> str:
    """A commit object, durable on return; no reference moves. `git` is the content door with an identity."""
    parents = ["-p", checked_id(parent)] if parent else []
    signature = ["-S"] if sign else []
    text = message.encode("utf-8", "replace")
    answer = git.run("commit-tree", *signature, *parents, "-F", "-", checked_id(tree), stdin=text)
    return answer.text


def walk(git: Command, start: str, *, since: str | None = None) -> list[CommitInfo]:
    """lopen's commits reachable from `start` and not from `since`, oldest first.

    At most 20,000 commits are looked at; an unknown `since` (its commit is gone) sets no bound.
    """
    answer = _listed(git, start, since, "--no-commit-header", f"--format={_FORMAT}%x1e")
    found = [info for info in map(_info, answer.split("\x1e\n")) if info is not None]
    return found[::-1]


def ids(git: Command, start: str, *, since: str | None = None) -> frozenset[str]:
    """The ids of all commits that `walk` looks at: ten thousand cost a third of their messages."""
    return frozenset(_listed(git, start, since).split())


def _listed(git: Command, start: str, since: str | None, *form: str) -> str:
    command = ("rev-list", "--topo-order", f"--max-count={WALK_LIMIT}", *form, checked_id(start))
    if since:
        answer = git.run(*command, f"^{checked_id(since)}", accept=(0, 128))
        if not answer.exit_code:
            return os.fsdecode(answer.stdout)
    return os.fsdecode(git.run(*command).stdout)


def _info(record: str) -> CommitInfo | None:
    if record.count("\0") != 4:
        return None  # the end of the list, or a message that contains a NUL: not one of lopen's
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
    """lopen's trailers in the last paragraph of a message, the first of each name.

    Not by git's own reading of them: what that takes for a trailer, the repository's configuration decides.
    """
    _, *rest = _BLANK.split(message.rstrip())
    found: dict[str, str] = {}
    for line in rest[-1].split("\n") if rest else ():
        name, colon, value = line.partition(":")
        if colon and name in (SESSION, TASK, VERDICT):
            found.setdefault(name, value.strip())
    return found
