"""The strong sandbox: bubblewrap (bwrap(1)) with separate namespaces for everything.

A command sees the parts of the system that programs need (`bubblewrap_policy.py`), tools, and the project. This collects
them and the paths to protect into a policy, runs bwrap under it, and ends the command's process namespace afterwards
(`namespace.py`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from lopen.core.trusted_programs import find_program
from lopen.sandbox import folders
from lopen.sandbox.bubblewrap_policy import BubblewrapPolicy, bwrap_argv, library_folders, system_view
from lopen.sandbox.command import Command, CommandLimits, CommandResult, InstallNetwork, Room, SandboxFailed
from lopen.sandbox.environment import (
    VERIFY,
    ProjectSandbox,
    command_home,
    mount_points,
    project_cache_folder,
)
from lopen.sandbox.install_network import CONNECTORS, NAMESERVER, InstallLink, find_connector
from lopen.sandbox.kernel_filter import filter_file, filter_program
from lopen.sandbox.namespace import Namespace, Pipes
from lopen.sandbox.protected import specifications
from lopen.sandbox.supervision import spawn, supervise

ROOM_HOME = Path("/tmp/home")  # noqa: S108 - the HOME of a command in a room, in its private /tmp
_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_KEYS = Path("/proc/keys")  # the names of the person's keys


class Bubblewrap(ProjectSandbox):
    """Runs commands under bubblewrap. `recent`: bubblewrap has the options of version 0.8."""

    name = "bwrap"
    warning = (
        ""
        if filter_program(private_ipc=True)
        else "lopen has no filter of system calls for this architecture: commands can reach virtual sockets and keys"
    )

    def __init__(
        self,
        root: Path,
        *,
        limits: CommandLimits = CommandLimits(),  # noqa: B008 - frozen
        session: str = "",
        environ: Mapping[str, str] = os.environ,
        readable: Iterable[Path] = (),
        indexes: Iterable[str] = (),
        recent: bool = True,
        at: Path | None = None,
    ) -> None:
        super().__init__(root, limits=limits, session=session, environ=environ, readable=readable, at=at)
        self._recent = recent
        self._indexes = tuple(indexes)
        self._installing: InstallNetwork | None = None
        self._program = find_bwrap(environ, self._root)

    @property
    def install_network(self) -> InstallNetwork:
        """The first that works here, by trying."""
        if self._installing is not None:
            return self._installing
        fallback: InstallNetwork = "proxy" if self._indexes else "host"
        found = next((name for name in CONNECTORS if self._connects(name)), fallback)
        self._installing = found
        return found

    def _connects(self, name: InstallNetwork) -> bool:
        if find_connector(name, self._environ, self._root) is None:
            return False
        self._installing = name
        try:
            return self.run(Command("true", self._root, installs=True)).exit_code == 0
        except SandboxFailed:
            return False
        finally:
            self._installing = None

    @cached_property
    def _hidden(self) -> tuple[Path, ...]:
        return (Path("/"),)

    @cached_property
    def _tools(self) -> tuple[Path, ...]:
        libraries = (path.resolve() for path in library_folders() if path.is_dir())
        system = [Path(name) for name in system_view().folders]
        tools = folders.outermost((*super()._tools, *libraries))
        return tuple(t for t in tools if not any(folders.inside(t, s) for s in system))

    def run(self, command: Command) -> CommandResult:
        home = ROOM_HOME if command.room else command_home(self._root)
        environment = {name: self._placed(value) for name, value in self._environment(command, home).items()}
        installing = self.install_network if command.installs and not command.network else None
        if installing == "host":
            command = replace(command, network=True)
        connector = find_connector(installing, self._environ, self._root) if installing else None
        policy = self._policy(command, home)
        with (
            mount_points(command.shown, home, self._root) as shown,
            InstallLink(installing, connector or "", self._indexes) as link,
            _reserving(policy.placeholders if policy.writable else ()),
            Pipes() as pipes,
            _files_for(policy, connected=connector is not None) as (options, descriptors),
        ):
            policy = replace(policy, installed=(*shown, *_at_room_home(shown, home)))
            argv = [
                self._program, *bwrap_argv(policy, options), "--json-status-fd", str(pipes.status_in),
                "--block-fd", str(pipes.block_out), "--", *link.wrapped(self._argv(command)),
            ]  # fmt: skip
            inherited = (pipes.status_in, pipes.block_out, *descriptors, *link.descriptors)
            process = spawn(argv, environment, pass_fds=inherited)
            namespace = Namespace(process)
            try:
                pipes.close_child_ends()
                first = pipes.first_process()
                namespace.open(first)
                namespace.limit(self._limits)
                link.connect(first)
                pipes.release()
            except BaseException:  # a signal too: no blocked command may stay behind
                namespace.end()
                raise
            result = supervise(process, command, self._limits, roots=lambda: [process.pid], end=namespace.end)
            if not result.killed_by and not pipes.command_ran():
                raise _setup_failure(result.output)
            return result

    def _argv(self, command: Command) -> tuple[str, ...]:
        """Return the argument list; a line is the model's own text and stays as it is."""
        return command.argv if isinstance(command.line, str) else tuple(map(self._placed, command.line))

    def _placed(self, text: str) -> str:
        """Return `text` with the path under which the sandbox shows the root."""
        return text if self._at == self._root else text.replace(str(self._root), str(self._at))

    def _policy(self, command: Command, home: Path) -> BubblewrapPolicy:
        cwd = self._working_folder(command)
        if self._root == Path("/"):
            raise SandboxFailed(
                "the whole file system cannot be a project", hint="run lopen in a folder of its own"
            )
        system = system_view()
        repository = None if command.room else folders.external_git_folder(self._root)
        shown = [*self._tools, *([repository] if repository else [])]
        visible = [*shown, *map(Path, system.folders), self._root]
        masked = self._credentials(visible)
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as listing:
            sockets = folders.named_sockets(listing.read())
        masked += tuple(s for s in sockets if any(folders.inside(s.resolve(), folder) for folder in visible))
        masked += (_KEYS,) if _KEYS.exists() else ()
        if command.room is not None:
            masked = tuple(p for p in masked if self._in_room(p, command.room))
        existing, missing, pinned = self._protected(command.guarded)
        room = command.room
        return BubblewrapPolicy(
            root=self._root,
            cwd=cwd,
            at=self._at,
            room=room.mounts(self._at, ROOM_HOME) if room else (),
            caches=() if room else tuple(self._writable(command, home)),
            writable=command.writable,
            network=command.network,
            session=self._session,
            system=system,
            shown=folders.outermost(shown),
            masked_files=tuple(p for p in masked if not os.path.isdir(p)),
            masked_folders=tuple(p for p in masked if os.path.isdir(p)),
            protected=existing,
            placeholders=missing,
            pinned=pinned,
            memory_mb=self._limits.memory_mb,
            recent=self._recent,
        )

    def _writable(self, command: Command, home: Path) -> Iterator[Path]:
        """Yield the folders of `.lopen/cache` that the command may write to."""
        yield home
        if command.trusted:
            yield project_cache_folder(self._root, VERIFY)
        if command.scratch:
            yield command.scratch

    def _in_room(self, path: Path, room: Room) -> bool:
        """Return True for a path outside of the project, or that the room has too."""
        if not folders.inside(path, self._root):
            return True
        return os.path.lexists(room.files / path.relative_to(self._root))

    def _protected(
        self, guarded: Iterable[str]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]:
        """Return the (existing, missing, pinned) paths that stay read-only."""
        whole = [self._root / name for name in (".git", ".lopen", ".claude")]
        specs = [self._root / name for name in specifications(self._root)]
        specs += [p for p in map(Path, guarded) if folders.inside(p.parent.resolve(), self._root)]
        real = tuple(p for p in (*whole, *specs) if os.path.lexists(p) and not p.is_symlink())
        missing = tuple(p for p in whole if not os.path.lexists(p) or _is_empty_folder(p))
        above = {
            f for spec in specs for f in spec.parents if f != self._root and folders.inside(f, self._root)
        }
        return tuple(p for p in real if p not in missing), missing, tuple(sorted(above))


def _at_room_home(shown: Iterable[tuple[Path, Path]], home: Path) -> Iterator[tuple[Path, Path]]:
    """Yield where programs that verify-setup installed in HOME expect themselves."""
    for source, place in shown:
        if folders.inside(place, home):
            yield source, ROOM_HOME / place.relative_to(home)


def find_bwrap(environ: Mapping[str, str], project: Path) -> str:
    """Return bwrap's absolute path, never one in the project. Raise SandboxFailed if it is not installed."""
    found = find_program("bwrap", (*_SYSTEM_FOLDERS, *environ.get("PATH", "").split(":")), project)
    if found is None:
        raise SandboxFailed("bubblewrap is not installed", hint="install the package bubblewrap")
    return found


def _is_empty_folder(path: Path) -> bool:
    """Return True for an empty folder, such as a placeholder that a killed run left behind."""
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _setup_failure(output: str) -> SandboxFailed:
    reason = output.strip().removeprefix("bwrap: ") or "it ended without a message"
    return SandboxFailed(
        f"bubblewrap cannot set up the sandbox: {reason}",
        hint="lopen doctor shows what works here; --sandbox landlock and --sandbox none do not need bubblewrap",
    )


_reserved: Counter[Path] = Counter()
_reserved_lock = threading.Lock()


@contextlib.contextmanager
def _reserving(placeholders: tuple[Path, ...]) -> Iterator[None]:
    """Count the runs that need each placeholder; the last one removes the folder that bwrap created for the mount."""
    with _reserved_lock:
        _reserved.update(placeholders)
    try:
        yield
    finally:
        with _reserved_lock:
            _reserved.subtract(placeholders)
            for folder in placeholders:
                if _reserved[folder] == 0:
                    with contextlib.suppress(OSError):
                        folder.rmdir()


@contextlib.contextmanager
def _files_for(policy: BubblewrapPolicy, *, connected: bool) -> Iterator[tuple[list[str], list[int]]]:
    """Yield bwrap's options for what it reads from descriptors, with these: the system's files, the kernel filter."""
    options: list[str] = []
    descriptors: list[int] = []
    try:
        for name in policy.system.files:
            with contextlib.suppress(OSError):  # it is gone since the view was made
                descriptors.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC))
                options += ["--perms", "0444", "--file", str(descriptors[-1]), name]
        if connected:
            descriptors.append(os.memfd_create("resolv.conf"))
            os.write(descriptors[-1], f"nameserver {NAMESERVER}\n".encode())
            os.lseek(descriptors[-1], 0, os.SEEK_SET)
            options += ["--perms", "0444", "--file", str(descriptors[-1]), "/etc/resolv.conf"]
        if (filtered := filter_file(private_ipc=True)) is not None:
            descriptors.append(filtered)
            options += ["--seccomp", str(filtered)]
        yield options, descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
