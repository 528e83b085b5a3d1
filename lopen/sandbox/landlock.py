"""The middle sandbox: the kernel's Landlock. Files outside of the project are not written, credentials not read.

No package and no namespace is needed. The network is not confined: rules by port would close loopback with
it, which tests need. Nor are permissions, owners, times and extended attributes: the kernel asks Landlock about
none of the calls that change them, and a filter of calls (seccomp) sees no paths, so that it could only refuse
`chmod` in the project too. Landlock only ever allows whole trees, so protected paths inside the project are the
caller's to compare and restore.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from lopen.sandbox import folders
from lopen.sandbox.cache_home import cache_home, forget_compiled, python_variables
from lopen.sandbox.command import Command, CommandResult, Limits, SandboxFailed
from lopen.sandbox.credentials import named_credentials
from lopen.sandbox.environment import command_environment
from lopen.sandbox.supervision import follow, spawn
from lopen.sandbox.tree import LINUX, adopting
from lopen.storage.temporary import TemporaryFolder

_LAUNCHER = Path(__file__).with_name("landlock_launcher.py")
_DEVICES = tuple(
    f"/dev/{name}" for name in ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"]
)


class Landlock:
    """Runs commands confined by Landlock, through a launcher process that becomes the command."""

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
        limits: Limits = Limits(),  # noqa: B008 - frozen
        session: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if not LINUX:
            raise SandboxFailed("Landlock is a part of Linux", hint="use --sandbox none")
        self._root = root.resolve()
        self._limits = limits
        self._session = session
        self._environ = environ
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
        status_out, status_in = os.pipe()
        try:
            if command.trusted:
                forget_compiled(self._root)
            extra = {**command.env, **python_variables(self._root, trusted=command.trusted)}
            environment = command_environment(self._environ, extra, home=home, tmp=tmp, session=self._session)
            policy = json.dumps(self._policy(command, home, tmp) | {"status": status_in})
            argv = [sys.executable, "-I", "-S", str(_LAUNCHER), policy, *command.argv]
            with adopting() as tree:
                process = spawn(argv, environment, cwd=str(cwd), pass_fds=(status_in,))
                tree.root(process)
                result = follow(process, command, self._limits, tops=tree.pids, end=tree.end)
            os.close(status_in)
            status_in = -1
            if said := os.read(status_out, 4_096).decode("utf-8", "replace"):
                raise SandboxFailed(f"Landlock could not set up the sandbox: {said}", hint="see lopen doctor")
            return result
        finally:
            os.close(status_out)
            if status_in >= 0:
                os.close(status_in)
            own.remove()

    def _policy(self, command: Command, home: Path, tmp: Path) -> dict[str, object]:
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
        limits = {
            resource.RLIMIT_DATA: self._limits.memory_mb * 1_000_000,
            resource.RLIMIT_FSIZE: self._limits.file_mb * 1_000_000,
            resource.RLIMIT_CORE: 0,
        }
        return {
            "read": readable,
            "write": [str(path) for path in ([self._root, tmp] if command.writable else [home, tmp])],
            "devices": [device for device in _DEVICES if os.path.exists(device)],
            "limits": limits,
        }


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
