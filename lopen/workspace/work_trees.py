"""Where a session works: in the person's checkout, or in a linked work tree beside it (`git.isolation`).

`home` is the checkout: `.lopen/` lies there, and `specs/<module>/`, which people read, edit and approve there. A
linked work tree gets a copy of the module's papers, so that its commits carry them.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from lopen.git import linked_worktrees
from lopen.git.branches import require_commit
from lopen.git.checkout import Checkout
from lopen.git.errors import GitError
from lopen.git.repository import Repository, versioned
from lopen.storage.folder import ignore_state
from lopen.workspace.paths import Root
from lopen.workspace.protection import ToolRefused
from lopen.workspace.workspace import Workspace

NO_LEFTOVERS: Mapping[str, str] = {}
PAPERS = ("SPECIFICATION.md", "RESEARCH-*.md")


class Workplace:
    """In the person's own checkout."""

    apart = False  # whether work goes on in another folder than the person's
    news: tuple[str, ...] = ()  # what a person should hear of how it was found

    def __init__(self, home: Path, repository: Checkout) -> None:
        self.home = home
        self.root = repository.root
        self.repository = repository

    def write_paper(self, name: str, text: str) -> None:
        """Write one of lopen's own papers (`specs/<module>/…`), where people read it."""
        Workspace(self.home).write_paper(name, text)

    def bring_papers(self, module: str) -> tuple[str, ...]:
        """Take over what a person changed of the module's papers; the paths that were not the same."""
        return ()

    def stand_at_start(self, branch: str) -> None:
        """Have the commit checked out that the module's branch is to begin at, before it is made."""

    def persons_branch(self) -> str | None:
        """The branch that the person's checkout is on; None where it is detached."""
        return self.repository.head().branch

    def ignore_state(self) -> None:
        """Keep `.lopen/` out of git wherever the module's branch is checked out."""
        ignore_state(self.root)

    def merge_command(self, module: str, branch: str, start: str | None) -> str:
        """How a person takes the branch over; `start` is what their checkout was on when it began."""
        return " && ".join([*_onto(versioned(self.repository), branch, start), f"git merge {branch}"])

    def leave(self, leftovers: Mapping[str, str] = NO_LEFTOVERS) -> str:
        """The work is done: what became of the place, for a person. `leftovers`: of verify commands, path → blob."""
        return ""


class LinkedTree(Workplace):
    """In a linked work tree: HEAD, index and files of the person's checkout stay as they are."""

    apart = True

    def __init__(self, checkout: Repository, repository: Repository, news: tuple[str, ...] = ()) -> None:
        super().__init__(checkout.root, repository)
        self.news = news
        self._checkout = checkout
        self._linked = repository

    def write_paper(self, name: str, text: str) -> None:
        super().write_paper(name, text)
        self._copy(name, text.encode())

    def bring_papers(self, module: str) -> tuple[str, ...]:
        folder = self.home / "specs" / module
        found = sorted(path for pattern in PAPERS for path in folder.glob(pattern) if path.is_file())
        names = [f"specs/{module}/{path.name}" for path in found]
        return tuple(
            name for name, path in zip(names, found, strict=True) if self._copy(name, path.read_bytes())
        )

    def _copy(self, name: str, content: bytes) -> bool:
        """Whether it was not there already. Never through a link that leads out of the work tree."""
        target = self.root / name
        if not target.is_symlink() and _content(target) == content:
            return False
        try:
            Root(self.root).replace_file(name, content, own=True)  # whatever its encoding
        except ToolRefused:
            return False
        return True

    def stand_at_start(self, branch: str) -> None:
        start = start_of(self._checkout, branch)
        if self._linked.head().commit != start:
            self._linked.reset_to(start)

    def persons_branch(self) -> str | None:
        return self._checkout.head().branch

    def ignore_state(self) -> None:
        """Nothing to write, `info/exclude` is enough: a `.lopen/.gitignore` on the branch would stand in the way
        of its merge into the checkout, where one lies untracked."""

    def merge_command(self, module: str, branch: str, start: str | None) -> str:
        papers = f"specs/{module}"
        now = self.persons_branch()
        steps = [] if now is not None and start in (None, now) else _onto(self._checkout, branch, start)
        lie_open: tuple[str, ...] = ()
        with suppress(GitError):  # the work is done all the same
            lie_open = self._checkout.dirty(lambda path: not path.startswith(f"{papers}/"))
        if lie_open:  # the branch has them too, so they would stand in the merge's way
            steps += [f"git add {papers}", f"git commit -m 'docs({module}): specify' -- {papers}"]
        return " && ".join([*steps, f"git merge {branch}"])

    def leave(self, leftovers: Mapping[str, str] = NO_LEFTOVERS) -> str:
        branch = self._linked.head().branch
        try:
            if left := unsaved(self.home, self._linked, leftovers):
                return f"the work tree {self.root} stays: it holds uncommitted work ({', '.join(left[:5])})"
            linked_worktrees.remove(self._checkout, self.root, lambda _: True)
        except GitError as error:  # the work is done all the same
            return f"the work tree {self.root} stays: {error.message}"
        with suppress(OSError):
            self.root.parent.rmdir()  # the last one's
        return f"the work tree {self.root} is removed; its work is on {branch}"


def _onto(repository: Repository, branch: str, start: str | None) -> list[str]:
    """The step onto the branch that is to have the work: where it began, if that is there, else the likeliest one.

    Where there is none, one is made from before the work.
    """
    known = start if start not in (None, branch) and repository.branch_tip(start or "") else None
    if onto := known or repository.branches.likely_home(branch):
        return [f"git switch {shlex.quote(onto)}"]
    first = repository.session_commits(within=branch)
    return [f"git switch -c main {first[0].sha[:12]}~1"] if first else []


def unsaved(home: Path, linked: Repository, leftovers: Mapping[str, str] = NO_LEFTOVERS) -> tuple[str, ...]:
    """What would be lost with a work tree: uncommitted, no leftover, and not the same in the person's checkout."""
    found = linked.dirty(lambda path: path.split("/", 1)[0] == ".lopen")
    there = linked.blobs(found) if leftovers else {}
    return tuple(
        path
        for path in found
        if not (path in there and there[path] == leftovers.get(path))
        and not (path.startswith("specs/") and _content(linked.root / path) == _content(home / path))
    )


def start_of(checkout: Repository, branch: str) -> str:
    """The commit a session on `branch` begins at: the branch's tip while it is not merged, else the person's head."""
    head, tip = checkout.head(), checkout.branch_tip(branch)
    start = require_commit(head)
    return start if tip is None or checkout.reachable(tip, start) else tip


def linked_tree(checkout: Repository, path: Path, branch: str, *, begun: bool) -> LinkedTree:
    """The module's work tree at `path`, made where there is none; with HEAD on `branch` where that was `begun`.

    To be called by whoever holds the lock on this repository's work trees.

    Raises:
        GitError: the branch is checked out elsewhere, or there is no commit yet.
    """
    if path.resolve().is_relative_to(checkout.root):
        raise GitError(
            f"{path} lies in the project, where git.isolation = worktree must leave everything as it is",
            hint="have XDG_CACHE_HOME name a folder outside of it",
        )
    unfinished = path.with_name(f".{path.name}.making")
    if unfinished.exists() and path.exists():  # killed while it was made: nobody has worked in it yet
        _drop(checkout, path)
    news: tuple[str, ...] = ()
    if path.exists():
        try:
            return LinkedTree(checkout, checkout.linked(path, branch))
        except GitError as error:
            kept = _set_aside(path)
            linked_worktrees.forget(checkout, path)
            news = (f"{error.message}; what lay there was moved to {kept}",)
    unfinished.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished.touch()
    if begun and checkout.branch_tip(branch) is not None:
        linked = linked_worktrees.add(checkout, path, branch)
    else:
        linked = linked_worktrees.add_detached(checkout, path, start_of(checkout, branch), branch)
    unfinished.unlink()
    return LinkedTree(checkout, linked, (*news, f"work goes on in {path}; this checkout stays as it is"))


def clear_dead(checkout: Repository, folder: Path, dead: Callable[[str], bool]) -> Iterator[str]:
    """Remove the work trees in `folder` whose module's sessions are `dead`; a line on each, for a person."""
    for path in sorted(folder.glob("[!.]*")):
        if not dead(path.name):
            continue
        try:
            left = unsaved(checkout.root, checkout.linked(path, ""))
            if not left:
                _drop(checkout, path)
                yield f"removed {path}, the work tree of a session that is over"
                continue
            why = f"it holds uncommitted work ({', '.join(left[:5])})"
        except GitError as error:
            why = error.message
        yield f"{path} is left of a session that is over: {why}; look at it, then remove it"


def _drop(checkout: Repository, path: Path) -> None:
    """Delete a work tree in which nothing is left to lose."""
    with suppress(GitError):
        linked_worktrees.remove(checkout, path, lambda _: True)
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
        linked_worktrees.forget(checkout, path)


def _set_aside(path: Path) -> Path:
    kept = path.with_name(f".{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    path.rename(kept)
    return kept


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
