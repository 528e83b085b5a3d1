"""What one command sees under bubblewrap, as bwrap's arguments. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lopen.sandbox.ancestry import SESSION_MARKER


@dataclass(frozen=True, slots=True)
class Policy:
    """What one command sees. All paths are absolute, links resolved; of the protected ones only real
    files and folders (a link cannot be mounted over).
    """

    root: Path
    cwd: Path
    caches: tuple[Path, ...]  # below `.lopen/cache`, writable: HOME, and what this command alone may write to
    writable: bool
    network: bool
    session: str
    replaced: tuple[Path, ...]
    shown: tuple[Path, ...]  # in replaced folders: tools, a worktree's repository, resolv.conf
    masked_files: tuple[Path, ...]
    masked_folders: tuple[Path, ...]
    protected: tuple[Path, ...]  # in the project, existing
    placeholders: tuple[Path, ...]  # in the project, protected and not there yet
    pinned: tuple[Path, ...]  # folders that hold a protected file: they can be written to, not moved away
    memory_mb: int = 4_096
    recent: bool = True  # bubblewrap 0.8 or newer


def bwrap_argv(policy: Policy) -> list[str]:
    """bwrap's arguments, without its own name and the command. Later mounts cover earlier ones.

    No `--new-session`: bwrap is started in one, without a terminal, and a crowd in one group can be stopped
    at once.
    """
    argv = [
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--cap-drop", "ALL", "--hostname", "localhost",
    ]  # fmt: skip
    if policy.recent:
        argv.append("--disable-userns")
    if not policy.network:
        argv.append("--unshare-net")
    # Root keeps its files' permissions without any capability, so /proc/sys has to be closed by the mount.
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    size = ["--size", str(policy.memory_mb * 1_000_000)] if policy.recent else []
    for folder in policy.replaced:
        argv += ["--perms", "1777", *size, "--tmpfs", str(folder)]
    argv += _each("--ro-bind", policy.shown)
    argv += _each("--bind" if policy.writable else "--ro-bind", [policy.root])
    if policy.writable:
        argv += _each("--bind", policy.pinned)
        argv += _each("--ro-bind", policy.protected)
        for folder in policy.placeholders:
            argv += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    for folder in policy.masked_folders:
        argv += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    for file in policy.masked_files:
        argv += ["--ro-bind", "/dev/null", str(file)]
    argv += _each("--bind", policy.caches)
    if Path("/run") in policy.replaced:
        argv += ["--symlink", policy.session or "1", SESSION_MARKER, "--remount-ro", "/run"]
    return [*argv, "--chdir", str(policy.cwd)]


def _each(option: str, paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]
