"""Files of the work tree that would add a secret to the history: found before a byte of them is stored.

A snapshot that holds one is written to a quarantine beside the private folder, never to the repository's objects,
so that a refused commit leaves nothing of it behind.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lopen.base.redaction import added, redact, spelt_in_bytes
from lopen.base.stat_cache import signature_at

_BLOCK = 1024 * 1024
_LOOKED_OVER = (
    1024 * 1024
)  # of a longer file only known values are looked for: what looks random in data is data

Values = Callable[[], Sequence[str]]
Before = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Leak:
    """One place of a secret that the last commit does not hold. `kind` says what it looks like.

    `line` 0 is the path itself, which is shown without it.
    """

    path: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else f"the name of {self.path}"


class Screen:
    """Looks over files, each once for as long as it stays the same. `known` are the values known as secrets."""

    def __init__(self, root: Path, known: Values = tuple) -> None:
        self._root = root
        self._known = known
        self._clean: dict[str, tuple[object, ...]] = {}  # path → what it was when nothing was found

    def leaks(self, paths: Iterable[str], before: Before) -> tuple[Leak, ...]:
        """Every secret that `paths` would add. `before` is what the last commit has at a path."""
        known = tuple(self._known())
        return tuple(leak for path in paths for leak in self._in(path, before, known))

    def stored(
        self, blobs: Iterable[tuple[str, str]], form: str, read: Callable[[str], bytes], before: Before
    ) -> tuple[Leak, ...]:
        """Every secret in what git stored: (path, blob id) pairs, `form` being "sha1" or "sha256".

        A filter, a hook or another process may have made it something else than what was looked over.
        """
        known = tuple(self._known())
        pairs = list(blobs)
        found = list(self.leaks([path for path, _ in pairs], before))
        for path, blob in pairs:
            if _blob_id(self._root / path, form) != blob:
                content = read(blob)
                if _places(io.BytesIO(content), b"", known):
                    old = before(path) or b""
                    found += [Leak(path, *place) for place in _places(io.BytesIO(content), old, known)]
        return tuple(found)

    def _in(self, path: str, before: Before, known: tuple[str, ...]) -> tuple[Leak, ...]:
        place = self._root / path
        signature = signature_at(place)
        state = (signature, known)
        if not signature or self._clean.get(path) == state:
            return ()
        named = added("", path, known)
        try:
            found = self._places(place, b"", known)
            old = before(path) if found or named else None
            if found and old:
                found = self._places(place, old, known)
        except OSError as error:
            return (Leak(redact(path, known), 1, f"cannot be looked into: {error.strerror or error}"),)
        if named and old is None:
            return (Leak(redact(path, known), 0, named[0][1]),)
        if not found:
            self._clean[path] = state
        return tuple(Leak(path, line, kind) for line, kind in found)

    @staticmethod
    def _places(path: Path, before: bytes, known: tuple[str, ...]) -> list[tuple[int, str]]:
        file = _opened(path)
        if file is None:
            return []
        with file:
            return _places(file, before, known)


def _places(file: BinaryIO, before: bytes, known: tuple[str, ...]) -> list[tuple[int, str]]:
    """(line, kind) of every secret in a file that `before` did not hold."""
    text = _in_text(before, file.read(_LOOKED_OVER + 1), known)
    file.seek(0)
    values = _search(file, spelt_in_bytes(known))
    places = {(line, "known") for value, line in values.items() if value not in before}
    return sorted({*text, *places})


def _blob_id(path: Path, form: str) -> str:
    """The id that the file or link as it lies there would have, empty where there is none."""
    try:
        file = _opened(path)
        if file is None:
            return ""
        with file:
            digest = hashlib.new(form, b"blob %d\0" % file.seek(0, os.SEEK_END), usedforsecurity=False)
            file.seek(0)
            while block := file.read(_BLOCK):
                digest.update(block)
            return digest.hexdigest()
    except OSError:
        return ""


def _in_text(before: bytes, after: bytes, known: tuple[str, ...]) -> list[tuple[int, str]]:
    """By value and by looks, in a text of bearable length; bytes that are none hold nothing by looks."""
    if len(after) > _LOOKED_OVER:
        return []
    text = _text(after)
    return [] if text is None else added(_text(before) or "", text, known)


def _text(raw: bytes) -> str | None:
    """The text that the bytes are: UTF-8, or UTF-16 that says so; None where they are none."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    return None if b"\0" in raw else raw.decode("utf-8", "replace")


def _search(file: BinaryIO, wanted: Sequence[bytes]) -> dict[bytes, int]:
    """Which of `wanted` stand in a file, and in which line first; a block at a time, however long it is."""
    found: dict[bytes, int] = {}
    overlap = max(map(len, wanted), default=1) - 1
    window, line = b"", 1
    while block := file.read(_BLOCK):
        kept = window[-overlap:] if overlap else b""
        line += window.count(b"\n", 0, len(window) - len(kept))
        window = kept + block
        for value in wanted:
            if value not in found and (at := window.find(value)) >= 0:
                found[value] = line + window.count(b"\n", 0, at)
    return found


def _opened(path: Path) -> BinaryIO | None:
    """What git would store of a file or a link; None of what is neither, or gone. OSError where it cannot be read."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return io.BytesIO(os.fsencode(path.readlink()))
        if not stat.S_ISREG(mode):
            return None
        return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except (FileNotFoundError, NotADirectoryError):
        return None
