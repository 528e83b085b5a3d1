"""What one command under bubblewrap sees, and the arguments of bwrap(1) that show it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.sandbox.ancestry import SESSION_MARKER
from lopen.sandbox.system_view import SystemView


@dataclass(frozen=True, slots=True)
class BubblewrapPolicy:
    """The file system that one command sees. All paths are absolute with links resolved; the protected ones are
    real files and folders, because bwrap cannot mount over a link.
    """

    root: Path
    cwd: Path
    caches: tuple[Path, ...]  # writable folders below `.lopen/cache`: HOME, and those of this command only
    writable: bool
    network: bool
    session: str
    system: SystemView
    shown: tuple[Path, ...]  # the other read-only paths: tools, a work tree's repository
    masked_files: tuple[Path, ...]
    masked_folders: tuple[Path, ...]
    protected: tuple[Path, ...]  # existing paths in the project
    placeholders: tuple[Path, ...]  # protected paths in the project that do not exist yet
    pinned: tuple[Path, ...]  # folders of a protected file: a command can write into them but not move them
    room: tuple[tuple[str, Path, Path], ...] = ()  # mounts (option, source, place) instead of the project
    installed: tuple[tuple[Path, Path], ...] = ()  # (source, place), read-only
    memory_mb: int = 4_096
    recent: bool = True  # bubblewrap 0.8 or newer


def bwrap_argv(policy: BubblewrapPolicy, files: Sequence[str] = ()) -> list[str]:
    """Return bwrap's arguments without the program and the command. Later mounts cover earlier ones.

    `files` are the options that name descriptors. `--new-session` is not needed: bwrap starts in a new session without
    a terminal. As one process group, all of its processes can be stopped at once.
    """
    argv = [
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--cap-drop", "ALL", "--hostname", "localhost",
    ]  # fmt: skip
    if policy.recent:
        argv.append("--disable-userns")
    if not policy.network:
        argv.append("--unshare-net")
    argv += _each("--ro-bind", policy.system.folders)
    for target, name in policy.system.links:
        argv += ["--symlink", target, name]
    argv += files
    # Root may write its own files without any capability, so only the mount can close /proc/sys.
    argv += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    # /tmp and /dev/shm together hold as much as a command may use of memory; nothing else outside the project is written.
    for folder, share in (("/tmp", 0.75), ("/dev/shm", 0.25)):  # noqa: S108
        size = ["--size", str(int(policy.memory_mb * 1_000_000 * share))] if policy.recent else []
        argv += ["--perms", "1777", *size, "--tmpfs", folder]
    argv += ["--remount-ro", "/dev", "--symlink", "../tmp", "/var/tmp"]  # noqa: S108 - the command's own
    argv += [] if policy.room else ["--symlink", policy.session or "1", SESSION_MARKER]
    argv += ["--symlink", "../run", "/var/run"]
    argv += _each("--ro-bind", policy.shown)
    if policy.network:
        argv += ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"]
    for option, source, place in policy.room:
        argv += [option, str(source), str(place)]
    if not policy.room:
        argv += _each("--bind" if policy.writable else "--ro-bind", [policy.root])
    if policy.writable and not policy.room:
        argv += _each("--bind", policy.pinned)
        argv += _each("--ro-bind", policy.protected)
        for path in policy.placeholders:
            argv += ["--tmpfs", str(path), "--remount-ro", str(path)]
    for path in policy.masked_folders:
        argv += ["--tmpfs", str(path), "--remount-ro", str(path)]
    for file in policy.masked_files:
        argv += ["--ro-bind", "/dev/null", str(file)]
    argv += _each("--bind", policy.caches)
    for source, place in policy.installed:
        argv += ["--ro-bind", str(source), str(place)]
    return [*argv, "--remount-ro", "/", "--chdir", str(policy.cwd)]


def _each(option: str, paths: Iterable[Path | str]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]
