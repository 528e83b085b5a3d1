"""The strong sandbox: bubblewrap (bwrap(1)) with separate namespaces for everything.

Of the machine a command sees the parts that programs need and tools, read-only, and the project; everything else of the file
system does not exist for it. Small files are copied and folders are mounted, because each mount costs a sixth of a
millisecond.
bwrap reports the first process of the new process namespace on one pipe, and starts the command when lopen writes to another. In
between, lopen sets limits on that process, which every later process inherits. The namespace ends with the command.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from lopen.core.redaction import find_secrets
from lopen.core.trusted_programs import find_program
from lopen.sandbox import folders
from lopen.sandbox.command import (
    CACHES_INSIDE,
    Command,
    CommandLimits,
    CommandResult,
    Room,
    SandboxFailed,
)
from lopen.sandbox.environment import (
    DEFAULT_OPTIONS,
    ProjectSandbox,
    SandboxOptions,
    command_home,
    mount_points,
)
from lopen.sandbox.kernel_filter import filter_file
from lopen.sandbox.process_tree import END_S, kill_trees
from lopen.sandbox.supervision import spawn, supervise

ROOM_HOME = Path("/tmp/home")  # noqa: S108 - the HOME of a command in a room, in its private /tmp
_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_KEYS = Path("/proc/keys")  # the names of the person's keys
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_PROCESSORS = ("online", "possible", "present")  # for programs that start one worker for each processor
_FILES = (
    "alpine-release", "bash.bashrc", "debian_version", "gai.conf", "gitconfig", "group", "host.conf", "hosts",
    "inputrc", "ld.so.cache", "ld.so.conf", "locale.alias", "localtime", "lsb-release", "magic", "mime.types", "mtab",
    "networks", "npmrc", "nsswitch.conf", "os-release", "passwd", "pip.conf", "pki/tls/cert.pem",
    "pki/tls/openssl.cnf", "profile", "protocols", "redhat-release", "services", "shells", "ssl/cert.pem",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_FOLDERS = (
    "ImageMagick-*", "R", "alternatives", "crypto-policies", "fonts", "java", "java-*", "maven", "php", "pki/ca-trust",
    "pki/java", "pki/tls/certs", "ssl/certs", "static", "texmf",
)  # fmt: skip
_MAX_FILE = 1_000_000
_LIBRARIES = "/etc/ld.so.conf.d"
_START_S = 10.0
_POLL_MS = 20
_CHILD = re.compile(rb'"child-pid": (\d+)')
_ENDED = b'"exit-code"'


class Bubblewrap(ProjectSandbox):
    """Runs commands under bubblewrap. `recent`: bubblewrap has the options of version 0.8."""

    name = "bwrap"
    warning = ""

    def __init__(self, root: Path, options: SandboxOptions = DEFAULT_OPTIONS, *, recent: bool = True) -> None:
        super().__init__(root, options)
        self._recent = recent
        self._program = find_bwrap(self._environ, self._root)

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
        with (
            mount_points(command.shown, home, self._root) as shown,
            Pipes() as pipes,
            _files() as (options, descriptors),
        ):
            installed = (*shown, *_at_room_home(shown, home))
            argv = [
                self._program, *self.options(command, home, installed, options), "--json-status-fd",
                str(pipes.status_in), "--block-fd", str(pipes.block_out), "--", *self._argv(command),
            ]  # fmt: skip
            inherited = (pipes.status_in, pipes.block_out, *descriptors)
            process = spawn(argv, environment, pass_fds=inherited)
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

    def _argv(self, command: Command) -> tuple[str, ...]:
        """Return the argument list; a line is the model's own text and stays as it is."""
        return command.argv if isinstance(command.line, str) else tuple(map(self._placed, command.line))

    def _placed(self, text: str) -> str:
        """Return `text` with the path under which the sandbox shows the root."""
        return text if self._at == self._root else text.replace(str(self._root), str(self._at))

    def options(
        self,
        command: Command,
        home: Path,
        installed: Iterable[tuple[Path, Path]] = (),
        files: Sequence[str] = (),
    ) -> list[str]:
        """Return bwrap's options for a command. Later mounts cover earlier ones.

        `home` is writable, `installed` are (source, place), read-only, and `files` are the options that name
        descriptors. `--new-session` is not needed: bwrap starts in a new session without a terminal. As one process
        group, all of its processes can be stopped at once.
        """
        cwd = self._working_folder(command)
        if self._root == Path("/"):
            raise SandboxFailed(
                "the whole file system cannot be a project", hint="run lopen in a folder of its own"
            )
        room = command.room
        argv = [
            "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
            "--die-with-parent", "--cap-drop", "ALL", "--hostname", "localhost",
        ]  # fmt: skip
        if self._recent:
            argv.append("--disable-userns")
        if not command.network:
            argv.append("--unshare-net")
        system = system_view()
        argv += _each("--ro-bind", system.folders)
        for target, name in system.links:
            argv += ["--symlink", target, name]
        argv += files
        # Root may write its own files without any capability, so only the mount can close /proc/sys.
        argv += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
        # /tmp, /dev/shm and one node_modules' caches hold as much as a command may use of memory; nothing else outside
        # the project is written.
        for folder, share in (("/tmp", 0.7), ("/dev/shm", 0.2)):  # noqa: S108
            argv += ["--perms", "1777", *self._tmpfs(folder, share)]
        argv += ["--remount-ro", "/dev", "--symlink", "../tmp", "/var/tmp"]  # noqa: S108 - the command's own
        argv += ["--symlink", "../run", "/var/run"]
        git = None if room else folders.git_folder(self._root)
        shown = [*self._tools, *([git] if git else [])]
        argv += _each("--ro-bind", folders.outermost(shown))
        if command.network:
            argv += ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"]
        argv += self._room(room) if room else self._project(writable=command.writable)
        argv += self._masks([*shown, *map(Path, system.folders), self._root], room)
        if not room:
            argv += ["--bind", str(home), str(self._place(home))]
        for source, place in installed:
            argv += ["--ro-bind", str(source), str(self._place(place))]
            argv += self._caches_inside(source, self._place(place))
        return [*argv, "--remount-ro", "/", "--chdir", str(self._place(cwd))]

    def _project(self, *, writable: bool) -> Iterator[str]:
        yield from ("--bind" if writable else "--ro-bind", str(self._root), str(self._at))
        git = self._root / ".git"  # of lopen's clone a file, which names its git folder
        if git.exists() and not git.is_symlink():
            yield from ("--ro-bind", str(git), str(self._at / ".git"))

    def _room(self, room: Room) -> Iterator[str]:
        for option, source, place in room.mounts(self._at, ROOM_HOME):
            yield from (option, str(source), str(place))
            if option == "--ro-bind":
                yield from self._caches_inside(source, place)

    def _masks(self, shown: Sequence[Path], room: Room | None) -> Iterator[str]:
        """Yield the options that empty the credentials in what is shown, and the names of the person's keys."""
        keys = (_KEYS,) if _KEYS.exists() else ()
        for path in (*self._credentials(shown), *keys):
            if room is not None and not self._in_room(path, room):
                continue
            masked = str(self._place(path))
            if os.path.isdir(path):
                yield from ("--tmpfs", masked, "--remount-ro", masked)
            else:
                yield from ("--ro-bind", "/dev/null", masked)

    def _caches_inside(self, source: Path, place: Path) -> Iterator[str]:
        """Yield the options for folders in which tools may keep a cache until the command ends: empty ones only.

        A program that verify-setup put into one (a browser, a database server) stays visible, and read-only.
        """
        names = CACHES_INSIDE.get(source.name, ())
        for name in names:
            cache = source / name
            if cache.is_dir() and not cache.is_symlink() and not os.listdir(cache):
                yield from self._tmpfs(str(place / name), 0.1 / len(names))

    def _tmpfs(self, place: str, share: float) -> list[str]:
        """Return the options for an empty folder that holds at most a `share` of the command's memory."""
        size = ["--size", str(int(self._limits.memory_mb * 1_000_000 * share))] if self._recent else []
        return [*size, "--tmpfs", place]

    def _place(self, path: Path) -> Path:
        """Return where the sandbox shows a path."""
        return self._at / path.relative_to(self._root) if folders.inside(path, self._root) else path

    def _in_room(self, path: Path, room: Room) -> bool:
        """Return True for a path outside of the project, or that the room has too."""
        if not folders.inside(path, self._root):
            return True
        return os.path.lexists(room.files / path.relative_to(self._root))


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


def _setup_failure(output: str) -> SandboxFailed:
    reason = output.strip().removeprefix("bwrap: ") or "it ended without a message"
    return SandboxFailed(
        f"bubblewrap cannot set up the sandbox: {reason}",
        hint="lopen doctor shows what works here; --sandbox landlock and --sandbox none do not need bubblewrap",
    )


@contextlib.contextmanager
def _files() -> Iterator[tuple[list[str], list[int]]]:
    """Yield bwrap's options for its input from descriptors, with these: the system's files, the kernel filter."""
    options: list[str] = []
    descriptors: list[int] = []
    try:
        for name in system_view().files:
            with contextlib.suppress(OSError):  # it is gone since the view was made
                descriptors.append(os.open(name, os.O_RDONLY | os.O_CLOEXEC))
                options += ["--perms", "0444", "--file", str(descriptors[-1]), name]
        if (filtered := filter_file()) is not None:
            descriptors.append(filtered)
            options += ["--seccomp", str(filtered)]
        yield options, descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class SystemView:
    """Paths of the machine that are shown, read-only. `links` are (target, name)."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def system_view() -> SystemView:
    """Return the view of this machine."""
    found = [name for name in _SYSTEM if os.path.isdir(name)]
    etc = Path("/etc")
    found += [str(path) for pattern in _FOLDERS for path in sorted(etc.glob(pattern)) if path.is_dir()]
    named = [*(f"/etc/{name}" for name in _FILES), *(f"/sys/devices/system/cpu/{n}" for n in _PROCESSORS)]
    files = [name for name in named if os.path.lexists(name)]
    links = [(os.readlink(name), name) for name in (*found, *files) if _stays_link(name)]
    linked = {name for _, name in links}
    return SystemView(
        tuple(name for name in found if name not in linked),
        tuple(name for name in files if name not in linked and _can_be_copied(name)),
        tuple(links),
    )


def library_folders() -> Iterator[Path]:
    """Yield the folders outside of `/usr` in which the dynamic linker looks for libraries (ld.so(8))."""
    for path in sorted(Path(_LIBRARIES).glob("*.conf")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            for line in path.read_text("utf-8").splitlines():
                if line.startswith("/") and not line.startswith(("/usr/", "/lib")):
                    yield Path(line.strip())


def _stays_link(name: str) -> bool:
    """Return True for a link whose target a command sees too."""
    if not os.path.islink(name):
        return False
    return os.path.realpath(name).startswith(("/usr/", "/nix/store/", "/gnu/store/", "/proc/"))


def _can_be_copied(name: str) -> bool:
    """Return True for a readable file without secrets of a size to be copied before every command."""
    try:
        if not os.path.isfile(name) or os.stat(name).st_size > _MAX_FILE:
            return False
        with open(name, encoding="utf-8", errors="replace") as file:
            return name.endswith(".cache") or not find_secrets(file.read())
    except OSError:
        return False


def _each(option: str, paths: Iterable[Path | str]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]


class Pipes:
    """Two pipes to bwrap: the first for its status lines, the second blocks the command until `release`."""

    def __init__(self) -> None:
        self._status_out, self.status_in = os.pipe()
        self.block_out, self._block_in = os.pipe()
        self._open = {self._status_out, self.status_in, self.block_out, self._block_in}
        self._status = b""

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def close_child_ends(self) -> None:
        """Close bwrap's ends in this process, so that an end of file signals bwrap's exit."""
        self._close(self.status_in)
        self._close(self.block_out)

    def first_process(self) -> int | None:
        """Wait for the pid of the namespace's first process; return None if bwrap fails before it exists."""
        deadline = time.monotonic() + _START_S
        while (found := _CHILD.search(self._status + b" ")) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._status_out], [], [], left)[0]:
                return None
            chunk = os.read(self._status_out, 4_096)
            if not chunk:
                return None
            self._status += chunk
        return int(found[1])

    def release(self) -> None:
        """Let the command start."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._block_in, b"\n")
        self._close(self._block_in)

    def command_ran(self) -> bool:
        """Return True if the command started. To be called after bwrap's exit."""
        while chunk := os.read(self._status_out, 4_096):
            self._status += chunk
        return _ENDED in self._status

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)


class Namespace:
    """The pid namespace of one command; it ends with its first process."""

    def __init__(self, bwrap: subprocess.Popen[bytes]) -> None:
        self._bwrap = bwrap
        self._first: int | None = None
        self._pid = 0

    def open(self, pid: int | None) -> None:
        """Open a descriptor for the namespace's first process; unlike a pid, it never means another process."""
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                self._first, self._pid = os.pidfd_open(pid), pid

    def limit(self, limits: CommandLimits) -> None:
        """Set the limits on the first process before the command starts; every process inherits them."""
        if self._first is None:
            return
        data, size = limits.memory_mb * 1_000_000, limits.file_mb * 1_000_000
        wanted = [(resource.RLIMIT_DATA, data), (resource.RLIMIT_FSIZE, size), (resource.RLIMIT_CORE, 0)]
        if _kernel() >= (5, 14):  # older kernels count the user's processes outside of the namespace too
            wanted.append((resource.RLIMIT_NPROC, limits.processes))
        for kind, most in wanted:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _lower(self._pid, kind, most)

    def end(self) -> None:
        """Kill every process of the namespace and wait for the end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._bwrap.pid, signal.SIGKILL)
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            poll = select.poll()
            poll.register(self._first, select.POLLIN)
            deadline = time.monotonic() + END_S
            # Thousands of processes can delay the first one's end, so kill them too between the polls.
            while not poll.poll(_POLL_MS) and time.monotonic() < deadline:
                kill_trees([self._pid])
            os.close(self._first)
            self._first = None
        self._bwrap.wait()
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)  # a child of this process if that is a subreaper


def _kernel() -> tuple[int, int]:
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return int(major), int(minor)


def _lower(pid: int, kind: int, most: int) -> None:
    """Lower a limit of another process; keep a lower limit."""
    _, hard = resource.prlimit(pid, kind)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.prlimit(pid, kind, (most, most))
