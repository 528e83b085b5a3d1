"""Detect lopen sessions above this process, end orphaned commands, and keep lopen itself from being inspected.

Two traces lead from a command to its session: an environment variable, and the parents up to a process that holds a
session's lock. A command under bubblewrap sees no parents, and could remove the variable; but neither the person's state
nor the seal is in its reach.

The environment of a command names lopen's clone by its HOME, and every process that it starts inherits that. This
finds the processes that the commands of a killed lopen left. Under bubblewrap there is nothing to end: the namespace
dies with lopen. A program that clears its environment and leaves its session is not found.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from lopen.core.process_identity import start_time
from lopen.sandbox.environment import SESSION_VARIABLE
from lopen.sandbox.process_tree import END_S, LINUX, descendants, kill_trees, read_kernel_file, read_process

_PR_SET_DUMPABLE = 4
_MAX_DEPTH = 1_000
_ROUND_S = 0.005


def enclosing_session(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of the session that runs this command ("1" if it is unknown), None outside of any session."""
    return environ.get(SESSION_VARIABLE) or None


def nearest_ancestor_in(pids: Iterable[int], started: Mapping[int, int] | None = None) -> int | None:
    """Return the nearest ancestor (or this process) among `pids`, None if there is none.

    `started` contains known start times (`start_time`), which exclude a later process with the same pid.
    """
    wanted = set(pids)
    for pid in _ancestors():
        if pid in wanted:
            expected = (started or {}).get(pid)
            if expected is None or expected == start_time(pid):
                return pid
    return None


def runs_below_lopen() -> bool:
    """Return True if an ancestor of this process is lopen, in any project."""
    return any(pid != os.getpid() and is_lopen_process(pid) for pid in _ancestors())


def is_lopen_process(pid: int) -> bool:
    """Return True if the process is lopen, in any project."""
    return _may_be_python(pid) and _starts_lopen(_command_line(pid))


def ancestor_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the program file ("" if unknown) and the command line of each ancestor of this process."""
    for pid in _ancestors():
        if pid != os.getpid():
            yield _executable(pid), _command_line(pid)


def _executable(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def _may_be_python(pid: int) -> bool:
    """Return False if the program is known not to be Python: `timeout 60 lopen approve` only names lopen."""
    program = os.path.basename(_executable(pid))
    return not program or program.startswith(("python", "pypy"))  # if unknown, the arguments decide


def _starts_lopen(arguments: Sequence[str]) -> bool:
    """Return True if a command line starts lopen as a script, with or without its interpreter, or by `-m`."""
    first = [os.path.basename(argument) for argument in arguments[:2]]
    modules = [module for flag, module in pairwise(arguments) if flag == "-m"]
    return "lopen" in first or modules[:1] == ["lopen"]


def deny_inspection() -> bool:
    """Deny other processes of the same user access to this process's memory and environment (prctl(2)).

    Return True if the system supports it. Programs that this process starts are not affected.
    """
    if not LINUX:
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)


def _ancestors() -> Iterator[int]:
    pid = os.getpid()
    for _ in range(_MAX_DEPTH):
        if pid <= 0:
            return
        yield pid
        pid = _parent(pid)


def _command_line(pid: int) -> list[str]:
    """Return the command line of a process, empty if it is not readable; no process can change another's."""
    if LINUX:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return os.fsdecode(file.read()).split("\0")
        except OSError:
            return []
    return _ps("command=", pid).split()


def _parent(pid: int) -> int:
    if pid == os.getpid():
        return os.getppid()
    if LINUX:
        process = read_process(pid)
        return process.parent if process else 0
    return int(_ps("ppid=", pid).strip() or 0)


def _ps(column: str, pid: int) -> str:
    command = ["/bin/ps", "-o", column, "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def end_orphans(root: Path, room: Path) -> int:
    """Kill every process that a command of this project started before; return their number.

    `room` is the folder that holds the HOME of its verify commands. The caller holds the lock of the module and has not
    started a command yet.
    """
    if not LINUX:
        return 0
    homes = [os.fsencode(f"HOME={folder.resolve()}/") for folder in (root / ".lopen/cache", room)]
    seen: set[int] = set()
    deadline = time.monotonic() + END_S
    while (found := orphans(homes)) and time.monotonic() < deadline:
        seen |= found
        kill_trees(found)
        # They are not children of this process, so it cannot wait for them, and it finds new forks only by polling.
        time.sleep(_ROUND_S)
    return len(seen)


def orphans(homes: Sequence[bytes]) -> set[int]:
    """Return the running processes whose environment begins a variable with one of `homes`, with their children."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {p.pid for p in descendants(pid for pid in pids if _has_home(pid, homes)) if p.state != "Z"}


def _has_home(pid: int, homes: Sequence[bytes]) -> bool:
    try:
        variables = read_kernel_file(f"/proc/{pid}/environ").split(b"\0")
    except OSError:  # it ended, or belongs to another user
        return False
    return any(variable.startswith(home) for variable in variables for home in homes)
