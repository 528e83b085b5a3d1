"""A work tree as the loop sees it: with a repository behind it (`Repository`), or with none (`ShadowTree`)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from threading import Lock

from lopen.git import trees
from lopen.git.command import GitCommand
from lopen.git.commit_hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.commits import CommitInfo
from lopen.git.errors import GitError
from lopen.git.ignores import HALF_WRITTEN, is_internal
from lopen.git.nested import planted
from lopen.git.private import PrivateFolder
from lopen.git.protection import GitFolderGuard, ProtectedState, Tampering
from lopen.git.refs import Head
from lopen.git.screening import Leak
from lopen.git.snapshot import Snapshots

NO_EXCLUSIONS: Mapping[str, str] = {}


class Checkout(ABC):
    """What is asked of either. Without a repository there is no head, no commit, no hook and no branch."""

    ignored_filters: tuple[str, ...] = ()
    """Content filters that only the repository configures. They never run; a person may move them to their own
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
        self._base = base  # the commit that a snapshot stands on
        self._embedded: tuple[str, ...] = ()
        self.planted: tuple[str, ...] = ()  # settings further down that the latest snapshot adds or changes
        self._listing = Lock()  # read-only tools of one turn may list side by side

    def snapshot(self, exclude: Mapping[str, str] = NO_EXCLUSIONS) -> str:
        """The tree id of the work tree as it is now; its objects are durable on return.

        All files that git does not ignore, but lopen's own state, untracked well-known caches and folders that
        are repositories of their own (see `embedded`). A path of `exclude` (path → blob id: what a verify command
        left) stays as HEAD has it while its content still is that blob.
        """
        self._snapshots.follow(self._base())
        tree, found = self._snapshots.tree(exclude)
        self._embedded = found.embedded
        self.planted = tuple(path for path in found.changed if planted(path))
        return tree

    @property
    def embedded(self) -> tuple[str, ...]:
        """Folders that the latest snapshot left out because they are repositories of their own.

        Their files would not be committed, only a pointer that nobody else could follow; so they are named, for
        the model to remove their `.git` or to ignore them. Submodules that HEAD knows are not among them.
        """
        return self._embedded

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """Secrets that the latest snapshot would add to the history. Its tree can be compared, not committed."""
        return self._snapshots.leaks

    def files(self) -> list[str]:
        """Every file of the work tree that git does not ignore, tracked or not, but lopen's own state."""
        with self._listing:
            self._snapshots.follow(self._base())
            git = self._snapshots.ready()
            found = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard").fields()
        return sorted({path for path in found if not is_internal(path) and not path.endswith("/")})

    def dirty(self, allow: Callable[[str], bool]) -> tuple[str, ...]:
        """Uncommitted paths, staged or not, that git does not ignore and `allow` does not excuse, sorted.

        A folder that is a repository of its own counts as one path.
        """
        self._snapshots.follow(self._base())
        found = self._snapshots.survey_users_index()
        return tuple(path for path in sorted((*found.changed, *found.embedded)) if not allow(path))

    def ignored(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of `paths` that git ignores and does not track: they enter no snapshot and no commit."""
        # check-ignore takes no literal paths; a leading `./` keeps a name from being read as anything else.
        listed = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        with self._listing:
            self._snapshots.follow(self._base())
            git = self._snapshots.ready().having({"GIT_LITERAL_PATHSPECS": "0"})
            found = git.run("check-ignore", "-z", "--stdin", stdin=listed, accept=(0, 1)).fields()
        return tuple(path.removeprefix("./") for path in found)

    def changes(self, before: str, after: str) -> tuple[trees.TreeChange, ...]:
        """What turns the tree (or commit) `before` into `after`, by path."""
        return trees.changes(self._reader(), before, after)

    def diff(
        self, before: str, after: str, *, paths: Sequence[str] | None = None, max_chars: int | None = None
    ) -> str:
        """The unified diff of two trees, of `paths` alone where given, cut at `max_chars` and saying so."""
        return trees.diff(self._reader(), before, after, paths=paths, max_chars=max_chars)

    def file_at(self, tree: str, path: str) -> bytes | None:
        """A file's content in a tree; None where the tree has no such file."""
        return trees.file_at(self._reader(), tree, path)

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return trees.tree_of(self._reader(), commit)

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """path → the blob id its content has now, for `exclude`; what is no file or link is left out."""
        self._private.prepare(self._base())
        return self._snapshots.blobs(paths)

    def restore(self, tree: str, paths: Iterable[str]) -> None:
        """Make files what they are in `tree`, deleting those it has not; never through a symbolic link."""
        self._private.prepare(self._base())
        restore(self._private, tree, paths)

    def _reader(self) -> GitCommand:
        self._private.prepare(self._base())
        return self._private.reader()

    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        """Remove the unfinished files of a killed run and, in a repository, its locks on index, HEAD and `branch`.

        Return the removed paths.
        """
        git = self._reader()
        found = git.run("ls-files", "-z", "--others", "--ignored", "-x", HALF_WRITTEN).fields()
        for path in found:
            (git.folder / path).unlink(missing_ok=True)
        return tuple(found)

    @abstractmethod
    def head(self) -> Head:
        """What HEAD is: the commit (None before the first) and the branch (None where detached)."""

    @abstractmethod
    def branch_tip(self, name: str) -> str | None:
        """The commit of a branch, or None where there is no such branch."""

    @abstractmethod
    def reachable(self, commit: str, from_ref: str) -> bool:
        """Whether `commit` is in the history of `from_ref`: a branch name, `HEAD`, `refs/…` or an id."""

    @abstractmethod
    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        """lopen's commits (of one session where given) that `within` reaches, down to `since`, oldest first."""

    @abstractmethod
    def reached(self, within: str, *, since: str | None = None) -> frozenset[str]:
        """The ids of the commits that `within` reaches, down to `since`."""

    @abstractmethod
    def ignore_suggestion(self) -> tuple[str, ...]:
        """The `.gitignore` lines that would cover the well-known caches which lie here and are not ignored."""

    @abstractmethod
    def hooks_snapshot(self) -> HooksSnapshot:
        """The commit hooks as they are now; taken when a session begins, they are all that ever runs in it."""

    @abstractmethod
    def run_hooks(
        self,
        snapshot: HooksSnapshot,
        tree: str,
        message: str,
        runner: Runner,
        *,
        folder: Path,
        exclude: Mapping[str, str] = NO_EXCLUSIONS,
    ) -> HookOutcome:
        """Run the hooks over `tree` before it is committed. `folder` is scratch space that they may write to."""

    def protected_state(self) -> ProtectedState:
        """HEAD, references, configuration and hooks as they are now (`Guard.state`)."""
        return self._guard.state()

    def put_back(self, before: ProtectedState) -> Tampering:
        """Undo what a command changed of the protected files (`Guard.put_back`)."""
        return self._guard.put_back(before)

    def exposed(self) -> tuple[str, ...]:
        """What a sandbox has to keep read-only besides `.git`, by absolute path (`Guard.exposed`)."""
        return self._guard.exposed()

    def scattered(self) -> bool:
        """Whether there is more of git to guard than one `.git` folder at the top."""
        return self._guard.scattered()

    def nested_settings(self) -> tuple[str, ...]:
        """Versioned `.claude/settings*` and `.lopen` further down, relative to the root."""
        return self._guard.settings()


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def restore(private: PrivateFolder, tree: str, paths: Iterable[str]) -> None:
    """Make `paths` what they are in `tree`; those that are not in it are deleted.

    Raises:
        GitError: a path is not one of the work tree's own (absolute, `..`, `.git`), or could not be written.
    """
    wanted = sorted({_checked(path) for path in paths})
    if not wanted:
        return
    known = trees.entries(private.reader(), tree)
    for path in wanted:
        if path not in known:
            remove_file(private.layout.root, path)
    present = [path for path in wanted if path in known and not known[path].is_submodule]
    if present:
        git = private.reader(private.indexes / "index.restore")
        git.run("read-tree", "--reset", tree)
        listed = b"".join(os.fsencode(path) + b"\0" for path in present)
        git.run("checkout-index", "-f", "-z", "--stdin", stdin=listed)


def remove_file(root: Path, path: str) -> None:
    """Delete one file or link below `root` and the folders that it leaves empty; what is missing is no error."""
    *folders, name = PurePosixPath(path).parts
    with contextlib.ExitStack() as opened:
        descriptors = [_opened(opened, root)]
        try:
            for folder in folders:
                descriptors.append(_opened(opened, folder, descriptors[-1]))
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptors[-1], follow_symlinks=False).st_mode):
                return
            os.unlink(name, dir_fd=descriptors[-1])
        except (FileNotFoundError, NotADirectoryError):
            return  # gone, or a link stands in the way: the work tree has no such file
        except OSError as error:
            raise GitError(f"{path} cannot be deleted: {error.strerror}") from error
        with contextlib.suppress(OSError):  # the first folder that is not empty ends it
            for folder, parent in zip(reversed(folders), reversed(descriptors[:-1]), strict=True):
                os.rmdir(folder, dir_fd=parent)


def _opened(stack: contextlib.ExitStack, name: Path | str, parent: int | None = None) -> int:
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:  # the name is a link
            raise NotADirectoryError(name) from error
        raise
    stack.callback(os.close, descriptor)
    return descriptor


def _checked(path: str) -> str:
    if not trees.is_own_path(path):
        raise GitError(f"{path!r} is no path of the work tree")
    return path
