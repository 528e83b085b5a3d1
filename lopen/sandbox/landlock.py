"""The middle sandbox: the kernel's Landlock. Files outside of the project are not written, credentials not read.

No package and no namespace is needed. The network is not confined: rules by port would close loopback with
it, which tests need. Nor are permissions, owners, times and extended attributes: the kernel asks Landlock about
none of the calls that change them, and a filter of calls (seccomp) sees no paths, so that it could only refuse
`chmod` in the project too. Landlock only ever allows whole trees, so protected paths inside the project are the
caller's to compare and restore.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.sandbox import folders
from lopen.sandbox.command import Command, CommandLimits, CommandResult, SandboxFailed
from lopen.sandbox.environment import cache_home, command_environment, forget_compiled, python_variables
from lopen.sandbox.known_secrets import named_credentials
from lopen.sandbox.landlock_rules import confine
from lopen.sandbox.process_tree import LINUX, adopting
from lopen.sandbox.supervision import follow, spawn
from lopen.storage.temporary import TemporaryFolder

_DEVICES = tuple(
    f"/dev/{name}" for name in ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"]
)


class Landlock:
    """Runs commands confined by Landlock."""

    name = "landlock"
    warning = (
        "commands are confined by Landlock only: they cannot write files outside the project, but they can change "
        "permissions and times of files that are yours, reach the network and local sockets, and protected files "
        "are put back only after each command"
    )

    def __init__(
        self,
        root: Path,
        *,
        limits: CommandLimits = CommandLimits(),  # noqa: B008 - frozen
        session: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if not LINUX:
            raise SandboxFailed("Landlock is a part of Linux", hint="use --sandbox none")
        self._root = root.resolve()
        self._limits = limits
        self._session = session
        self._environ = dict(environ)  # the system's own mapping decodes every variable at every look
        self._homes = folders.homes(environ)
        self._hidden = folders.replaced(self._homes)
        self._tools = folders.tools(environ, self._homes, self._hidden, self._root)

    def run(self, command: Command) -> CommandResult:
        cwd = command.cwd.resolve()
        if not folders.inside(cwd, self._root):
            raise SandboxFailed(f"{command.cwd} lies outside of the project")
        home = cache_home(self._root)
        own = TemporaryFolder()
        tmp = own.path / "tmp"
        tmp.mkdir()
        try:
            if command.trusted:
                forget_compiled(self._root)
            extra = {**command.env, **python_variables(self._root, trusted=command.trusted)}
            environment = command_environment(self._environ, extra, home=home, tmp=tmp, session=self._session)
            argv = limited(command.argv, self._limits)
            start = _Start(self._policy(command, home, tmp), argv, environment, str(cwd))
            with adopting() as tree:
                process = start.process()
                tree.root(process)
                return follow(process, command, self._limits, tops=tree.pids, end=tree.end)
        finally:
            own.remove()

    def _policy(self, command: Command, home: Path, tmp: Path) -> _Policy:
        homes = self._homes
        if any(folders.inside(h, self._root) for h in homes):
            raise SandboxFailed(
                "the project holds your home folder, which Landlock cannot keep apart",
                hint="run lopen in a folder of its own, or install bubblewrap",
            )
        hidden, shown = self._hidden, self._tools
        secret = {
            *hidden,
            *folders.masked(homes, shown, hidden, named_credentials(self._environ, self._root)),
        }
        readable = [*visible(Path("/"), secret), str(self._root)]
        for tool in shown:
            readable += visible(tool, secret - set(hidden))
        for path in (folders.git_folder_elsewhere(self._root), Path("/etc/resolv.conf").resolve()):
            readable += [str(path)] if path and path.exists() else []
        writable = [self._root, tmp] if command.writable else [home, tmp]
        return _Policy(readable, [str(path) for path in writable], [d for d in _DEVICES if os.path.exists(d)])


@dataclass(frozen=True, slots=True)
class _Policy:
    """What may be opened: trees to read, trees to write, devices."""

    read: list[str]
    write: list[str]
    devices: list[str]


class _Start(threading.Thread):
    """Starts a command confined. Landlock confines a thread and what that starts: this one ends behind the start.

    A launcher between lopen and the command would cost the start of an interpreter for every command.
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
        except OSError as error:
            said = f"Landlock could not set up the sandbox: {error.strerror or error}"
            self._failed = SandboxFailed(said, hint="see lopen doctor")
            return
        try:
            self._process = spawn(self._argv, self._env, cwd=self._cwd)
        except OSError as error:
            self._failed = SandboxFailed(f"{self._argv[0]}: {error.strerror or error}")

    def process(self) -> subprocess.Popen[bytes]:
        """Start; the command's process. Raises SandboxFailed."""
        self.start()
        try:
            self.join()
        except BaseException:  # a signal: what was started meanwhile belongs to nobody
            self.join()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            raise
        if self._process is None:
            raise self._failed or SandboxFailed(f"{self._argv[0]} could not be started")
        return self._process


def limited(argv: Sequence[str], limits: CommandLimits) -> list[str]:
    """The command behind a shell that lowers its own limits: set from outside they could come too late.

    Limits belong to a process, not to a thread, so that they cannot be set where Landlock's rules are. One that is
    lower already stays.
    """
    wanted = (
        "ulimit -c 0",
        f"ulimit -d {limits.memory_mb * 1_000_000 // 1024}",  # in KiB
        f"ulimit -f {limits.file_mb * 1_000_000 // 512}",  # in POSIX's blocks
    )
    script = "".join(f"{one} 2>/dev/null; " for one in wanted) + 'exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *argv]


def visible(top: Path, hidden: set[Path]) -> list[str]:
    """The trees below `top`, as few as possible, that hold all of it but what is `hidden`. No links."""
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
        return  # not ours to read, then not the command's either
    for entry in entries:
        if not entry.is_symlink():
            yield from _trees(entry.path, covered, above)
