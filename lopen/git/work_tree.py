"""The files of one checkout: differences from a commit, snapshots as tree ids, and restoring files.

The scratch index `base` equals a commit and caches file times, so that one `git status` finds the changes without reading
unchanged files. Changed files are added to a copy of it, and the copy is written as a tree: three processes, or one if
nothing changed. The checkout's own index is never touched here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

from lopen.git import trees
from lopen.git.command import GitCommand
from lopen.git.errors import GitError, GitTimedOut
from lopen.git.ignores import in_build_folder, is_build_folder, is_internal
from lopen.git.layout import Layout


@dataclass(frozen=True, slots=True)
class WorkTreeStatus:
    """Paths that differ from HEAD, staged or not, sorted.

    Ignored files, lopen's own state and untracked well-known caches are left out. A folder that is a repository
    of its own is only in `embedded`, because its files belong to that repository.
    """

    changed: tuple[str, ...]
    embedded: tuple[str, ...]  # folders, without a slash at the end
    untracked: frozenset[str]  # of both, the ones that neither HEAD nor the index has


def read_status(git: GitCommand, root: Path) -> WorkTreeStatus:
    """Compare the work tree with `git`'s index and HEAD."""
    answer = git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignored=no",
        "--ignore-submodules=dirty",  # otherwise git runs with the submodule's own configuration
        "--no-renames",
        "--no-ahead-behind",
    )
    is_cache = cache(lambda folder: is_build_folder(root / folder))
    changed: set[str] = set()
    embedded: set[str] = set()
    untracked: set[str] = set()
    for path, tracked in _status_entries(answer.fields()):
        if is_internal(path) or (not tracked and in_build_folder(path, is_cache)):
            continue
        if path.endswith("/"):
            embedded.add(path.rstrip("/"))
        else:
            changed.add(path)
        if not tracked:
            untracked.add(path.rstrip("/"))
    return WorkTreeStatus(tuple(sorted(changed)), tuple(sorted(embedded)), frozenset(untracked))


# Number of spaces before the path in a line of `status --porcelain=v2`, by the line's first letter
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10}


def _status_entries(fields: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield (path, tracked) of every line; a folder's path ends in `/`."""
    for field in fields:
        if field.startswith("? "):
            yield field[2:], False
        elif before := _FIELDS_BEFORE_PATH.get(field[:1]):
            yield field.split(" ", before)[before], True


class WorkTree:
    """The files of one checkout, relative to `head()`. `scratch` is a folder for indexes of lopen's own."""

    def __init__(
        self,
        layout: Layout,
        objects: trees.Objects,
        scratch: Path,
        head: Callable[[], str | None],
    ) -> None:
        self._layout = layout
        self._objects = objects
        self._git = objects.git
        self._scratch = scratch
        self._head = head
        self._base_of: str | None = None  # the head from which this process built `base`
        self._submodules: tuple[str, frozenset[str]] | None = None  # of a head
        self.embedded: tuple[str, ...] = ()  # repositories of their own that the latest snapshot left out
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        for lock in scratch.glob("index*.lock"):
            lock.unlink()  # left by a killed process; no other one uses this folder

    @property
    def _base(self) -> Path:
        """The scratch index that equals HEAD."""
        return self._scratch / "index"

    def _with(self, index: Path) -> GitCommand:
        return self._git.with_options({"GIT_INDEX_FILE": str(index)})

    def head_index(self) -> GitCommand:
        """Return git on the base index, which equals HEAD."""
        head = self._head() or self._layout.empty_tree
        git = self._with(self._base)
        if self._base_of != head or not self._base.is_file():
            self._base_of = None
            git.run("read-tree", "--reset", head)
            self._base_of = head
        return git

    def status(self) -> WorkTreeStatus:
        """Return the differences between HEAD and the work tree. An unreadable scratch index is rebuilt."""
        git, root = self.head_index(), self._layout.root
        try:
            found = read_status(git, root)
        except GitTimedOut:
            raise  # a second attempt would take as long
        except GitError:
            self._base.unlink(missing_ok=True)
            found = read_status(self.head_index(), root)
        return self._without_submodules(found)

    def _without_submodules(self, found: WorkTreeStatus) -> WorkTreeStatus:
        """Leave out files below a submodule, which is an empty folder here: to add one would replace the submodule."""
        if not any("/" in path for path in found.changed):
            return found
        if self._submodules is None or self._submodules[0] != self._base_of:
            lines = self._with(self._base).run("ls-files", "--stage", "-z").fields()
            links = (line.partition("\t")[2] for line in lines if line.startswith(trees.GITLINK))
            self._submodules = (self._base_of or "", frozenset(links))
        submodules = self._submodules[1]
        above = {path: submodules & set(map(str, PurePosixPath(path).parents)) for path in found.changed}
        return replace(
            found,
            changed=tuple(path for path in found.changed if not above[path]),
            embedded=tuple(
                sorted({*found.embedded, *(folder for each in above.values() for folder in each)})
            ),
        )

    def snapshot(self, exclude: Mapping[str, str]) -> tuple[str, WorkTreeStatus]:
        """Write the files as a tree; return its id and the differences from HEAD.

        `exclude`: path → blob id; a path with exactly this content stays as in HEAD.
        """
        found = self.status()
        self.embedded = found.embedded
        excluded = self._matching(exclude, found.changed)
        paths = [path for path in found.changed if path not in excluded]
        if not paths:
            return self._objects.tree_of(self._base_of) if self._base_of else self._layout.empty_tree, found
        git = self._work_index()
        hidden = _behind_links(self._layout.root, paths)
        _update(git, [path for path in paths if path in hidden], "--force-remove")
        _update(git, [path for path in paths if path not in hidden], "--add", "--remove", "--replace")
        return git.run("write-tree").text, found

    def _work_index(self) -> GitCommand:
        """Return git on a copy of the base index, with its times, which git compares to find racy entries."""
        work = self._base.with_name("index.work")
        partial = work.with_name("index.new")
        shutil.copy2(self._base, partial)
        work.unlink(missing_ok=True)  # ext4 writes a file to the disk that replaces another one
        partial.replace(work)
        return self._with(work)

    def tree_with(self, tree: str, files: Mapping[str, trees.TreeEntry | None]) -> str:
        """Return `tree` with these `files` in place of its own, where None removes a file; it is not committed."""
        git = self._with(self._scratch / "index.with")
        git.run("read-tree", tree)
        _update(git, [path for path, entry in files.items() if entry is None], "--force-remove")
        lines = (os.fsencode(f"{e.mode} {e.blob}\t{p}") + b"\0" for p, e in files.items() if e is not None)
        git.run("update-index", "-z", "--replace", "--index-info", stdin=b"".join(lines))
        return git.run("write-tree").text

    def restore(self, tree: str, paths: Iterable[str]) -> None:
        """Restore `paths` from `tree`, deleting files that it does not contain; never through a symbolic link.

        Raises:
            GitError: a path is not inside the work tree (absolute, `..`, `.git`), or is not writable.
        """
        wanted = sorted(set(paths))
        if not wanted:
            return
        for path in wanted:
            if not trees.is_work_tree_path(path):
                raise GitError(f"{path!r} is not a path in the work tree")
        now, found = self.snapshot({})
        known = self._objects.entries(tree)
        self._become(self.tree_with(now, {path: known.get(path) for path in wanted}), found)

    def reset(self, tree: str) -> None:
        """Make all files those of `tree`; what no snapshot holds stays."""
        self._become(tree, self.snapshot({})[1])

    def _become(self, tree: str, found: WorkTreeStatus) -> None:
        """Replace and remove files until they are those of `tree`; the snapshot just made `found` their changes."""
        # The index of the snapshot knows every file that git may replace or remove.
        git = self._with(self._base.with_name("index.work")) if found.changed else self._work_index()
        git.run("read-tree", "--reset", "-u", tree)

    def _matching(self, exclude: Mapping[str, str], changed: Iterable[str]) -> set[str]:
        """Return the paths of `changed` whose content is the blob in `exclude`."""
        candidates = [path for path in changed if path in exclude]
        blobs = self.blobs(candidates) if candidates else {}
        return {path for path in candidates if blobs.get(path) == exclude[path]}

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """Return path → blob id of the current content of files and links; other paths are left out."""
        files: list[str] = []
        found: dict[str, str] = {}
        for path in paths:
            mode = _mode(self._layout.root / path)
            if stat.S_ISREG(mode):
                files.append(path)
            elif stat.S_ISLNK(mode):
                found[path] = self._link_blob(path)
        if files:
            listed = b"".join(_quoted(path) + b"\n" for path in files)
            ids = self._git.run("hash-object", "--stdin-paths", stdin=listed).text.split("\n")
            found |= dict(zip(files, ids, strict=True))
        return found

    def _link_blob(self, path: str) -> str:
        target = os.readlink(os.fsencode(self._layout.root / path))
        digest = hashlib.new(self._layout.object_format, usedforsecurity=False)
        digest.update(b"blob %d\0" % len(target) + target)
        return digest.hexdigest()


def _update(git: GitCommand, paths: Sequence[str], *how: str) -> None:
    if paths:
        git.run("update-index", "-z", *how, "--stdin", stdin=b"".join(os.fsencode(p) + b"\0" for p in paths))


def _behind_links(root: Path, paths: Iterable[str]) -> set[str]:
    """Return the paths with a symbolic link in place of a parent folder; git counts them as deleted."""

    @cache
    def linked(folder: str) -> bool:
        parent = folder.rpartition("/")[0]
        return stat.S_ISLNK(_mode(root / folder)) or (parent != "" and linked(parent))

    return {path for path in paths if "/" in path and linked(path.rpartition("/")[0])}


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _quoted(path: str) -> bytes:
    """Quote a path for git's line-based input, which allows line breaks and leading quotes in it."""
    raw = os.fsencode(path)
    return b'"' + b"".join(b"\\%03o" % byte for byte in raw) + b'"'
