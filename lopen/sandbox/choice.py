"""Choose the sandbox for a project's commands, prove by a trial that it confines, or run them unconfined."""

from __future__ import annotations

import contextlib
import resource
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, assert_never

from lopen.core.errors import LopenError
from lopen.sandbox.bubblewrap import Bubblewrap
from lopen.sandbox.command import Command, CommandResult, Sandbox, SandboxFailed
from lopen.sandbox.environment import (
    DEFAULT_OPTIONS,
    ProjectSandbox,
    SandboxOptions,
    command_home,
    room_temporary_folder,
)
from lopen.sandbox.landlock import Landlock
from lopen.sandbox.process_tree import LINUX, process_tree
from lopen.sandbox.supervision import spawn, supervise

Mode = Literal["auto", "bwrap", "landlock", "none"]
Confining = Literal["bwrap", "landlock"]

_PROBE_S = 20.0


class Unconfined(ProjectSandbox):
    """Runs commands without confinement (`--sandbox none`), the only mode outside of Linux.

    It limits time, output, processes and file size, cleans the environment and leaves no process running. The
    caller finds and reverts changes in protected places afterwards.
    """

    name = "none"
    warning = (
        "commands run without a sandbox: they can read and change everything you can, your terminal, your keys, "
        "lopen's seal and server token and other programs' memory included, and reach the network; what clears its environment stays if lopen is killed"
    )

    def run(self, command: Command) -> CommandResult:
        room = command.room
        cwd = room.files if room else self._working_folder(command)
        home, tmp = (room.home, room_temporary_folder(room)) if room else (command_home(self._root), None)
        environment = self._environment(command, home, tmp)
        with process_tree() as tree:
            try:
                process = spawn(command.argv, environment, cwd=str(cwd))
            except OSError as error:
                raise SandboxFailed(f"{command.argv[0]}: {error.strerror or error}") from error
            tree.set_command(process)
            _limit_file_size(process.pid, self._limits.file_mb * 1_000_000)
            return supervise(process, command, self._limits, roots=tree.roots, end=tree.end)


def _limit_file_size(pid: int, most: int) -> None:
    """Set the limits from outside, which keeps the start cheap; the program is still loading at that time."""
    if LINUX:
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a sandbox's trial on this machine. `recent`: bubblewrap has the options of version 0.8."""

    works: bool
    detail: str
    recent: bool = True


def choose(mode: Mode, root: Path, options: SandboxOptions = DEFAULT_OPTIONS) -> Sandbox:
    """Return the sandbox for `mode`; `auto` is the strongest that works here.

    Raises:
        LopenError: the requested sandbox, or every sandbox, fails its trial; the hint names the alternative.
    """
    if mode == "none":
        return Unconfined(root, options)
    failures: list[str] = []
    wanted: tuple[Confining, ...] = ("bwrap", "landlock") if mode == "auto" else (mode,)
    for name in wanted:
        found = probe(name)
        if not found.works:
            failures.append(f"{name}: {found.detail}")
        elif name == "bwrap":
            return Bubblewrap(root, options, recent=found.recent)
        else:
            return Landlock(root, options)
    raise LopenError(
        f"no sandbox works here ({'; '.join(failures)})",
        hint="install bubblewrap, or run commands unprotected with --sandbox none",
    )


@lru_cache(maxsize=4)
def probe(mode: Mode) -> ProbeResult:
    """Run a trial of `mode` in a temporary project, once per process. "none" always works."""
    match mode:
        case "none":
            return ProbeResult(works=True, detail="commands run unprotected")
        case "auto":
            strong = probe("bwrap")
            return strong if strong.works else probe("landlock")
        case "landlock":
            return _probe_by_running(mode, recent=True)
        case "bwrap":
            found = _probe_by_running(mode, recent=True)
            older = found if found.works else _probe_by_running(mode, recent=False)
            return older if older.works else found
        case _:
            assert_never(mode)


def _probe_by_running(mode: Confining, *, recent: bool) -> ProbeResult:
    """Run a command that writes inside, outside and to a protected path, and check which writes took effect."""
    with tempfile.TemporaryDirectory(prefix="lopen-probe-") as scratch:
        root, outside = Path(scratch, "project"), Path(scratch, "outside")
        for folder in (root / ".git", outside):
            folder.mkdir(parents=True)
        line = f"echo in > inside; echo out > {outside}/escaped; echo x > .git/escaped; true"
        try:
            sandbox = _confining_sandbox(mode, root, recent=recent)
            ended = sandbox.run(Command(line, root, timeout_s=_PROBE_S))
        except SandboxFailed as failed:
            return ProbeResult(works=False, detail=failed.message, recent=recent)
        if (outside / "escaped").exists():
            return ProbeResult(
                works=False, detail="a command can write outside of the project", recent=recent
            )
        if mode == "bwrap" and (root / ".git/escaped").exists():
            return ProbeResult(works=False, detail="a command can write to .git", recent=recent)
        if not (root / "inside").exists():
            return ProbeResult(
                works=False, detail=f"a command cannot write in the project: {ended.output}", recent=recent
            )
        return ProbeResult(works=True, detail="writing outside of the project is refused", recent=recent)


def _confining_sandbox(mode: Confining, root: Path, *, recent: bool) -> Sandbox:
    return Bubblewrap(root, recent=recent) if mode == "bwrap" else Landlock(root)
