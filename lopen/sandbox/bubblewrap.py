"""The strong sandbox: bubblewrap (bwrap(1)) with separate namespaces for everything.

It collects the paths to protect on this machine into a policy, runs bwrap under it, and ends the command's
process namespace afterwards (`namespace.py`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lopen.base.trusted_programs import find_program
from lopen.sandbox import folders
from lopen.sandbox.ancestry import SESSION_MARKER
from lopen.sandbox.command import Command, CommandLimits, CommandResult, SandboxFailed
from lopen.sandbox.environment import (
    VERIFY,
    ProjectSandbox,
    command_home,
    project_cache_folder,
)
from lopen.sandbox.namespace import Namespace, Pipes
from lopen.sandbox.protected import specifications
from lopen.sandbox.supervision import spawn, supervise

_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")


class Bubblewrap(ProjectSandbox):
    """Runs commands under bubblewrap. `recent`: bubblewrap has the options of version 0.8."""

    name = "bwrap"
    warning = ""

    def __init__(
        self,
        root: Path,
        *,
        limits: CommandLimits = CommandLimits(),  # noqa: B008 - frozen
        session: str = "",
        environ: Mapping[str, str] = os.environ,
        recent: bool = True,
    ) -> None:
        super().__init__(root, limits=limits, session=session, environ=environ)
        self._recent = recent
        self._program = find_bwrap(environ, self._root)

    def run(self, command: Command) -> CommandResult:
        home = command_home(self._root)
        environment = self._environment(command, home)
        policy = self._policy(command, home)
        with _reserving(policy.placeholders if policy.writable else ()), Pipes() as pipes:
            argv = [
                self._program, *bwrap_argv(policy), "--json-status-fd", str(pipes.status_in),
                "--block-fd", str(pipes.block_out), "--", *command.argv,
            ]  # fmt: skip
            process = spawn(argv, environment, pass_fds=(pipes.status_in, pipes.block_out))
            namespace = Namespace(process)
            try:
                pipes.close_child_ends()
                namespace.open(pipes.first_process())
                namespace.limit(self._limits)
                pipes.release()
            except BaseException:  # a signal too: no blocked command may stay behind
                namespace.end()
                raise
            result = supervise(process, command, self._limits, roots=lambda: [process.pid], end=namespace.end)
            if not result.killed_by and not pipes.command_ran():
                raise _setup_failure(result.output)
            return result

    def _policy(self, command: Command, home: Path) -> BubblewrapPolicy:
        cwd = self._working_folder(command)
        if self._root == Path("/"):
            raise SandboxFailed(
                "the whole file system cannot be a project", hint="run lopen in a folder of its own"
            )
        hidden = self._hidden
        shown = [*self._tools, *self._shown(hidden, command.network)]
        masked = self._credentials([*shown, self._root])
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as listing:
            masked += tuple(s for s in folders.named_sockets(listing.read()) if self._visible(s, shown))
        existing, missing, pinned = self._protected(command.guarded)
        return BubblewrapPolicy(
            root=self._root,
            cwd=cwd,
            caches=tuple(self._writable(command, home)),
            writable=command.writable,
            network=command.network,
            session=self._session,
            replaced=hidden,
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

    def _visible(self, path: Path, shown: Iterable[Path]) -> bool:
        real = path.resolve()
        if any(folders.inside(real, folder) for folder in (self._root, *shown)):
            return True
        return not any(folders.inside(real, folder) for folder in self._hidden)

    def _shown(self, hidden: tuple[Path, ...], network: bool) -> Iterator[Path]:
        """Yield the other paths in hidden folders that a command needs."""
        repository = folders.external_git_folder(self._root)
        resolver = Path("/etc/resolv.conf").resolve() if network else None
        for path in (repository, resolver):
            if path and path.exists() and any(folders.inside(path, h) for h in hidden):
                yield path

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


@dataclass(frozen=True, slots=True)
class BubblewrapPolicy:
    """The file system that one command sees. All paths are absolute with links resolved; the protected ones are
    real files and folders, because bwrap cannot mount over a link.
    """

    root: Path
    cwd: Path
    caches: tuple[Path, ...]  # writable folders below `.lopen/cache`: HOME, and those of this command only
    writable: bool
    network: bool
    session: str
    replaced: tuple[Path, ...]
    shown: tuple[Path, ...]  # visible again in replaced folders: tools, a work tree's repository, resolv.conf
    masked_files: tuple[Path, ...]
    masked_folders: tuple[Path, ...]
    protected: tuple[Path, ...]  # existing paths in the project
    placeholders: tuple[Path, ...]  # protected paths in the project that do not exist yet
    pinned: tuple[Path, ...]  # folders of a protected file: a command can write into them but not move them
    memory_mb: int = 4_096
    recent: bool = True  # bubblewrap 0.8 or newer


def bwrap_argv(policy: BubblewrapPolicy) -> list[str]:
    """Return bwrap's arguments without the program and the command. Later mounts cover earlier ones.

    `--new-session` is not needed: bwrap starts in a new session without a terminal. As one process group, all of
    its processes can be stopped at once.
    """
    argv = [
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--cap-drop", "ALL", "--hostname", "localhost",
    ]  # fmt: skip
    if policy.recent:
        argv.append("--disable-userns")
    if not policy.network:
        argv.append("--unshare-net")
    # Root may write its own files without any capability, so only the mount can close /proc/sys.
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    size = ["--size", str(policy.memory_mb * 1_000_000)] if policy.recent else []
    for folder in policy.replaced:
        argv += ["--perms", "1777", *size, "--tmpfs", str(folder)]
    argv += _each("--ro-bind", policy.shown)
    argv += _each("--bind" if policy.writable else "--ro-bind", [policy.root])
    if policy.writable:
        argv += _each("--bind", policy.pinned)
        argv += _each("--ro-bind", policy.protected)
        for folder in policy.placeholders:
            argv += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    for folder in policy.masked_folders:
        argv += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    for file in policy.masked_files:
        argv += ["--ro-bind", "/dev/null", str(file)]
    argv += _each("--bind", policy.caches)
    if Path("/run") in policy.replaced:
        argv += ["--symlink", policy.session or "1", SESSION_MARKER, "--remount-ro", "/run"]
    return [*argv, "--chdir", str(policy.cwd)]


def _each(option: str, paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]
