"""References: what HEAD and branches are, and moving them only from where they are expected.

Reading opens git's own small files and starts no process; where they look unusual (reftable, a chain of symbolic
references) git is asked. This is the references door: nothing here looks at the work tree's content.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

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
    """Where the checkout stands. `commit` is None before the first commit, `branch` None where detached."""

    commit: str | None
    branch: str | None


def is_id(text: str) -> bool:
    """Whether `text` is a whole object id, and so can be no option and no expression."""
    return _ID.fullmatch(text) is not None


def checked_id(text: str) -> str:
    """`text`, an object id.

    Raises:
        GitError: it is something else.
    """
    if not is_id(text):
        raise GitError(f"{text!r} is no object id")
    return text


def single_line(text: str) -> str:
    """Return `text` on one line without invisible characters, at most 72 characters long."""
    visible = "".join(" " if unicodedata.category(char) in _INVISIBLE else char for char in text)
    line = re.sub(r"\s+", " ", visible).strip()
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1].rstrip() + "…"


class References:
    """The references of one repository. `git` is the command that works through this door."""

    def __init__(self, layout: Layout, git: GitCommand) -> None:
        self._layout = layout
        self.git = git

    def head(self) -> Head:
        """HEAD as it is now."""
        content = _read(self._layout.git_dir / "HEAD")
        if content is not None and is_id(content):
            return Head(content, None)
        if content is None or not content.startswith(f"ref: {HEADS}") or content.endswith("/.invalid"):
            return self._asked_head()
        ref = content.removeprefix("ref: ")
        return Head(self.tip(ref), ref.removeprefix(HEADS))

    def tip(self, ref: str) -> str | None:
        """The object a full reference name (`refs/…`) points at, or None where it does not exist."""
        loose = _read(self._layout.common_dir / ref) if _plain(ref) else None
        if loose is not None and is_id(loose):
            return loose
        answer = self.git.run("rev-parse", "--verify", "--quiet", "--end-of-options", ref, accept=(0, 1, 128))
        return answer.text if is_id(answer.text) else None

    def resolve(self, name: str) -> str | None:
        """The commit of an id, of `HEAD`, of a full reference name or of a branch name; None where there is none."""
        if is_id(name):
            return name
        if name == "HEAD":
            return self.head().commit
        return self.tip(name if name.startswith("refs/") else HEADS + name)

    def reachable(self, commit: str, from_ref: str) -> bool:
        """Whether `commit` is an ancestor of `from_ref` or the same. An unknown commit is not reachable."""
        start = self.resolve(from_ref)
        if start is None:
            return False
        answer = self.git.run("merge-base", "--is-ancestor", checked_id(commit), start, accept=(0, 1, 128))
        return answer.exit_code == 0

    def move(self, ref: str, new: str, old: str | None, reason: str) -> None:
        """Point `ref` at `new`, if it still is at `old` (None: does not exist yet); durable on return.

        Raises:
            RefMoved: it is elsewhere.
        """
        expected = self._layout.nothing if old is None else old
        durable = self.git.having(config={"core.fsync": "committed,index,reference"})
        durable.run("update-ref", "-m", f"lopen: {single_line(reason)}", ref, new, expected)

    def attach_head(self, branch: str) -> None:
        """Make HEAD speak of `branch`; index and work tree stay as they are."""
        self.git.run("symbolic-ref", "-m", f"lopen: work on {branch}", "HEAD", HEADS + branch)

    def names(self, prefix: str) -> list[str]:
        """The full names of all references under `prefix`, sorted."""
        return self.git.run("for-each-ref", "--format=%(refname)", prefix).text.split("\n")

    def next_backup_name(self, session_id: str) -> str:
        """Return the first free `refs/lopen/backup/<session>/<n>`, counted from 1."""
        prefix = backup_prefix(session_id)
        taken = [name.removeprefix(prefix) for name in self.names(prefix)]
        return f"{prefix}{max((int(n) for n in taken if n.isdecimal()), default=0) + 1}"

    def checked_out_elsewhere(self, branch: str) -> Path | None:
        """The git folder of another work tree whose HEAD is on `branch`."""
        common = self._layout.common_dir
        others = [common, *sorted((common / "worktrees").glob("*"))]
        for folder in others:
            if (
                folder.resolve() != self._layout.git_dir.resolve()
                and _read(folder / "HEAD") == f"ref: {HEADS}{branch}"
            ):
                return folder
        return None

    def _asked_head(self) -> Head:
        symbolic = self.git.run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)).text
        return Head(self.tip("HEAD"), symbolic.removeprefix(HEADS) or None)


def _plain(ref: str) -> bool:
    """Whether a reference may be looked up as a file: no way out of the folder."""
    return ref.startswith("refs/") and ".." not in ref


def _read(path: Path) -> str | None:
    """A small text file without its line end; None where there is none or it is something else."""
    try:
        return path.read_text("utf-8").rstrip("\n") if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def backup_prefix(session_id: str) -> str:
    """Return the prefix of a session's backups: `refs/lopen/backup/<session>/`."""
    return f"{BACKUPS}{_INVALID.sub('-', session_id).strip('-') or 'session'}/"
