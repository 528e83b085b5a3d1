"""The clean room: a checkout of exactly the tree that would be committed, in which verify commands run.

It is a second checkout of lopen's clone, outside the project: git there is simply a clone, with HEAD at a commit of
the tree. It holds no file that git ignores, no leftover and no nested repository. HOME is empty except for
verify-setup's installations. A command's effects on the room are undone after it, and the room goes with the session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from lopen.files.room_files import Found, RoomFiles, RoomFolder, remove
from lopen.files.workplace import Workplace
from lopen.sandbox.command import Room, make_caches
from lopen.sandbox.environment import command_home
from lopen.store.temporary import TemporaryFolder
from lopen.verification.installed import MADE_ANEW, Installed
from lopen.verification.run_files import setup_key
from lopen.verification.run_record import RunRecord

USED = "used"


class CleanRoom:
    """The room of one session's verify commands: a second checkout of the session's clone.

    `mounted`: the sandbox shows the room at the project's own path, with the carried paths. `exposed`: other commands
    can write there. The paths `carry` are taken from the person's checkout. `where` is a folder outside the project.
    """

    def __init__(
        self,
        where: Path,
        place: Workplace,
        *,
        carry: Sequence[str] = (),
        mounted: bool,
        exposed: bool = False,
    ) -> None:
        self.where = where
        self._others: list[CleanRoom] = []
        self._installed_in = self  # the room whose installed dependencies are shown
        self.place_of_work = place
        self._repository = place.repository
        self._carry = carry
        self._mounted = mounted
        self._exposed = exposed
        self._entered = False
        self._own = TemporaryFolder(where)
        self._files = RoomFiles(self._own.path / "files", self._own.path / "git", place.repository)
        self._user = RoomFolder(self._own.path / "home")
        self._tree: str | None = None
        self._carried: tuple[tuple[Path, str], ...] = ()
        self._placed: set[str] = set()  # for git's folder and carried paths
        self._installed = Installed(self._files, self._user)
        self._shown: tuple[tuple[str, str], tuple[tuple[Path, Path], ...]] = (("", ""), ())
        self._key = ("", "", "")  # of the latest tree and set-up command

    def close(self) -> None:
        """Remove the room, and those beside it."""
        for other in self._others:
            other.close()
        self._own.remove()
        with suppress(OSError):  # of another session's room
            self.where.rmdir()

    def beside(self, count: int) -> list[CleanRoom]:
        """Return `count` more rooms, in which commands run side by side and see this room's installations.

        If the sandbox does not show a room at the project's path, installed files may hold this room's own path. Then
        it is this room alone.
        """
        if not self._mounted:
            return [self]
        while len(self._others) < count:
            other = CleanRoom(self.where, self.place_of_work, carry=self._carry, mounted=True)
            other._installed_in = self
            other._user.keep(".cache/go-build")  # Go knows its compiled packages by their sources
            self._others.append(other)
        return self._others[:count]

    def edit(self, path: str, edited: Callable[[bytes], bytes]) -> None:
        """Change a file for the command that runs next; `leave` undoes it.

        The edit is one of the stored content: the checkout may have other line ends (`core.autocrlf`).
        """
        place, entry = self._files.top / path, self._files.files.get(path)
        if entry is None or place.is_symlink() or not place.is_file():
            return
        place.write_bytes(edited(self._repository.blob_contents([entry.blob])[entry.blob]))

    @property
    def set_up_for(self) -> str:
        """The key of the installed dependencies, "" where there are none."""
        return self._installed.key

    @property
    def set_up_on(self) -> str:
        """The tree on which verify-setup ran, "" where nothing is installed, `USED` where a command may have changed it."""
        return self._installed.tree

    def setup_key(self, tree: str, command: str) -> str:
        """Return the hash of what decides on the dependencies of `tree`."""
        self._bring_to(tree)
        if self._key[:2] != (tree, command):
            files = {path: file.blob for path, file in self._files.files.items()}

            def read(path: str) -> str | None:
                blob = files.get(path)
                contents = self._repository.blob_contents([blob] if blob else [])
                return contents[blob].decode("utf-8", "replace") if blob in contents else None

            self._key = (tree, command, setup_key(files, command, read))
        return self._key[2]

    def installed_for(self, key: str, tree: str) -> None:
        """The last installation serves every tree with this key; it was installed on `tree`."""
        self._installed.made_for(key, tree)

    def shown(self) -> tuple[tuple[Path, Path], ...]:
        """Return (source, place) of the installations, for commands in the project: paths that git ignores, and
        HOME's.
        """
        made_for = (self.set_up_for, self.set_up_on)
        if self._shown[0] != made_for:
            root, user = self._repository.root, command_home(self._repository.root)
            whole = [p for p in self._installed.in_files if self._is_environment(p)]
            shown = dict.fromkeys([*whole, *self._ignored(self._installed.in_files)])
            pairs = [(self._files.top / p, root / p) for p in shown]
            pairs += [(self._user.top / p, user / p) for p in self._installed.in_home]
            self._shown = (made_for, tuple(pairs))
        return self._shown[1]

    def _is_environment(self, path: str) -> bool:
        """Return True for a virtual environment: it works as a whole, also where git ignores its `lib` and `bin` alone."""
        return (self._files.top / path / "pyvenv.cfg").is_file()

    def _ignored(self, paths: Iterable[str]) -> tuple[str, ...]:
        # A path in the folder, because git does not take a missing path for a folder.
        probes = {f"{p}/x" if (self._files.top / p).is_dir() else p: p for p in paths}
        return tuple(probes[p] for p in self._repository.ignored(probes)) if probes else ()

    def variables(self) -> dict[str, str]:
        """Return the variables by which commands in the project find the installations."""
        if self._mounted:
            local = any(path.startswith(".local/") for path in self._installed.in_home)
            return {"PYTHONUSERBASE": str(command_home(self._repository.root) / ".local")} if local else {}
        return self._installed.variables(self._repository.root)

    def mark_used(self) -> None:
        """Mark the installations as changed, where the command that ran could write to them."""
        if self.set_up_on and not self._mounted:
            self._installed.made_for(self.set_up_for, USED)

    def forget_installed(self) -> None:
        """Remove verify-setup's installations."""
        self._installed.drop()

    def enter(self, tree: str) -> Room:
        """Bring the room to `tree` for one command; `leave` follows."""
        if self._exposed and self._entered:
            self._files.tidy()
            self._user.clear()
        self._bring_to(tree)
        self._files.bring_to(tree)
        self._entered = True
        self._place()
        fixed = tuple(self._fixed()) if self._mounted else ()
        git = self._repository.layout.common_dir
        return Room(self._files.top, self._user.top, fixed, self._carried, self._files.git_dir, git)

    def record(self, room: Room, options: Iterable[str] = ()) -> RunRecord:
        """Return what will be noted of the tests that run next in the room; `leave` removes it."""
        return RunRecord(room, self._files.files, mounted=self._mounted, options=options)

    def _fixed(self) -> Iterator[tuple[Path, Path]]:
        """Yield the installations, with their places in this room."""
        other = self._installed_in
        for path in other._installed.paths():
            in_files = path.is_relative_to(other._files.top)
            base, own = (other._files, self._files) if in_files else (other._user, self._user)
            yield path, own.top / path.relative_to(base.top)

    def leave(self, *, wanted: Callable[[str], bool], install: bool = False) -> Found:
        """Undo the command's changes and return them. With `install`, added files stay until `forget_installed`."""
        found = self._files.tidy(wanted, remove_added=not install)
        if install:
            added = [p for p in found.added if p not in found.contents]
            whole = [p for p in added if self._is_environment(p)]
            rest = _installed_paths([p for p in added if p not in whole], found.ignored)
            self._installed.take(sorted([*whole, *rest]), self._user.added())
            self._files.tidy()  # added files that are not installed go; changed lock files are written again
        else:
            self._user.clear()
            if not self._mounted:
                self._installed.empty_caches()
        return found

    def _bring_to(self, tree: str) -> None:
        """Make way for the files of `tree` where something is installed in their place."""
        if tree != self._tree:
            self._installed.make_way(self._files.list(tree))
            self._tree = tree

    def _place(self) -> None:
        """Make the stand-ins for git's folder and for carried paths."""
        self._carried = tuple(carried(self.place_of_work.home, self._carry, self._files.files))
        wanted = {".git", *(path for _, path in self._carried)}
        self._files.drop(self._placed - wanted)
        pointer = self._files.top / ".git"
        if not self._mounted:
            remove(str(pointer))
            pointer.write_bytes(b"gitdir: " + os.fsencode(self._files.git_dir) + b"\n")
        elif not pointer.is_dir():
            remove(str(pointer))
            pointer.mkdir()
        for source, path in self._carried:
            place = self._files.top / path
            if self._mounted:
                make_caches(source)
            if path not in self._placed or not os.path.lexists(place):
                remove(str(place))
                place.parent.mkdir(parents=True, exist_ok=True)
                if not self._mounted:
                    place.symlink_to(source)
                elif source.is_dir():
                    place.mkdir()
                else:
                    place.touch()
        for path in wanted:
            self._files.keep(path)
        self._placed = wanted


def _installed_paths(added: Iterable[str], ignored: Collection[str]) -> Iterator[str]:
    """Yield the added paths; of a folder in which git ignores something that alone, because a task may write the rest."""
    apart = [path for path in ignored if PurePosixPath(path).name not in MADE_ANEW]
    for path in added:
        yield from [each for each in apart if each == path or each.startswith(f"{path}/")] or [path]


def carried(home: Path, carry: Sequence[str], files: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield (source, path) of the files that the person lets in. The tree's own `files` stay, and links are left out."""
    for path in carry:
        source = home / path
        above = [
            home.joinpath(*source.relative_to(home).parts[:depth]) for depth in range(1, len(source.parts))
        ]
        if path in files or not source.exists() or any(p.is_symlink() for p in above):
            continue
        if source.is_dir() and any(known.startswith(f"{path}/") for known in files):
            yield from carried(home, [f"{path}/{name}" for name in sorted(os.listdir(source))], files)
        else:
            yield source, path
