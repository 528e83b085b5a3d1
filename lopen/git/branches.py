"""The module's branch: create it and switch to it without changing a file, or explain why that is not possible."""

from __future__ import annotations

import itertools

from lopen.git import trees
from lopen.git.errors import BranchConflict, GitError, RefMoved
from lopen.git.layout import Layout
from lopen.git.refs import HEADS, Head, References, require_id

# File in the git folder → the unfinished operation it belongs to
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


class Branches:
    """The branches of one repository."""

    def __init__(self, layout: Layout, references: References) -> None:
        self._layout = layout
        self._references = references
        self._git = references.git

    def start(self, name: str) -> Head:
        """Point HEAD to `name`; create the branch at the current head if it is new. No file changes.

        A branch that was merged into the current head is fast-forwarded to it. Raises the errors of `check`.
        """
        self.check(name)
        head = self._references.head()
        if head.branch == name:
            return head
        tip = self._references.tip(HEADS + name)
        if tip is None:
            if head.commit is not None:
                self._references.move(HEADS + name, head.commit, None, f"start {name}")
        elif head.commit not in (None, tip) and self._references.reachable(tip, "HEAD"):
            self._references.move(HEADS + name, require_id(head.commit or ""), tip, f"continue {name}")
        self._references.attach_head(name)
        return self._references.head()

    def check(self, name: str) -> None:
        """Check that `start` is possible, without changing anything.

        Raises:
            BranchConflict: the branch exists with other content, so that files would have to change.
            GitError: the name is not valid or stands for another branch, an operation is in progress, or the branch is
                checked out elsewhere.
        """
        self._check_name(name)
        self.require_plain(name)
        if operation := unfinished_operation(self._layout):
            raise GitError(
                f"a {operation} is in progress",
                hint=f"finish it first: git {operation} --continue, or --abort",
            )
        head = self._references.head()
        if head.branch == name:
            return
        if elsewhere := self._references.checked_out_elsewhere(name):
            raise GitError(
                f"{name} is checked out in another work tree ({elsewhere})", hint="see: git worktree list"
            )
        tip = self._references.tip(HEADS + name)
        merged = tip is not None and head.commit is not None and self._references.reachable(tip, "HEAD")
        if tip is not None and not merged:
            self._check_same_files(name, tip, head)

    def require_plain(self, name: str) -> None:
        """Refuse a branch that stands for another one: what moves it moves the other.

        Raises:
            GitError: it is a symbolic reference.
        """
        stands_for = self._git.run("symbolic-ref", "--quiet", HEADS + name, accept=(0, 1, 128)).text
        if stands_for:
            raise GitError(
                f"the branch {name} is a symbolic reference to {stands_for.removeprefix(HEADS)}:"
                " lopen would move that branch",
                hint=f"git symbolic-ref --delete {HEADS}{name}",
            )

    def likely_base(self, other: str) -> str | None:
        """Return the branch that `other` probably started from, if nothing records it; None if unknown."""
        configured = self._git.run("config", "--get", "init.defaultBranch", accept=(0, 1)).text.strip()
        names = [name.removeprefix(HEADS) for name in self._references.names(HEADS) if name != HEADS + other]
        usual = next((name for name in (configured, "main", "master") if name in names), None)
        return usual or (names[0] if len(names) == 1 else None)

    def free_name(self, name: str) -> str:
        """Return a free name to which the branch `name` can be renamed."""
        taken = set(self._references.names(HEADS))
        ends = itertools.chain(["-old"], (f"-old-{n}" for n in itertools.count(2)))
        return next(name + end for end in ends if f"{HEADS}{name}{end}" not in taken)

    def _check_name(self, name: str) -> None:
        if name.startswith("-") or self._git.run("check-ref-format", HEADS + name, accept=(0, 1)).exit_code:
            raise GitError(f"invalid branch name {name!r}", hint="set another git.branch_prefix")

    def _tree(self, commit: str) -> str:
        return trees.tree_of(self._git, self._layout, commit)

    def _check_same_files(self, name: str, tip: str, head: Head) -> None:
        """Refuse a switch of branches that would change files."""
        if head.commit is not None and self._tree(tip) == self._tree(head.commit):
            return
        raise BranchConflict(
            f"the branch {name} already exists and its files differ from the current ones",
            hint=f"to continue it: git switch {name}; to start over: git branch -m {name} {self.free_name(name)}",
        )
