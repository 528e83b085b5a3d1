"""Files of the work tree that would add a secret to the history: found before a byte of them is stored.

A snapshot that holds one is written to a quarantine beside the private folder, never to the repository's objects,
so that a refused commit leaves nothing of it behind.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.secrets import added

LARGEST = 16 * 1024 * 1024
_LOOKED_OVER = (
    1024 * 1024
)  # of a longer file only known values are looked for: what looks random in data is data

Values = Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Leak:
    """One place of a secret that the last commit does not hold. `kind` says what it looks like."""

    path: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Screen:
    """Looks over files, each once for as long as it stays the same. `known` are the values known as secrets."""

    def __init__(self, root: Path, known: Values = tuple) -> None:
        self._root = root
        self._known = known
        self._clean: dict[str, tuple[object, ...]] = {}  # path → what it was when nothing was found

    def leaks(self, paths: Iterable[str], before: Callable[[str], bytes | None]) -> tuple[Leak, ...]:
        """Every secret that `paths` would add. `before` is what the last commit has at a path."""
        known = tuple(self._known())
        return tuple(leak for path in paths for leak in self._in(path, before, known))

    def _in(
        self, path: str, before: Callable[[str], bytes | None], known: tuple[str, ...]
    ) -> tuple[Leak, ...]:
        place = self._root / path
        signature = _signature(place)
        state = (signature, known)
        if not signature or self._clean.get(path) == state:
            return ()
        content = _content(place)
        found = _places(b"", content, known)
        if found:
            found = _places(before(path) or b"", content, known)
        if not found:
            self._clean[path] = state
        return tuple(Leak(path, line, kind) for line, kind in found)


def _places(before: bytes, after: bytes, known: tuple[str, ...]) -> list[tuple[int, str]]:
    if len(after) <= _LOOKED_OVER and b"\0" not in after:
        return added(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"), known)
    raw = [value.encode("utf-8", "replace") for value in known]
    return [
        (after.count(b"\n", 0, after.find(value)) + 1, "known")
        for value in raw
        if value in after and value not in before
    ]


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.lstat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _content(path: Path) -> bytes:
    """What git would store of a file or a link; nothing of what is neither, or beyond bounds."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(path.readlink())
        return path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST else b""
    except OSError:
        return b""
