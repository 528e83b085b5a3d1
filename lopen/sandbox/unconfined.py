"""No sandbox at all: the person's own word (`--sandbox none`), and the only mode outside of Linux.

Time, output, processes and file size are limited, the environment is clean, nothing is left running.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping
from pathlib import Path

from lopen.sandbox.command import Command, CommandLimits, CommandResult, SandboxFailed
from lopen.sandbox.environment import cache_home, command_environment, python_variables
from lopen.sandbox.folders import inside
from lopen.sandbox.process_tree import LINUX, adopting
from lopen.sandbox.supervision import follow, spawn


class Unconfined:
    """Runs commands as they are. What they change in protected places is found afterwards, by the caller."""

    name = "none"
    warning = (
        "commands run without a sandbox: they can read and change everything you can, and reach the network"
    )

    def __init__(
        self,
        root: Path,
        *,
        limits: CommandLimits = CommandLimits(),  # noqa: B008 - frozen
        session: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._root = root.resolve()
        self._limits = limits
        self._session = session
        self._environ = dict(environ)  # the system's own mapping decodes every variable at every look

    def run(self, command: Command) -> CommandResult:
        cwd = self._root if command.cwd == self._root else command.cwd.resolve()
        if not inside(cwd, self._root):
            raise SandboxFailed(f"{command.cwd} lies outside of the project")
        home = cache_home(self._root)
        extra = {**command.env, **python_variables(self._root, trusted=command.trusted)}
        environment = command_environment(self._environ, extra, home=home, session=self._session)
        with adopting() as tree:
            try:
                process = spawn(command.argv, environment, cwd=str(cwd))
            except OSError as error:
                raise SandboxFailed(f"{command.argv[0]}: {error.strerror or error}") from error
            tree.root(process)
            _limit_file_size(process.pid, self._limits.file_mb * 1_000_000)
            return follow(process, command, self._limits, tops=tree.pids, end=tree.end)


def _limit_file_size(pid: int, most: int) -> None:
    """Set from outside, so that starting stays cheap; the program is still being loaded by then."""
    if LINUX:
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
