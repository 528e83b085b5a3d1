"""The work tree as the loop sees it: snapshots, differences and restoring files, with or without a repository.

`Repository` implements it with a repository, `ShadowTree` without one.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from threading import Lock
from typing import TypeVar

from lopen.git import trees
from lopen.git.branch_clone import BranchClone
from lopen.git.checked_out import checked_out, conversions, restore
from lopen.git.command import GitCommand
from lopen.git.commit_hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.commits import CommitInfo
from lopen.git.ignores import HALF_WRITTEN, ignored_paths, is_internal
from lopen.git.nested import is_protected_path
from lopen.git.private import PrivateFolder
from lopen.git.protection import GitFolderGuard, ProtectedState, Tampering
from lopen.git.refs import Head
from lopen.git.screening import Leak
from lopen.git.snapshot import Snapshots
from lopen.git.stored_objects import blob_sizes

NO_EXCLUSIONS: Mapping[str, str] = {}
_KEPT_ANSWERS = 64
_MOST_NAMED = 100_000  # characters of paths in a command: Linux takes 2 MB, with the environment
_MOST_ASKED = 1_000  # blobs, in a question whose answer is kept

Answer = TypeVar("Answer")


class Checkout(ABC):
    """The files of one folder, through the content door. Without a repository it has no head, commit, hook or branch."""

    ignored_filters: tuple[str, ...] = ()
    """Content filters that only the repository configures. They never run; a user can move them to their own
    configuration (`git config --global filter.<name>.clean …`)."""

    def __init__(
        self,
        private: PrivateFolder,
        snapshots: Snapshots,
        guard: GitFolderGuard,
        *,
        base: Callable[[], str | None],
    ) -> None:
        self.root = private.layout.root
        self.layout = private.layout
        self._private = private
        self._snapshots = snapshots
        self._guard = guard
        self._base = base  # returns the commit that a snapshot is based on
        self._embedded: tuple[str, ...] = ()
        self.changed_protected_paths: tuple[str, ...] = ()  # by the latest snapshot, see `is_protected_path`
        # About objects, which never change under their id
        self._answers: dict[tuple[object, ...], object] = {}
        self._listing = Lock()  # read-only tools of one turn may list files in parallel

    def snapshot(self, exclude: Mapping[str, str] = NO_EXCLUSIONS, *, bounded: bool = True) -> str:
        """Return the tree id of the current work tree; its objects are durable.

        It has all files that git does not ignore, without lopen's state, untracked well-known caches and `embedded`
        repositories. A path in `exclude` (path → blob id) stays as in HEAD while its content is that blob.
        Raises `TooManyFiles` if it is `bounded`.
        """
        self._snapshots.set_head(self._base())
        tree, status = self._snapshots.write_tree(exclude, bounded=bounded)
        self._embedded = status.embedded
        self.changed_protected_paths = tuple(path for path in status.changed if is_protected_path(path))
        return tree

    @property
    def embedded(self) -> tuple[str, ...]:
        """Folders that the latest snapshot left out: repositories of their own, of which git would commit a pointer."""
        return self._embedded

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """Secrets that the latest snapshot would add to the history. Its tree can be compared but not committed."""
        return self._snapshots.leaks

    def files(self) -> list[str]:
        """Return every file that git does not ignore, tracked or not, without lopen's own state."""
        with self._listing:
            self._snapshots.set_head(self._base())
            git = self._snapshots.head_index()
            found = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard").fields()
        return sorted({path for path in found if not is_internal(path) and not path.endswith("/")})

    def dirty(self, allow: Callable[[str], bool]) -> tuple[str, ...]:
        """Return uncommitted paths, staged or not, except ignored ones and those that `allow` accepts, sorted.

        A folder that is a repository of its own counts as one path.
        """
        self._snapshots.set_head(self._base())
        found = self._snapshots.user_index_status()
        return tuple(path for path in sorted((*found.changed, *found.embedded)) if not allow(path))

    def ignored(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return those of `paths` that git ignores and does not track; snapshots and commits do not contain them."""
        # check-ignore does not take literal paths; a leading `./` prevents any other reading of a name.
        listed = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        with self._listing:
            self._snapshots.set_head(self._base())
            git = self._snapshots.head_index().with_options({"GIT_LITERAL_PATHSPECS": "0"})
            found = git.run("check-ignore", "-z", "--stdin", stdin=listed, accept=(0, 1)).fields()
        return tuple(path.removeprefix("./") for path in found)

    def left_out(self) -> tuple[str, ...]:
        """Return what lies in the work tree and enters no commit: ignored files (a folder counts once), repositories."""
        self._snapshots.set_head(self._base())
        ignored = ignored_paths(self._snapshots.head_index())
        return tuple(sorted({*ignored, *(f"{path}/" for path in self._embedded)}))

    def changes(self, before: str, after: str) -> tuple[trees.TreeChange, ...]:
        """Return the changes from the tree (or commit) `before` to `after`, by path."""
        found = self._all_changes(before, after)
        return tuple(c for c in found if trees.FOLDER not in (c.mode_before, c.mode_after))

    def _all_changes(self, before: str, after: str) -> tuple[trees.TreeChange, ...]:
        """Return the changes of files and folders."""
        nowhere = {"GIT_INDEX_FILE": str(self._private.indexes / "index.none")}  # else git reads one for it
        return self._known(
            ("changes", before, after),
            lambda: trees.changes(self._reader().with_options(nowhere), self.layout, before, after),
        )

    def clone(self, folder: Path) -> BranchClone | None:
        """Return a repository in `folder` with what a clone of the branch would hold; None without a branch."""
        return None

    def diff(
        self,
        before: str,
        after: str,
        *,
        paths: Sequence[str] | None = None,
        max_chars: int | None = None,
        as_text: bool = False,
    ) -> str:
        """Return the unified diff of two trees, of `paths` if given, cut at `max_chars`; `as_text`: no file is binary."""
        if paths is not None and sum(map(len, paths)) > _MOST_NAMED:
            before, after = self._with_only(frozenset(paths), before, after)
            paths = None
        git = self._reader()
        return trees.diff(git, self.layout, before, after, paths=paths, max_chars=max_chars, as_text=as_text)

    def _with_only(self, paths: Set[str], before: str, after: str) -> tuple[str, str]:
        """Return both trees without the files that differ and are not in `paths` or below them."""
        changed = self.changes(before, after)
        named = {c.path for c in trees.within(changed, paths)}
        others = {c.path: None for c in changed if c.path not in named}
        return self.tree_with(before, others), self.tree_with(after, others)

    def entries(self, tree: str) -> dict[str, trees.TreeEntry]:
        """Return path → entry of every file of a tree."""
        return trees.entries(self._reader(), self.layout, tree)

    def blob_sizes(self, blobs: Iterable[str]) -> Mapping[str, int]:
        """Return blob id → size in bytes."""
        if len(wanted := tuple(blobs)) > _MOST_ASKED:
            return blob_sizes(self._reader(), wanted)
        return self._known(("sizes", *wanted), lambda: blob_sizes(self._reader(), wanted))

    def blob_contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return blob id → content."""
        return trees.blob_contents(self._reader(), blobs, self.layout)

    def file_at(self, tree: str, path: str) -> bytes | None:
        """Return a file's content in a tree; None if there is no such file."""
        return trees.file_at(self._reader(), self.layout, tree, path)

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        return self._known(("tree", commit), lambda: trees.tree_of(self._reader(), self.layout, commit))

    def merged(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Merge two commits without touching a file; return the tree, and the paths in conflict."""
        return trees.merged(self._reader(), ours, theirs)

    def tree_with(self, tree: str, files: Mapping[str, trees.TreeEntry | None]) -> str:
        """Return the id of `tree` with these `files` in place of its own; no commit can hold it."""
        self._private.prepare(self._base())
        return self._snapshots.tree_with(tree, files)

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """Return path → blob id of the current content, for `exclude`; only files and links are included."""
        self._private.prepare(self._base())
        return self._snapshots.blobs(paths)

    def restore(self, tree: str, paths: Iterable[str]) -> None:
        """Restore files from `tree`, deleting those that it does not contain; never through a symbolic link."""
        self._private.prepare(self._base())
        restore(self._private, tree, paths)

    def conversions(self, tree: str, paths: Iterable[str]) -> Mapping[tuple[str, str], str]:
        """Return (path, attribute) → value where a checkout of the tree writes other bytes than the blob's."""
        self._private.prepare(self._base())
        return conversions(self._private, tree, paths)

    def checked_out(self, tree: str, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes that a checkout of the tree gives these files."""
        self._private.prepare(self._base())
        return checked_out(self._private, tree, paths)

    def _known(self, question: tuple[object, ...], ask: Callable[[], Answer]) -> Answer:
        """Return the answer to a question about objects, asking git only the first time."""
        with self._listing:
            if question in self._answers:
                return self._answers[question]  # type: ignore[return-value]
        answer = ask()
        with self._listing:
            while len(self._answers) >= _KEPT_ANSWERS:
                del self._answers[next(iter(self._answers))]
            self._answers[question] = answer
        return answer

    def _reader(self) -> GitCommand:
        self._private.prepare(self._base())
        return self._private.reader()

    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        """Remove what a killed run left: unfinished files, locks on index, HEAD and `branch`. Return their paths."""
        git = self._reader()
        found = git.run("ls-files", "-z", "--others", "--ignored", "-x", HALF_WRITTEN).fields()
        for path in found:
            (git.folder / path).unlink(missing_ok=True)
        return tuple(found)

    @abstractmethod
    def head(self) -> Head:
        """Return HEAD: the commit (None before the first) and the branch (None if detached)."""

    @abstractmethod
    def branch_tip(self, name: str) -> str | None:
        """Return the commit of a branch, or None if it does not exist."""

    @abstractmethod
    def reachable(self, commit: str, from_ref: str) -> bool:
        """Return True if `commit` is in the history of `from_ref`: a branch name, `HEAD`, `refs/…` or an id."""

    @abstractmethod
    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        """Return lopen's commits (of one session if given) in the history of `within` after `since`, oldest first."""

    @abstractmethod
    def commit_ids(self, within: str, *, since: str | None = None) -> frozenset[str]:
        """Return the ids of the commits in the history of `within` after `since`."""

    @abstractmethod
    def ignore_suggestion(self) -> tuple[str, ...]:
        """Return the `.gitignore` lines that cover the well-known caches in the work tree that are not ignored."""

    @abstractmethod
    def hooks_snapshot(self) -> HooksSnapshot:
        """Return the current commit hooks. The hooks at a session's start are the only ones that run in it."""

    @abstractmethod
    def run_hooks(
        self,
        snapshot: HooksSnapshot,
        tree: str,
        message: str,
        runner: Runner,
        *,
        folder: Path,
    ) -> HookOutcome:
        """Run the hooks over `tree` before it is committed. `folder` is scratch space for the hooks."""

    def protected_state(self) -> ProtectedState:
        """Read HEAD, references, configuration and hooks."""
        return self._guard.state()

    def restore_protected(self, before: ProtectedState) -> Tampering:
        """Restore the protected files that a command changed, and check for missing objects."""
        return self._guard.restore(before)

    def read_only_paths(self) -> tuple[str, ...]:
        """Return the absolute paths besides `.git` that a sandbox must keep read-only."""
        return self._guard.read_only_paths()

    def has_several_git_folders(self) -> bool:
        """Return True if there is more to protect than one `.git` folder at the top."""
        return self._guard.has_several_git_folders()

    def nested_settings(self) -> tuple[str, ...]:
        """Return versioned `.claude/settings*` and `.lopen` in subfolders, relative to the root."""
        return self._guard.settings()

    def configured_paths(self) -> tuple[str, ...]:
        """Return hooks and configuration of git in the work tree, existing or not, relative to the root."""
        return self._guard.configured()
