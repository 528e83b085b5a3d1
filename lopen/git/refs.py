"""References: read HEAD and branches, and move a reference only from its expected value.

Reading opens git's own small files without a process; unusual ones (reftable, chains of symbolic references) are
left to git. This is the references door: it never reads the work tree's content.
"""

from __future__ import annotations

import os
import re
import stat
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lopen.core.stat_cache import Kept, Signature, settled, signature_at
from lopen.git.command import GitCommand
from lopen.git.errors import GitError
from lopen.git.layout import Layout

HEADS = "refs/heads/"
BACKUPS = "refs/lopen/backup/"
MAX_LINE_CHARS = 72
_INVISIBLE = frozenset(
    {"Cc", "Cf", "Cs", "Zl", "Zp"}
)  # control, format (also bidirectional), surrogate, separators
_INVALID = re.compile(r"[^A-Za-z0-9_-]+")  # characters that a backup's name does not take
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Head:
    """HEAD of a checkout. `commit` is None before the first commit, `branch` is None if HEAD is detached."""

    commit: str | None
    branch: str | None


def is_id(text: str) -> bool:
    """Return True if `text` is a complete object id, and therefore not an option or an expression."""
    return _ID.fullmatch(text) is not None


def require_id(text: str) -> str:
    """Return `text`, which must be an object id.

    Raises:
        GitError: it is not one.
    """
    if not is_id(text):
        raise GitError(f"{text!r} is not an object id")
    return text


def single_line(text: str) -> str:
    """Return `text` on one line without invisible characters, at most 72 characters long."""
    visible = "".join(" " if unicodedata.category(char) in _INVISIBLE else char for char in text)
    line = re.sub(r"\s+", " ", visible).strip()
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1].rstrip() + "…"


class References:
    """The references of one repository. `git` is the command of the references door."""

    def __init__(self, layout: Layout, git: GitCommand) -> None:
        self.layout = layout
        self.git = git
        self._packed: dict[str, tuple[Signature, str]] = {}  # with the state of the file that held it

    def head(self) -> Head:
        """Return the current HEAD."""
        content = _read(self.layout.git_dir / "HEAD")
        if content is not None and is_id(content):
            return Head(content, None)
        if content is None or not content.startswith(f"ref: {HEADS}") or content.endswith("/.invalid"):
            return self._head_from_git()
        ref = content.removeprefix("ref: ")
        return Head(self.tip(ref), ref.removeprefix(HEADS))

    def tip(self, ref: str) -> str | None:
        """Return the object of a full reference name (`refs/…`), or None if it does not exist."""
        place = self.layout.common_dir / ref
        loose = _read(place) if _is_file_name(ref) else None
        if loose is not None and is_id(loose):
            return loose
        is_packed = _is_file_name(ref) and not os.path.lexists(place)
        packed, now = signature_at(self.layout.common_dir / "packed-refs"), time.time_ns()
        known = self._packed.get(ref)
        if is_packed and known is not None and known[0] == packed:
            return known[1]
        answer = self.git.run("rev-parse", "--verify", "--quiet", "--end-of-options", ref, accept=(0, 1, 128))
        found = answer.text if is_id(answer.text) else None
        if is_packed and found and packed and settled(packed[-1], now):
            self._packed[ref] = packed, found
        return found

    def resolve(self, name: str) -> str | None:
        """Return the commit of an id, `HEAD`, a full reference name or a branch name; None if there is none."""
        if is_id(name):
            return name
        if name == "HEAD":
            return self.head().commit
        return self.tip(name if name.startswith("refs/") else HEADS + name)

    def reachable(self, commit: str, from_ref: str) -> bool:
        """Return True if `commit` is `from_ref` or its ancestor. An unknown commit is not reachable."""
        start = self.resolve(from_ref)
        if start is None:
            return False
        answer = self.git.run("merge-base", "--is-ancestor", require_id(commit), start, accept=(0, 1, 128))
        return answer.exit_code == 0

    def move(self, ref: str, new: str, old: str | None, reason: str) -> None:
        """Move `ref` from `old` (None: it does not exist yet) to `new`; durable on return.

        Raises:
            RefMoved: it is not at `old`.
        """
        expected = self.layout.null_id if old is None else old
        durable = self.git.with_options(config={"core.fsync": "committed,index,reference"})
        durable.run("update-ref", "-m", f"lopen: {single_line(reason)}", ref, new, expected)

    def attach_head(self, branch: str) -> None:
        """Point HEAD to `branch`; the index and the work tree do not change."""
        self.git.run("symbolic-ref", "-m", f"lopen: work on {branch}", "HEAD", HEADS + branch)

    def names(self, prefix: str) -> list[str]:
        """Return the full names of all references under `prefix`, sorted."""
        return self.git.run("for-each-ref", "--format=%(refname)", prefix).text.split("\n")

    def next_backup_name(self, session_id: str) -> str:
        """Return the first free `refs/lopen/backup/<session>/<n>`, counted from 1."""
        return f"{backup_prefix(session_id)}{self._latest_backup(session_id) + 1}"

    def latest_backup_name(self, session_id: str) -> str | None:
        """Return the name of the session's newest backup, or None if it has none."""
        latest = self._latest_backup(session_id)
        return f"{backup_prefix(session_id)}{latest}" if latest else None

    def _latest_backup(self, session_id: str) -> int:
        prefix = backup_prefix(session_id)
        taken = [name.removeprefix(prefix) for name in self.names(prefix)]
        return max((int(n) for n in taken if n.isdecimal()), default=0)

    def checked_out_elsewhere(self, branch: str) -> Path | None:
        """Return the git folder of another work tree whose HEAD is on `branch`, or None."""
        common = self.layout.common_dir
        others = [common, *sorted((common / "worktrees").glob("*"))]
        for folder in others:
            if (
                folder.resolve() != self.layout.git_dir.resolve()
                and _read(folder / "HEAD") == f"ref: {HEADS}{branch}"
            ):
                return folder
        return None

    def _head_from_git(self) -> Head:
        symbolic = self.git.run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)).text
        return Head(self.tip("HEAD"), symbolic.removeprefix(HEADS) or None)


def rewritten_alike(folder: str, before: Mapping[str, Kept], now: Mapping[str, Kept]) -> frozenset[str]:
    """Return the files of references that differ although each reference in them is what it was before.

    `git pack-refs` and `git gc` move references from files of their own to `packed-refs`, and list them in `info/refs`.
    `before` and `now` are the files of the git folder by path.
    """
    was, now_is = _references_in(folder, before), _references_in(folder, now)
    same = {name for name in was.keys() | now_is.keys() if was.get(name) == now_is.get(name)}
    alike = {f"{folder}/info/refs", *(f"{folder}/{name}" for name in same)}
    if len(same) == len(was.keys() | now_is.keys()):
        alike.add(f"{folder}/packed-refs")
    files = (before, now)
    return frozenset(p for p in alike if all(stat.S_ISREG(at[p].mode) for at in files if p in at))


def _references_in(folder: str, files: Mapping[str, Kept]) -> dict[str, bytes]:
    """Return what each reference says, by name; a file of its own goes before `packed-refs`."""
    packed, start = files.get(f"{folder}/packed-refs"), f"{folder}/"
    lines = packed.content.splitlines() if packed else ()
    entries = (line.split(b" ", 1) for line in lines if line[:1] not in (b"#", b"^"))
    found = {os.fsdecode(entry[-1]): entry[0] for entry in entries}
    loose = (path for path in files if path.startswith(f"{start}refs/"))
    return found | {path.removeprefix(start): files[path].content.strip() for path in loose}


def _is_file_name(ref: str) -> bool:
    """Return True if the reference may be read as a file inside the git folder."""
    return ref.startswith("refs/") and ".." not in ref


def _read(path: Path) -> str | None:
    """Return a small text file without its line end; None if it does not exist or is not text."""
    try:
        return path.read_text("utf-8").rstrip("\n") if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def backup_prefix(session_id: str) -> str:
    """Return the prefix of a session's backups: `refs/lopen/backup/<session>/`."""
    return f"{BACKUPS}{_INVALID.sub('-', session_id).strip('-') or 'session'}/"
