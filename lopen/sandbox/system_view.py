"""The parts of the machine that programs need: what a command under bubblewrap sees besides the project and tools.

Everything else of the file system does not exist for it. Small files are copied and folders are mounted, because each
mount costs a sixth of a millisecond.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lopen.base.redaction import find_secrets

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
