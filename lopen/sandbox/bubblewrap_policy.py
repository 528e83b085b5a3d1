"""What one command under bubblewrap sees, and the arguments of bwrap(1) that show it.

Of the machine it sees the parts that programs need; everything else of the file system does not exist for it. Small files
are copied and folders are mounted, because each mount costs a sixth of a millisecond.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lopen.core.redaction import find_secrets
from lopen.sandbox.ancestry import SESSION_MARKER
from lopen.sandbox.command import CACHES_INSIDE

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_PROCESSORS = ("online", "possible", "present")  # for programs that start one worker for each processor
_FILES = (
    "alpine-release", "bash.bashrc", "debian_version", "gai.conf", "gitconfig", "group", "host.conf", "hosts",
    "inputrc", "ld.so.cache", "ld.so.conf", "locale.alias", "localtime", "lsb-release", "magic", "mime.types", "mtab",
    "networks", "npmrc", "nsswitch.conf", "os-release", "passwd", "pip.conf", "pki/tls/cert.pem",
    "pki/tls/openssl.cnf", "profile", "protocols", "redhat-release", "services", "shells", "ssl/cert.pem",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_FOLDERS = (
    "ImageMagick-*", "R", "alternatives", "crypto-policies", "fonts", "java", "java-*", "maven", "php", "pki/ca-trust",
    "pki/java", "pki/tls/certs", "ssl/certs", "static", "texmf",
)  # fmt: skip
_MAX_FILE = 1_000_000
_LIBRARIES = "/etc/ld.so.conf.d"


@dataclass(frozen=True, slots=True)
class SystemView:
    """Paths of the machine that are shown, read-only. `links` are (target, name)."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def system_view() -> SystemView:
    """Return the view of this machine."""
    found = [name for name in _SYSTEM if os.path.isdir(name)]
    etc = Path("/etc")
    found += [str(path) for pattern in _FOLDERS for path in sorted(etc.glob(pattern)) if path.is_dir()]
    named = [*(f"/etc/{name}" for name in _FILES), *(f"/sys/devices/system/cpu/{n}" for n in _PROCESSORS)]
    files = [name for name in named if os.path.lexists(name)]
    links = [(os.readlink(name), name) for name in (*found, *files) if _stays_link(name)]
    linked = {name for _, name in links}
    return SystemView(
        tuple(name for name in found if name not in linked),
        tuple(name for name in files if name not in linked and _can_be_copied(name)),
        tuple(links),
    )


def library_folders() -> Iterator[Path]:
    """Yield the folders outside of `/usr` in which the dynamic linker looks for libraries (ld.so(8))."""
    for path in sorted(Path(_LIBRARIES).glob("*.conf")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            for line in path.read_text("utf-8").splitlines():
                if line.startswith("/") and not line.startswith(("/usr/", "/lib")):
                    yield Path(line.strip())


def _stays_link(name: str) -> bool:
    """Return True for a link whose target a command sees too."""
    if not os.path.islink(name):
        return False
    return os.path.realpath(name).startswith(("/usr/", "/nix/store/", "/gnu/store/", "/proc/"))


def _can_be_copied(name: str) -> bool:
    """Return True for a readable file without secrets of a size to be copied before every command."""
    try:
        if not os.path.isfile(name) or os.stat(name).st_size > _MAX_FILE:
            return False
        with open(name, encoding="utf-8", errors="replace") as file:
            return name.endswith(".cache") or not find_secrets(file.read())
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class BubblewrapPolicy:
    """The file system that one command sees. All paths are absolute with links resolved; the protected ones are
    real files and folders, because bwrap cannot mount over a link.
    """

    root: Path
    at: Path  # the place at which the root is shown
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

    def place(self, path: Path) -> Path:
        """Return where the sandbox shows a path."""
        inside = path == self.root or self.root in path.parents
        return self.at / path.relative_to(self.root) if inside else path


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
    # /tmp, /dev/shm and one node_modules' caches hold as much as a command may use of memory; nothing else outside the
    # project is written.
    for folder, share in (("/tmp", 0.7), ("/dev/shm", 0.2)):  # noqa: S108
        argv += ["--perms", "1777", *_tmpfs(policy, folder, share)]
    argv += ["--remount-ro", "/dev", "--symlink", "../tmp", "/var/tmp"]  # noqa: S108 - the command's own
    argv += [] if policy.room else ["--symlink", policy.session or "1", SESSION_MARKER]
    argv += ["--symlink", "../run", "/var/run"]
    argv += _each("--ro-bind", policy.shown)
    if policy.network:
        argv += ["--ro-bind-try", os.path.realpath("/etc/resolv.conf"), "/etc/resolv.conf"]
    for option, source, place in policy.room:
        argv += [option, str(source), str(place)]
        argv += _caches_inside(policy, source, place) if option == "--ro-bind" else []
    if not policy.room:
        argv += ["--bind" if policy.writable else "--ro-bind", str(policy.root), str(policy.at)]
    if policy.writable and not policy.room:
        for path in policy.pinned:
            argv += ["--bind", str(path), str(policy.place(path))]
        for path in policy.protected:
            place = policy.place(path)
            argv += ["--ro-bind", str(path), str(place), *_caches_inside(policy, path, place)]
        for path in policy.placeholders:
            argv += ["--tmpfs", str(policy.place(path)), "--remount-ro", str(policy.place(path))]
    for path in policy.masked_folders:
        argv += ["--tmpfs", str(policy.place(path)), "--remount-ro", str(policy.place(path))]
    for file in policy.masked_files:
        argv += ["--ro-bind", "/dev/null", str(policy.place(file))]
    for path in policy.caches:
        argv += ["--bind", str(path), str(policy.place(path))]
    for source, shown in policy.installed:
        place = policy.place(shown)
        argv += ["--ro-bind", str(source), str(place)]
        argv += _caches_inside(policy, source, place)
    return [*argv, "--remount-ro", "/", "--chdir", str(policy.place(policy.cwd))]


def _caches_inside(policy: BubblewrapPolicy, source: Path, place: Path) -> Iterator[str]:
    """Yield the options for folders in which tools may keep a cache until the command ends: those that are empty.

    What verify-setup put into one (a browser, a database server) stays visible, and read-only.
    """
    for name in CACHES_INSIDE.get(source.name, ()):
        if (
            os.path.isdir(source / name)
            and not os.path.islink(source / name)
            and not os.listdir(source / name)
        ):
            yield from _tmpfs(policy, str(place / name), 0.1 / len(CACHES_INSIDE[source.name]))


def _tmpfs(policy: BubblewrapPolicy, place: str, share: float) -> list[str]:
    """Return the options for an empty folder that holds at most a `share` of the command's memory."""
    size = ["--size", str(int(policy.memory_mb * 1_000_000 * share))] if policy.recent else []
    return [*size, "--tmpfs", place]


def _each(option: str, paths: Iterable[Path | str]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]
