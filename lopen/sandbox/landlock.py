"""The middle sandbox: the kernel's Landlock (landlock(7)). It prevents writes outside of the project and reads of
credentials.

It needs no package and no namespace. It does not confine the network: rules by port would also close loopback,
which tests need. Nor does it confine permissions, owners, times and extended attributes: the kernel does not ask
Landlock about the calls that change them. Landlock allows whole trees only, so the caller compares and restores protected
paths in the project.
"""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.sandbox import folders
from lopen.sandbox.command import Command, CommandLimits, CommandResult, SandboxFailed
from lopen.sandbox.environment import ProjectSandbox, command_home
from lopen.sandbox.kernel_filter import install_filter
from lopen.sandbox.process_tree import LINUX, process_tree
from lopen.sandbox.supervision import spawn, supervise
from lopen.store.temporary import TemporaryFolder

_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))


class Landlock(ProjectSandbox):
    """Runs commands confined by Landlock."""

    name = "landlock"
    warning = (
        "commands are confined by Landlock only: they cannot write files outside the project or use your terminal, but "
        "they can change permissions and times of files that are yours, reach the network, local sockets and shared "
        "memory, read named pipes, and see the names of keys; a daemon that clears its "
        "environment stays if lopen is killed; protected files are put back only after each command"
    )

    def run(self, command: Command) -> CommandResult:
        if not LINUX:
            raise SandboxFailed("Landlock needs Linux", hint="use --sandbox none")
        room = command.room
        cwd = room.files if room else self._working_folder(command)
        home = room.home if room else command_home(self._root)
        own = TemporaryFolder()
        tmp = own.path / "tmp"
        tmp.mkdir()
        try:
            environment = self._environment(command, home, tmp)
            argv = with_limits(command.argv, self._limits)
            start = _ConfinedStart(self._policy(command, home, tmp), argv, environment, str(cwd))
            with process_tree() as tree:
                process = start.process()
                tree.set_command(process)
                return supervise(process, command, self._limits, roots=tree.roots, end=tree.end)
        finally:
            own.remove()

    def _policy(self, command: Command, home: Path, tmp: Path) -> _Policy:
        if any(folders.inside(home, self._root) for home in self._homes):
            raise SandboxFailed(
                "the project contains your home folder, which Landlock cannot protect there",
                hint="run lopen in a folder of its own, or install bubblewrap",
            )
        hidden, shown, room = self._hidden, self._tools, command.room
        git = None if room else folders.git_folder(self._root)
        secret = {*hidden, *self._credentials(shown), Path("/dev")}
        secret |= {self._at} if self._at != self._root else set()
        if room is None:
            readable = [*uncovered_trees(Path("/"), secret), str(self._root)]
        else:
            readable = uncovered_trees(Path("/"), secret | {self._root})
            readable += [str(path) for path in (room.git, room.repository) if path]
            readable += [str(source) for source, _ in room.carried]
        for tool in shown:
            readable += uncovered_trees(tool, secret - set(hidden))
        for path in (git, Path("/etc/resolv.conf").resolve()):
            readable += [str(path)] if path and path.exists() else []
        readable += [str(source) for source, _ in command.shown]
        writable = [self._root, tmp] if command.writable else [home, tmp]
        if room is not None:
            writable = [room.files, room.home, tmp]
        return _Policy(readable, [str(path) for path in writable], [d for d in _DEVICES if os.path.exists(d)])


@dataclass(frozen=True, slots=True)
class _Policy:
    """The paths that a command may open: trees to read, trees to write, devices."""

    read: list[str]
    write: list[str]
    devices: list[str]


class _ConfinedStart(threading.Thread):
    """A thread that confines itself with Landlock, starts the command, and ends.

    Landlock confines a thread and everything that it starts. A launcher process instead of the thread would cost
    the start of an interpreter for every command.
    """

    def __init__(self, policy: _Policy, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        super().__init__(name="landlock")
        self._policy = policy
        self._argv = argv
        self._env = env
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._failed: Exception | None = None

    def run(self) -> None:
        try:
            confine(self._policy.read, self._policy.write, self._policy.devices)
            install_filter()
        except OSError as error:
            message = f"Landlock cannot set up the sandbox: {error.strerror or error}"
            self._failed = SandboxFailed(message, hint="see lopen doctor")
            return
        try:
            self._process = spawn(self._argv, self._env, cwd=self._cwd)
        except OSError as error:
            self._failed = SandboxFailed(f"{self._argv[0]}: {error.strerror or error}")

    def process(self) -> subprocess.Popen[bytes]:
        """Start the thread and return the command's process. Raise SandboxFailed if it does not start."""
        self.start()
        try:
            self.join()
        except BaseException:  # a signal: no other code knows the process that may have started meanwhile
            self.join()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            raise
        if self._process is None:
            raise self._failed or SandboxFailed(f"cannot start {self._argv[0]}")
        return self._process


def with_limits(argv: Sequence[str], limits: CommandLimits) -> list[str]:
    """Wrap the command in a shell that lowers its own limits; set from outside, they could come too late.

    Limits belong to a process, not to a thread, so the thread with Landlock's rules cannot set them. A limit that
    is lower already stays.
    """
    wanted = (
        "ulimit -c 0",
        f"ulimit -d {limits.memory_mb * 1_000_000 // 1024}",  # in KiB
        f"ulimit -f {limits.file_mb * 1_000_000 // 512}",  # in POSIX's blocks
    )
    script = "".join(f"{one} 2>/dev/null; " for one in wanted) + 'exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *argv]


def uncovered_trees(top: Path, hidden: set[Path]) -> list[str]:
    """Return the fewest trees below `top` that contain everything except the `hidden` paths and links."""
    covered = {str(path) for path in hidden}
    above = {str(parent) for path in hidden for parent in path.parents}
    return list(_trees(str(top), covered, above))


def _trees(top: str, covered: set[str], above: set[str]) -> Iterator[str]:
    if top in covered:
        return
    if top not in above:
        yield top
        return
    try:
        entries = sorted(os.scandir(top), key=lambda entry: entry.name)
    except OSError:
        return  # neither lopen nor the command can read it
    for entry in entries:
        if not entry.is_symlink():
            yield from _trees(entry.path, covered, above)


CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = 64

# linux/landlock.h
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR = 1 << 4, 1 << 5, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO = 1 << 8, 1 << 9, 1 << 10
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15
_READ = EXECUTE | READ_FILE | READ_DIR
_WRITE = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_SCOPES = 0b11  # abstract unix sockets, signals


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the version of the kernel's Landlock, 0 if it is missing or switched off."""
    version = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, int(version))


def handled(version: int) -> int:
    """Return every file access that this version can deny; the kernel denies every access that no rule allows."""
    known = (1 << 13) - 1
    for since, access in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if version >= since:
            known |= access
    return known


def confine(read: Iterable[str], write: Iterable[str], devices: Iterable[str]) -> None:
    """Restrict this thread and everything that it starts to the listed paths, without new privileges.

    The restriction is permanent, so the thread should end soon. Raise OSError if the kernel refuses.
    """
    version = abi()
    if version == 0:
        raise OSError("the kernel's Landlock is missing or switched off")
    known = handled(version)
    attributes = _Ruleset(known, 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _check(_libc.syscall(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0))
    for paths, access in (
        (read, _READ),
        (write, _READ | _WRITE | REFER | TRUNCATE),
        (devices, READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV),
    ):
        for path in paths:
            _allow(ruleset, path, access & known)
    # After that root keeps no capability over an exec; a process without any may not drop them, which is fine.
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _check(_libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # missing or not accessible, so there is nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _ON_FILES
        rule = _Beneath(access, descriptor)
        _check(_libc.syscall(ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
