"""A control group for the processes of one command, by which the kernel limits all of them together (cgroup v2).

lopen needs a group of its own that was delegated to it, with the controllers for memory and processes: that of a service
or scope with `Delegate=yes`. Only commands that run for a while get a group, because taking a process into one can take
12 ms. Where none can be made, `supervision` alone holds the limits. Source: https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path

from lopen.core.process_identity import lives, start_time
from lopen.sandbox.command import CommandLimits, KilledBy
from lopen.sandbox.process_tree import LINUX, descendants

CONTROLLERS = frozenset({"memory", "pids"})
NOT_DELEGATED = "the controllers for memory and processes are not delegated to lopen's control group"
_SPARE_TASKS = 64  # beyond the limit at which `supervision` ends the command and says so
_NAME = re.compile(r"lopen-(?P<pid>\d+)-(?P<started>\d+)-(?P<of>own|\d+)")  # of lopen itself, or of a command
_ROUNDS = 5
_REMOVE_S = 0.1
_ROUND_S = 0.005
_MAKING = threading.Lock()
_numbers = count(1)


def group_folder(cgroup: str, mounts: str) -> Path | None:
    """Return this process's control group by `/proc/self/cgroup` and `/proc/self/mountinfo`; None without version 2."""
    own = next((line[3:] for line in cgroup.splitlines() if line.startswith("0::/")), None)
    for line in mounts.splitlines():
        fields, _, kind = (part.split(" ") for part in line.partition(" - "))
        if own is not None and kind[:1] == ["cgroup2"]:
            top, place = fields[3].rstrip("/"), fields[4]
            if f"{own}/".startswith(f"{top}/") and "/.." not in own:
                return Path(place + own.removeprefix(top).rstrip("/"))
    return None


def obstacle(controllers: str, enabled: str, members: Collection[int], ours: Collection[int]) -> str:
    """Return why there can be no groups with limits below one, "" if there can.

    `controllers` and `enabled` are its `cgroup.controllers` and `cgroup.subtree_control`. A group with limits below it
    may hold no processes itself; lopen can move `ours`.
    """
    if not CONTROLLERS.issubset(controllers.split()):
        return NOT_DELEGATED
    others = () if CONTROLLERS.issubset(enabled.split()) else set(members) - set(ours)
    return "lopen's control group holds processes that are not lopen's" if others else ""


def limit_files(limits: CommandLimits) -> dict[str, str]:
    """Return what is written to the files of a command's group. Memory counts temporary file systems, and no swap."""
    return {
        "memory.max": str(limits.memory_mb * 1_000_000),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(limits.processes + _SPARE_TASKS),
    }


def ran_out_of_memory(events: str) -> bool:
    """Return True where `memory.events` counts processes that the kernel ended at the group's limit."""
    counts = dict(line.split(" ", 1) for line in events.splitlines() if " " in line)
    return all(counts.get(name, "0") != "0" for name in ("oom", "oom_kill"))


def examined() -> tuple[Path | None, str]:
    """Return the group in which lopen can make others, or None and the reason. Changes nothing."""
    if not LINUX:
        return None, "control groups need Linux"
    try:
        cgroup, mounts = (Path(f"/proc/self/{name}").read_text("utf-8") for name in ("cgroup", "mountinfo"))
        folder = group_folder(cgroup, mounts)
        if folder is None:
            return None, "this process is in no control group of version 2"
        if (name := _NAME.fullmatch(folder.name)) and name[
            "of"
        ] == "own":  # of the lopen that started this one
            folder = folder.parent
        controllers, enabled = (
            (folder / f"cgroup.{name}").read_text("ascii") for name in ("controllers", "subtree_control")
        )
        ours = {process.pid for process in descendants([os.getpid()])}
        why = obstacle(controllers, enabled, members(folder), ours)
    except (OSError, ValueError) as error:
        return None, f"lopen cannot read its control group: {error}"
    if not why and not _is_ours(folder):
        why = f"lopen may not make control groups in {folder}"
    return (None, why) if why else (folder, "")


def _is_ours(folder: Path) -> bool:
    """Return True for a group in which this user may make others; root only where systemd delegated it, or at the top.

    systemd marks a delegated group, and goes on managing those of root's other services.
    """
    if not os.access(folder / "cgroup.procs", os.W_OK):
        return False
    if os.geteuid() != 0 or not (folder.parent / "cgroup.procs").exists():
        return True
    marks = ("trusted.delegate", "user.delegate")
    with contextlib.suppress(OSError):
        known = os.listxattr(folder)
        return any(os.getxattr(folder, mark) == b"1" for mark in marks if mark in known)
    return False


@lru_cache(maxsize=1)
def home(pid: int) -> Path | None:
    """Return the group in which process `pid`, this one, makes others; None where it cannot.

    Its processes move to a group of their own where the kernel asks for that, and what killed lopens left there is ended.
    """
    folder, _ = examined()
    if folder is None:
        return None
    end_left_groups(folder)
    own = folder / f"lopen-{pid}-{start_time(pid)}-own"
    try:
        if not CONTROLLERS.issubset((folder / "cgroup.subtree_control").read_text("ascii").split()):
            own.mkdir()
            for _ in range(_ROUNDS):  # a command that runs may start more meanwhile
                _take(own, sorted(members(folder)))
            (folder / "cgroup.subtree_control").write_text(
                " ".join(f"+{name}" for name in sorted(CONTROLLERS))
            )
    except OSError:
        _take(folder, sorted(members(own)))
        _remove(own)
        return None
    return folder


def end_left_groups(folder: Path) -> None:
    """End the commands whose lopen was killed, and remove their groups."""
    for name in os.listdir(folder):
        found = _NAME.fullmatch(name)
        if found and not lives(int(found["pid"]), int(found["started"])):
            if found["of"] != "own":  # in that a run may live on that lopen started in the background
                _kill(folder / name)
            _remove(folder / name)


def members(folder: Path) -> set[int]:
    """Return the processes of a group; none where there is no group."""
    try:
        return {int(pid) for pid in (folder / "cgroup.procs").read_text("ascii").split()}
    except OSError:
        return set()


class ControlGroup:
    """The control group of one command. It is made, where it can be, when processes are taken into it."""

    def __init__(self, limits: CommandLimits) -> None:
        self._limits = limits
        self._tried = False
        self.folder: Path | None = None

    def take(self, pids: Sequence[int]) -> None:
        """Take processes into the group; what they start is there too. The first must be this process's child."""
        if not self._tried:
            self._tried = True
            with _MAKING:
                top = home(os.getpid())
            self.folder = None if top is None else make_group(top, limit_files(self._limits))
        if self.folder is not None:
            there = members(self.folder)
            _take(self.folder, [pid for pid in pids if pid not in there])

    def end(self) -> None:
        """Kill every process of the group, whatever session it is in."""
        if self.folder is not None:
            _kill(self.folder)

    def remove(self) -> KilledBy:
        """Remove the group, whose processes have ended; return "memory" if the kernel ended them for that."""
        if self.folder is None:
            return ""
        events = ""
        with contextlib.suppress(OSError):
            events = (self.folder / "memory.events").read_text("ascii")
        _remove(self.folder)
        return "memory" if ran_out_of_memory(events) else ""


def make_group(top: Path, files: dict[str, str]) -> Path | None:
    """Make a group in `top` with these limits; None where that fails. A machine may lack the file for swap."""
    folder = top / f"lopen-{os.getpid()}-{start_time(os.getpid())}-{next(_numbers)}"
    try:
        folder.mkdir()
        for name, value in files.items():
            if name != "memory.swap.max" or (folder / name).exists():
                (folder / name).write_text(value)
    except OSError:
        _remove(folder)
        return None
    return folder


def _take(folder: Path, pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it ended
            (folder / "cgroup.procs").write_text(str(pid))


def _kill(folder: Path) -> None:
    with contextlib.suppress(OSError):  # Linux 5.14; on an older one the caller ends what it finds
        (folder / "cgroup.kill").write_text("1")


def _remove(folder: Path) -> None:
    """Remove an empty group; one whose processes are still dying stays for the next lopen."""
    ends = time.monotonic() + _REMOVE_S
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > ends:
                return
            time.sleep(_ROUND_S)
        else:
            return
