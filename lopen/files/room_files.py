"""The folders of a room: HOME, which is emptied after each command, and the files, which git brings back to a tree."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from lopen.git.command import GitCommand
from lopen.git.repository import Repository
from lopen.git.trees import TreeEntry

MESSAGE = "chore: the work as it is verified\n"  # of HEAD in a room
FOLDER_MODE = 0o755
LONGEST_CONTENT = 64_000_000  # bytes of one file that is read


@dataclass(frozen=True, slots=True)
class Found:
    """The effect of a command on the files: paths that it changed or deleted, paths that it added (a folder counts once).

    `ignored` are the added paths, or paths in them, that git ignores.
    """

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)  # of the files that the caller asked for


class RoomFolder:
    """A folder that holds nothing but the `kept` paths after each command."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.kept: set[str] = set()
        if top.is_symlink():
            top.unlink()
        top.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)

    def keep(self, path: str) -> None:
        """Leave `path` and everything below it alone."""
        self.kept.add(path)

    def drop(self, paths: Iterable[str]) -> None:
        """Remove kept paths."""
        for path in paths:
            self.kept.discard(path)
            remove(f"{self.top}/{path}")

    def clear(self) -> tuple[str, ...]:
        """Remove everything but the kept paths; return the removed paths."""
        added = tuple(self.added())
        for path in added:
            remove(f"{self.top}/{path}")
        return added

    def added(self, folder: str = "") -> Iterator[str]:
        """Yield what lies in a folder besides the kept paths; a folder counts once unless a kept path is below it."""
        for entry in sorted(entries_in(f"{self.top}/{folder}"), key=lambda entry: entry.name):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in self.kept:
                continue
            if entry.is_dir(follow_symlinks=False) and any(k.startswith(f"{path}/") for k in self.kept):
                yield from self.added(path)
            else:
                yield path


class RoomFiles(RoomFolder):
    """A checkout of `repository` below `top`, with a git folder of its own that shares the repository's objects."""

    def __init__(self, top: Path, git_dir: Path, repository: Repository) -> None:
        super().__init__(top)
        self.git_dir = git_dir
        self.files: Mapping[str, TreeEntry] = {}
        self._repository = repository
        self._tree = ""
        git_dir.mkdir(mode=0o700, exist_ok=True)
        (git_dir / "index.lock").unlink(missing_ok=True)  # left by a killed process
        (git_dir / "commondir").write_bytes(os.fsencode(repository.layout.common_dir) + b"\n")
        self._git: GitCommand = repository.git.with_options(
            {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top), "GIT_LITERAL_PATHSPECS": "0"},
            config={"core.fsync": "none"},
        )

    def clear(self) -> tuple[str, ...]:
        self.files, self._tree = {}, ""
        (self.git_dir / "index").unlink(missing_ok=True)
        return super().clear()

    def list(self, tree: str) -> Mapping[str, TreeEntry]:
        """Return the files of `tree`, to which the next `bring_to` is likely to lead."""
        if tree != self._tree:
            self.files, self._tree = self._repository.entries(tree), tree
        return self.files

    def bring_to(self, tree: str) -> None:
        """Write exactly the files of `tree`, with HEAD at a commit of it that no branch has."""
        self.list(tree)
        head = self._repository.head().commit
        if head is None or self._repository.tree_of(head) != tree:
            head = self._repository.commit_of(tree, head, MESSAGE)
        (self.git_dir / "HEAD").write_text(f"{head}\n", "ascii")
        self._git.run("read-tree", "--reset", "-u", tree)

    def tidy(self, wanted: Callable[[str], bool] = lambda _: False, *, remove_added: bool = True) -> Found:
        """Undo the effects of a command; return it, with the contents of the changed and added files that are
        `wanted`.
        """
        hidden = [*self._hidden_from_git()]
        for path in hidden:  # first, because git looks into no folder of the tree that has a `.git`
            remove(f"{self.top}/{path}")
        listed = self._git.run(
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=normal",
            "--ignored=matching",
            "--ignore-submodules=all",
            "--no-renames",
        ).fields()
        changed = sorted(field[3:] for field in listed if field[:2] not in ("??", "!!"))
        beside = [field[3:].rstrip("/") for field in listed if field[:2] in ("??", "!!")]
        added = sorted(path for outer in _outermost(beside) for path in self._outside(outer))
        read = [path for path in (*changed, *added) if wanted(path)]
        contents = {path: raw for path in read if (raw := content_at(f"{self.top}/{path}")) is not None}
        for path in added if remove_added else ():
            remove(f"{self.top}/{path}")
        if changed:
            self._git.run("read-tree", "--reset", "-u", self._tree)
        self._remove_empty()
        ignored = tuple(field[3:].rstrip("/") for field in listed if field[:2] == "!!")
        return Found(tuple(changed), tuple(sorted((*hidden, *added))), ignored, contents)

    def _hidden_from_git(self) -> Iterator[str]:
        """Yield paths that a command made and git does not list: a `.git` in a folder of the tree, files of a
        submodule.
        """
        for folder in sorted({str(above) for path in self.files for above in PurePosixPath(path).parents}):
            path = f"{folder}/.git".removeprefix("./")
            if path not in self.kept and os.path.lexists(f"{self.top}/{path}"):
                yield path
        for path, entry in self.files.items():
            if entry.is_submodule and os.path.isdir(f"{self.top}/{path}"):
                yield from (f"{path}/{found.name}" for found in entries_in(f"{self.top}/{path}"))

    def _outside(self, path: str) -> Iterator[str]:
        """Yield an untracked path, or its contents besides the kept paths."""
        if path in self.kept or any(path.startswith(f"{kept}/") for kept in self.kept):
            return
        if any(kept.startswith(f"{path}/") for kept in self.kept):
            yield from self.added(path)
        else:
            yield path

    def _remove_empty(self) -> None:
        """Remove the empty folders that a command left; git does not list them."""
        kept = {f"{self.top}/{path}" for path in self.kept}
        kept |= {f"{self.top}/{path}" for path, entry in self.files.items() if entry.is_submodule}
        seen: list[str] = []
        for folder, folders, _ in os.walk(self.top):
            folders[:] = [name for name in folders if f"{folder}/{name}" not in kept]
            seen += [f"{folder}/{name}" for name in folders]
        for folder in reversed(seen):
            if not os.path.islink(folder) and not os.listdir(folder):
                os.rmdir(folder)


def _outermost(paths: list[str]) -> Iterator[str]:
    """Yield the paths that are not below another one: git lists ignored files in an untracked folder apart."""
    last = ""
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not last or not path.startswith(f"{last}/"):
            last = path
            yield path


def remove(place: str) -> None:
    """Delete a file, a link or a whole folder, whatever permissions a command gave it."""
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            os.unlink(place)
            return
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        shutil.rmtree(place)
    except OSError:  # folders without permissions
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o700)
        shutil.rmtree(place)


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, whatever permissions a command gave it."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        os.chmod(folder, FOLDER_MODE)
        with os.scandir(folder) as entries:
            return list(entries)


def content_at(place: str) -> bytes | None:
    """Return the content of a file or the target of a link; None for anything else, and where it is very large."""
    try:
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(os.readlink(place))
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST_CONTENT:
            return None
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except OSError:
        return None
