"""The strong sandbox: bubblewrap (bwrap(1)), with namespaces of its own for everything.

Gathers what there is to protect on this machine, runs bwrap under the policy made of it (`policy.py`), and
sees to it that the command's namespace is gone afterwards (`namespace.py`).
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
from lopen.sandbox.environment import VERIFY, cache_folder, cache_home, command_environment, python_variables
from lopen.sandbox.known_secrets import named_credentials
from lopen.sandbox.namespace import Namespace, Pipes
from lopen.sandbox.protected import specifications
from lopen.sandbox.supervision import follow, spawn

_USUAL_PLACES = ("/usr/bin", "/bin", "/usr/local/bin")


class Bubblewrap:
    """Run commands under bubblewrap (docs/reference/sandbox.md).

    `session` marks what runs in it; `environ` is lopen's own environment.
    """

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
        self._root = root.resolve()
        self._limits = limits
        self._session = session
        self._environ = dict(environ)  # the system's own mapping decodes every variable at every look
        self._recent = recent
        self._program = find_bwrap(environ, self._root)
        self._homes = folders.homes(environ)
        self._hidden = folders.replaced(self._homes)
        self._tools = folders.tools(environ, self._homes, self._hidden, self._root)

    def run(self, command: Command) -> CommandResult:
        home = cache_home(self._root)
        extra = {**command.env, **python_variables(self._root, trusted=command.trusted)}
        environment = command_environment(self._environ, extra, home=home, session=self._session)
        policy = self._policy(command, home)
        with _holding(policy.placeholders if policy.writable else ()), Pipes() as pipes:
            argv = [
                self._program, *bwrap_argv(policy), "--json-status-fd", str(pipes.status_in),
                "--block-fd", str(pipes.block_out), "--", *command.argv,
            ]  # fmt: skip
            process = spawn(argv, environment, pass_fds=(pipes.status_in, pipes.block_out))
            namespace = Namespace(process)
            try:
                pipes.close_theirs()
                namespace.open(pipes.child())
                namespace.limit(self._limits)
                pipes.release()
            except (
                BaseException
            ):  # a signal that unwinds lopen too: nothing may stay behind, held back at its start
                namespace.end()
                raise
            result = follow(process, command, self._limits, tops=lambda: [process.pid], end=namespace.end)
            if not result.killed_by and not pipes.ran():
                raise _failed(result.output)
            return result

    def _policy(self, command: Command, home: Path) -> BubblewrapPolicy:
        cwd = command.cwd.resolve()
        if not folders.inside(cwd, self._root):
            raise SandboxFailed(f"{command.cwd} lies outside of the project")
        if self._root == Path("/"):
            raise SandboxFailed(
                "the whole file system is no project", hint="run lopen in a folder of its own"
            )
        hidden = self._hidden
        shown = [*self._tools, *self._shown(hidden, command.network)]
        masked = folders.masked(
            self._homes, [*shown, self._root], hidden, named_credentials(self._environ, self._root)
        )
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as listing:
            masked += tuple(s for s in folders.sockets(listing.read()) if self._visible(s, shown))
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
        """What of `.lopen/cache` the command may write to."""
        yield home
        if command.trusted:
            yield cache_folder(self._root, VERIFY)
        if command.scratch:
            yield command.scratch

    def _visible(self, path: Path, shown: Iterable[Path]) -> bool:
        real = path.resolve()
        if any(folders.inside(real, folder) for folder in (self._root, *shown)):
            return True
        return not any(folders.inside(real, folder) for folder in self._hidden)

    def _shown(self, hidden: tuple[Path, ...], network: bool) -> Iterator[Path]:
        """What else of the hidden folders a command needs."""
        repository = folders.git_folder_elsewhere(self._root)
        resolver = Path("/etc/resolv.conf").resolve() if network else None
        for path in (repository, resolver):
            if path and path.exists() and any(folders.inside(path, h) for h in hidden):
                yield path

    def _protected(
        self, guarded: Iterable[str]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]:
        """(existing, missing, pinned folders) of what stays read-only."""
        whole = [self._root / name for name in (".git", ".lopen", ".claude")]
        specs = [self._root / name for name in specifications(self._root)]
        specs += [p for p in map(Path, guarded) if folders.inside(p.parent.resolve(), self._root)]
        real = tuple(p for p in (*whole, *specs) if os.path.lexists(p) and not p.is_symlink())
        missing = tuple(p for p in whole if not os.path.lexists(p) or _empty(p))
        above = {
            f for spec in specs for f in spec.parents if f != self._root and folders.inside(f, self._root)
        }
        return tuple(p for p in real if p not in missing), missing, tuple(sorted(above))


def find_bwrap(environ: Mapping[str, str], project: Path) -> str:
    """bwrap's absolute path, never one that the project brings along. Raises SandboxFailed without one."""
    found = find_program("bwrap", (*_USUAL_PLACES, *environ.get("PATH", "").split(":")), project)
    if found is None:
        raise SandboxFailed("bubblewrap is not installed", hint="install the package bubblewrap")
    return found


def _empty(path: Path) -> bool:
    """A folder without anything: a placeholder that a killed run left behind, or as good as one."""
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _failed(output: str) -> SandboxFailed:
    said = output.strip().removeprefix("bwrap: ") or "it ended without a word"
    return SandboxFailed(
        f"bubblewrap could not set up the sandbox: {said}",
        hint="lopen doctor says what works here; --sandbox landlock or --sandbox none go without it",
    )


_held: Counter[Path] = Counter()
_held_lock = threading.Lock()


@contextlib.contextmanager
def _holding(placeholders: tuple[Path, ...]) -> Iterator[None]:
    """bwrap makes a folder to mount each placeholder on; the last run that needs it takes it away again."""
    with _held_lock:
        _held.update(placeholders)
    try:
        yield
    finally:
        with _held_lock:
            _held.subtract(placeholders)
            for folder in placeholders:
                if _held[folder] == 0:
                    with contextlib.suppress(OSError):
                        folder.rmdir()


@dataclass(frozen=True, slots=True)
class BubblewrapPolicy:
    """What one command sees. All paths are absolute, links resolved; of the protected ones only real
    files and folders (a link cannot be mounted over).
    """

    root: Path
    cwd: Path
    caches: tuple[Path, ...]  # below `.lopen/cache`, writable: HOME, and what this command alone may write to
    writable: bool
    network: bool
    session: str
    replaced: tuple[Path, ...]
    shown: tuple[Path, ...]  # in replaced folders: tools, a worktree's repository, resolv.conf
    masked_files: tuple[Path, ...]
    masked_folders: tuple[Path, ...]
    protected: tuple[Path, ...]  # in the project, existing
    placeholders: tuple[Path, ...]  # in the project, protected and not there yet
    pinned: tuple[Path, ...]  # folders that hold a protected file: they can be written to, not moved away
    memory_mb: int = 4_096
    recent: bool = True  # bubblewrap 0.8 or newer


def bwrap_argv(policy: BubblewrapPolicy) -> list[str]:
    """bwrap's arguments, without its own name and the command. Later mounts cover earlier ones.

    No `--new-session`: bwrap is started in one, without a terminal, and a crowd in one group can be stopped
    at once.
    """
    argv = [
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--cap-drop", "ALL", "--hostname", "localhost",
    ]  # fmt: skip
    if policy.recent:
        argv.append("--disable-userns")
    if not policy.network:
        argv.append("--unshare-net")
    # Root keeps its files' permissions without any capability, so /proc/sys has to be closed by the mount.
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
