"""References: read HEAD and branches, and move a reference only from its expected value.

Reading opens git's own small files without a process; others (packed ones, reftable, chains of symbolic references) are
left to git.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.errors import GitError, RefMoved
from lopen.git.layout import Layout

HEADS = "refs/heads/"
BRANCH_PREFIX = "lopen/"  # of the name of a module's branch
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


_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}


def unfinished_operation(layout: Layout) -> str | None:
    """Return the operation of git that is in progress (`merge`, `rebase`, …), or None."""
    return next((name for file, name in _UNFINISHED.items() if (layout.git_dir / file).exists()), None)


def require_commit(head: Head, module: str = "") -> str:
    """Return HEAD's commit, where a module's branch starts; raises `GitError` if there is none yet."""
    if head.commit is None:
        then = f", then: lopen run {module}" if module else ""
        raise GitError(
            "the repository has no commit yet", hint=f"make a first one (git add -A && git commit){then}"
        )
    return head.commit


def check_head(head: Head, branch: str, commit: str | None) -> None:
    """Require that HEAD is on `branch` at `commit`.

    Raises:
        RefMoved: the branch is at another commit.
        GitError: HEAD is not on the branch.
    """
    if head.branch != branch:
        raise GitError(
            f"HEAD is on {head.branch or 'no branch'}, not on {branch}",
            hint=f"git switch {branch}, then: lopen resume",
        )
    if head.commit != commit:
        raise RefMoved(f"{branch} moved: it is at {head.commit}, not at {commit}", hint="see: git reflog")


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
    """The references of one repository."""

    def __init__(self, layout: Layout, git: GitCommand) -> None:
        self.layout = layout
        self.git = git

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
        loose = _read(self.layout.common_dir / ref) if _is_file_name(ref) else None
        if loose is not None and is_id(loose):
            return loose
        answer = self.git.run("rev-parse", "--verify", "--quiet", "--end-of-options", ref, accept=(0, 1, 128))
        return answer.text if is_id(answer.text) else None

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

        A name of lopen's own that stands for another branch moves alone.

        Raises:
            RefMoved: it is not at `old`.
        """
        expected = self.layout.null_id if old is None else old
        durable = self.git.with_options(config={"core.fsync": "committed,index,reference"})
        alone = ("--no-deref",) if ref.startswith((HEADS + BRANCH_PREFIX, "refs/lopen/")) else ()
        durable.run("update-ref", *alone, "-m", f"lopen: {single_line(reason)}", ref, new, expected)

    def attach_head(self, branch: str) -> None:
        """Point HEAD to `branch`; the index and the work tree do not change."""
        self.git.run("symbolic-ref", "-m", f"lopen: work on {branch}", "HEAD", HEADS + branch)

    def remove_lock(self, branch: str) -> tuple[str, ...]:
        """Remove the lock on lopen's `branch` that a killed run left; return its path. The caller holds the module's lock."""
        lock = self.layout.common_dir / f"{HEADS}{branch}.lock"
        if not lock.is_file():
            return ()
        lock.unlink(missing_ok=True)
        return (str(lock),)

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

    def checked_out(self, branch: str, *, elsewhere: bool = False) -> Path | None:
        """Return the work tree whose HEAD is on `branch`, or None; with `elsewhere` this one does not count."""
        common = self.layout.common_dir
        for folder in (common, *sorted((common / "worktrees").glob("*"))):
            own = folder.resolve() == self.layout.git_dir.resolve()
            if _read(folder / "HEAD") != f"ref: {HEADS}{branch}" or (own and elsewhere):
                continue
            if own:
                return self.layout.root
            pointer = _read(folder / "gitdir")
            return Path(pointer).parent if pointer else folder.parent
        return None

    def check_name(self, name: str) -> None:
        """Raise `GitError` for a name that no branch can have."""
        if name.startswith("-") or self.git.run("check-ref-format", HEADS + name, accept=(0, 1)).exit_code:
            raise GitError(f"invalid branch name {name!r}", hint="rename the module")

    def likely_base(self, other: str) -> str | None:
        """Return the branch that `other` probably started from, if nothing records it; None if unknown."""
        configured = self.git.run("config", "--get", "init.defaultBranch", accept=(0, 1)).text.strip()
        names = [name.removeprefix(HEADS) for name in self.names(HEADS) if name != HEADS + other]
        usual = next((name for name in (configured, "main", "master") if name in names), None)
        return usual or (names[0] if len(names) == 1 else None)

    def _head_from_git(self) -> Head:
        symbolic = self.git.run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)).text
        return Head(self.tip("HEAD"), symbolic.removeprefix(HEADS) or None)


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
