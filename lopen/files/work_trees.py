"""The work tree of a session: the user's checkout, or a linked work tree beside it (`git.isolation`).

`home` is the user's checkout. It holds `.lopen/` and `specs/<module>/`, which people read, edit and approve there.
A linked work tree gets a copy of the module's documents, so that its commits contain them.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from lopen.files.paths import Root
from lopen.files.protection import ToolRefused
from lopen.files.workspace import Workspace
from lopen.git import creation
from lopen.git.branches import require_commit
from lopen.git.checkout import Checkout
from lopen.git.errors import GitError
from lopen.git.repository import Repository, require_repository
from lopen.store.folder import ignore_state

DOCUMENTS = ("SPECIFICATION.md", "RESEARCH-*.md")


class WorkTree:
    """The user's own checkout as a session's work tree."""

    linked = False  # True if the session works in another folder than the user
    notices: tuple[str, ...] = ()  # messages for the user about the state it was found in

    def __init__(self, home: Path, repository: Checkout) -> None:
        self.home = home
        self.root = repository.root
        self.repository = repository

    def write_document(self, name: str, text: str) -> None:
        """Write a document of lopen (`specs/<module>/…`) to the folder in which people read it."""
        Workspace(self.home).write_document(name, text)

    def copy_documents(self, module: str) -> tuple[str, ...]:
        """Copy the module's documents that a person changed; return the paths that differed."""
        return ()

    def check_out_start(self, branch: str) -> None:
        """Check out the commit at which the module's new branch starts."""

    def user_branch(self) -> str | None:
        """Return the branch of the user's checkout, None if its HEAD is detached."""
        return self.repository.head().branch

    def ignore_state(self) -> None:
        """Make git ignore `.lopen/` wherever the module's branch is checked out."""
        ignore_state(self.root)

    def merge_command(self, module: str, branch: str, start: str | None) -> str:
        """Return the shell command that merges the branch; `start` is the user's branch when the work started."""
        return " && ".join(
            [*_switch_steps(require_repository(self.repository), branch, start), f"git merge {branch}"]
        )

    def close(self) -> str:
        """Finish with the work tree after the session's end; return a message for the user."""
        return ""


class LinkedTree(WorkTree):
    """A linked work tree: HEAD, index and files of the user's checkout stay unchanged."""

    linked = True

    def __init__(self, checkout: Repository, repository: Repository, notices: tuple[str, ...] = ()) -> None:
        super().__init__(checkout.root, repository)
        self.notices = notices
        self._checkout = checkout
        self._repository = repository

    def write_document(self, name: str, text: str) -> None:
        super().write_document(name, text)
        self._copy(name, text.encode())

    def copy_documents(self, module: str) -> tuple[str, ...]:
        documents = module_documents(self.home, module)
        return tuple(name for name, content in documents.items() if self._copy(name, content))

    def _copy(self, name: str, content: bytes) -> bool:
        """Write the file unless it has this content; return True if it was written. Follow no link out of the tree."""
        target = self.root / name
        if not target.is_symlink() and _content(target) == content:
            return False
        try:
            Root(self.root).replace_file(name, content, own=True)  # bytes, so that any encoding survives
        except ToolRefused:
            return False
        return True

    def check_out_start(self, branch: str) -> None:
        start = start_commit(self._checkout, branch)
        if self._repository.head().commit != start:
            self._repository.reset_to(start)

    def user_branch(self) -> str | None:
        return self._checkout.head().branch

    def ignore_state(self) -> None:
        """Write nothing: `info/exclude` is enough, and a `.lopen/.gitignore` on the branch would conflict with the
        untracked one in the user's checkout when the branch is merged."""

    def merge_command(self, module: str, branch: str, start: str | None) -> str:
        folder = f"specs/{module}"
        current = self.user_branch()
        on_target = current is not None and start in (None, current)
        steps = [] if on_target else _switch_steps(self._checkout, branch, start)
        uncommitted: tuple[str, ...] = ()
        with suppress(GitError):  # a merge command without the commit step is better than none
            uncommitted = self._checkout.dirty(lambda path: not path.startswith(f"{folder}/"))
        if uncommitted:  # the branch has these files too, so git would refuse the merge
            steps += [f"git add {folder}", f"git commit -m 'docs({module}): specify' -- {folder}"]
        return " && ".join([*steps, f"git merge {branch}"])

    def close(self) -> str:
        branch = self._repository.head().branch
        try:
            if lost := unsaved_files(self.home, self._repository):
                return (
                    f"lopen keeps the work tree {self.root}: it has uncommitted work ({', '.join(lost[:5])})"
                )
            creation.remove_work_tree(self._checkout, self.root, lambda _: True)
        except GitError as error:  # the session is complete nevertheless
            return f"lopen keeps the work tree {self.root}: {error.message}"
        with suppress(OSError):
            self.root.parent.rmdir()  # succeeds for the project's last work tree
        return f"lopen removed the work tree {self.root}; its work is on {branch}"


def module_documents(root: Path, module: str) -> dict[str, bytes]:
    """Return the module's specification and research in the checkout at `root`: path → content."""
    folder = root / "specs" / module
    files = sorted(path for pattern in DOCUMENTS for path in folder.glob(pattern) if path.is_file())
    return {f"specs/{module}/{path.name}": path.read_bytes() for path in files}


def _switch_steps(repository: Repository, branch: str, start: str | None) -> list[str]:
    """Return the command that switches to the merge target: `start` if it exists, else the likeliest branch.

    Without any such branch, the command creates one before the session's first commit.
    """
    known = start if start not in (None, branch) and repository.branch_tip(start or "") else None
    if target := known or repository.branches.likely_base(branch):
        return [f"git switch {shlex.quote(target)}"]
    first = repository.session_commits(within=branch)
    return [f"git switch -c main {first[0].sha[:12]}~1"] if first else []


def unsaved_files(home: Path, linked: Repository) -> tuple[str, ...]:
    """Return the uncommitted files of a work tree, except documents equal to those in `home`."""
    dirty = linked.dirty(lambda path: path.split("/", 1)[0] == ".lopen")
    return tuple(
        path
        for path in dirty
        if not (path.startswith("specs/") and _content(linked.root / path) == _content(home / path))
    )


def start_commit(checkout: Repository, branch: str) -> str:
    """Return the commit at which a session on `branch` starts: the unmerged branch's tip, else the user's HEAD."""
    head, tip = checkout.head(), checkout.branch_tip(branch)
    start = require_commit(head)
    return start if tip is None or checkout.reachable(tip, start) else tip


def open_linked_tree(checkout: Repository, path: Path, branch: str, *, has_branch: bool) -> LinkedTree:
    """Open or create the module's work tree at `path`, with HEAD on `branch` if the session `has_branch` already.

    The caller holds the lock on this repository's work trees.

    Raises:
        GitError: the branch is checked out elsewhere, or there is no commit yet.
    """
    if path.resolve().is_relative_to(checkout.root):
        raise GitError(
            f"{path} is in the project, which git.isolation = worktree must leave unchanged",
            hint="set XDG_CACHE_HOME to a folder outside of the project",
        )
    unfinished = path.with_name(f".{path.name}.making")
    if (
        unfinished.exists() and path.exists()
    ):  # lopen was killed while it created the tree: it has no work yet
        _delete(checkout, path)
    notices: tuple[str, ...] = ()
    if path.exists():
        try:
            return LinkedTree(checkout, checkout.linked(path, branch))
        except GitError as error:
            moved = _move_aside(path)
            creation.forget_work_tree(checkout, path)
            notices = (f"{error.message}; lopen moved its content to {moved}",)
    unfinished.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished.touch()
    if has_branch and checkout.branch_tip(branch) is not None:
        linked = creation.add_work_tree(checkout, path, branch)
    else:
        linked = creation.add_detached_work_tree(checkout, path, start_commit(checkout, branch), branch)
    unfinished.unlink()
    return LinkedTree(
        checkout, linked, (*notices, f"the session works in {path}; this checkout stays unchanged")
    )


def remove_finished(checkout: Repository, folder: Path, finished: Callable[[str], bool]) -> Iterator[str]:
    """Remove the work trees in `folder` of modules whose sessions are finished; yield a message about each."""
    for path in sorted(folder.glob("[!.]*")):
        if not finished(path.name):
            continue
        try:
            lost = unsaved_files(checkout.root, checkout.linked(path, ""))
            if not lost:
                _delete(checkout, path)
                yield f"removed {path}, the work tree of a finished session"
                continue
            reason = f"it has uncommitted work ({', '.join(lost[:5])})"
        except GitError as error:
            reason = error.message
        yield f"the work tree {path} of a finished session remains: {reason}; look at it, then remove it"


def _delete(checkout: Repository, path: Path) -> None:
    """Delete a work tree that has nothing to lose."""
    with suppress(GitError):
        creation.remove_work_tree(checkout, path, lambda _: True)
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
        creation.forget_work_tree(checkout, path)


def _move_aside(path: Path) -> Path:
    target = path.with_name(f".{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    path.rename(target)
    return target


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
