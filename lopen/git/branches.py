"""The module's branch: making it, getting onto it without touching a file, and what forbids that."""

from __future__ import annotations

import itertools

from lopen.git import trees
from lopen.git.errors import GitError, OtherWork, RefMoved
from lopen.git.layout import Layout
from lopen.git.refs import HEADS, Head, References, checked_id

# What lies in the git folder while an operation of git waits for the person to go on.
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}


def unfinished_operation(layout: Layout) -> str | None:
    """The operation of git that is under way (`merge`, `rebase`, …), or None."""
    return next((name for file, name in _UNFINISHED.items() if (layout.git_dir / file).exists()), None)


def require_commit(head: Head, module: str = "") -> str:
    """The commit that a module's branch begins at; refuses where there is none yet."""
    if head.commit is None:
        then = f", then go on: lopen run {module}" if module else ""
        raise GitError(
            "the repository has no commit yet", hint=f"make a first one (git add -A && git commit){then}"
        )
    return head.commit


def check_head(head: Head, branch: str, commit: str | None) -> None:
    """Refuse to go on unless HEAD is on `branch` at `commit`.

    Raises:
        RefMoved: the branch is elsewhere.
        GitError: HEAD is on something else.
    """
    if head.branch != branch:
        raise GitError(
            f"HEAD is on {head.branch or 'no branch'}, not on {branch}",
            hint=f"git switch {branch}, then: lopen resume",
        )
    if head.commit != commit:
        raise RefMoved(f"{branch} moved: it is at {head.commit}, not at {commit}", hint="see: git reflog")


class Branches:
    """The branches of one repository, as a module's work begins on one and ends in another."""

    def __init__(self, layout: Layout, references: References) -> None:
        self._layout = layout
        self._references = references
        self._git = references.git

    def start(self, name: str) -> Head:
        """Put HEAD on `name`, made from the current head where it is new. Index and work tree stay as they are.

        A branch that the current head contains (it was merged) is moved up to it. Raises as `check` does.
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
            self._references.move(HEADS + name, checked_id(head.commit or ""), tip, f"take {name} up again")
        self._references.attach_head(name)
        return self._references.head()

    def check(self, name: str) -> None:
        """Whether `start` can be done; nothing changes.

        Raises:
            OtherWork: the branch exists with other content, so that files would have to change.
            GitError: the name is none; an operation is under way; the branch is checked out in another work tree.
        """
        self._check_name(name)
        if operation := unfinished_operation(self._layout):
            raise GitError(
                f"a {operation} is under way", hint=f"end it first: git {operation} --continue, or --abort"
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

    def likely_home(self, other: str) -> str | None:
        """The branch that work on `other` is most likely meant for, where nobody noted it; None where none is."""
        configured = self._git.run("config", "--get", "init.defaultBranch", accept=(0, 1)).text.strip()
        there = [name.removeprefix(HEADS) for name in self._references.names(HEADS) if name != HEADS + other]
        usual = next((name for name in (configured, "main", "master") if name in there), None)
        return usual or (there[0] if len(there) == 1 else None)

    def free_name(self, name: str) -> str:
        """A name that the branch `name` can be put aside under."""
        taken = set(self._references.names(HEADS))
        ends = itertools.chain(["-old"], (f"-old-{n}" for n in itertools.count(2)))
        return next(name + end for end in ends if f"{HEADS}{name}{end}" not in taken)

    def _check_name(self, name: str) -> None:
        if name.startswith("-") or self._git.run("check-ref-format", HEADS + name, accept=(0, 1)).exit_code:
            raise GitError(f"{name!r} is no name for a branch", hint="set another git.branch_prefix")

    def _check_same_files(self, name: str, tip: str, head: Head) -> None:
        """Refuse a switch that would change files."""
        if head.commit is not None and trees.tree_of(self._git, tip) == trees.tree_of(self._git, head.commit):
            return
        raise OtherWork(
            f"the branch {name} exists already and its files differ from the ones here",
            hint=f"to go on with it: git switch {name}; to start afresh: git branch -m {name} {self.free_name(name)}",
        )
