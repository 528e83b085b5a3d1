"""Whether this process runs somewhere below a lopen session, and keeping lopen itself from being inspected.

Three traces, because a command may remove any one it can reach: a variable of the environment, a marker
in the sandbox's own read-only `/run`, and the chain of parents up to a process that holds a session's lock.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from lopen.base.process_identity import start_time
from lopen.sandbox.environment import SESSION_VARIABLE
from lopen.sandbox.process_tree import LINUX, read_process

SESSION_MARKER = "/run/lopen-session"
"""A symbolic link inside bubblewrap; its target is the session's id."""

_PR_SET_DUMPABLE = 4
_DEEPEST = 1_000


def under_session(environ: Mapping[str, str] = os.environ) -> str | None:
    """The id of the session whose command this is ("1" where it is not known), None outside of any."""
    if value := environ.get(SESSION_VARIABLE):
        return value
    try:
        return os.readlink(SESSION_MARKER)
    except OSError:
        return None


def descends_from(pids: Iterable[int], started: Mapping[int, int] | None = None) -> int | None:
    """The nearest ancestor (or this process itself) among `pids`, None where there is none.

    `started` gives start times (`start_time`) where they are known: a number used again by a later process
    is not the one that was meant.
    """
    wanted = set(pids)
    for pid in _ancestors():
        if pid in wanted:
            meant = (started or {}).get(pid)
            if meant is None or meant == start_time(pid):
                return pid
    return None


def below_lopen() -> bool:
    """Whether a process above this one is a lopen, whichever project it works on."""
    return any(pid != os.getpid() and is_lopen_process(pid) for pid in _ancestors())


def is_lopen_process(pid: int) -> bool:
    """Whether the process is a lopen, whichever project it works on."""
    return _is_interpreter(pid) and _is_lopen(_arguments(pid))


def commands_above() -> Iterator[tuple[str, list[str]]]:
    """Each process above this one: its program's file ("" where that cannot be told) and its command line."""
    for pid in _ancestors():
        if pid != os.getpid():
            yield _program(pid), _arguments(pid)


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def _is_interpreter(pid: int) -> bool:
    """Whether the process runs Python: `timeout 60 lopen approve`, `sudo lopen …` only name it in their arguments."""
    program = os.path.basename(_program(pid))
    return not program or program.startswith(
        ("python", "pypy")
    )  # where it cannot be told, the arguments decide


def _is_lopen(arguments: Sequence[str]) -> bool:
    """Whether a command line starts lopen: as a script, with or without its interpreter, or by `-m`."""
    first = [os.path.basename(argument) for argument in arguments[:2]]
    modules = [module for flag, module in pairwise(arguments) if flag == "-m"]
    return "lopen" in first or modules[:1] == ["lopen"]


def not_dumpable() -> bool:
    """Keep this process's memory and environment from other processes of the same user (prctl(2)).

    True where the system can. Programs it starts are their own masters again.
    """
    if not LINUX:
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)


def _ancestors() -> Iterator[int]:
    pid = os.getpid()
    for _ in range(_DEEPEST):
        if pid <= 0:
            return
        yield pid
        pid = _parent(pid)


def _arguments(pid: int) -> list[str]:
    """The command line of a process, empty where it cannot be read; no process can change another's."""
    if LINUX:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return os.fsdecode(file.read()).split("\0")
        except OSError:
            return []
    asked = subprocess.run(
        ["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return asked.stdout.split()


def _parent(pid: int) -> int:
    if pid == os.getpid():
        return os.getppid()
    if LINUX:
        process = read_process(pid)
        return process.parent if process else 0
    asked = subprocess.run(
        ["/bin/ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return int(asked.stdout.strip() or 0)
