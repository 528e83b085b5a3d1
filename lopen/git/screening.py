"""Find secrets in changed files before they are committed.

A snapshot with a secret stays in lopen's clone: only commits are fetched into the person's repository.
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

from lopen.core.redaction import added, redact, spelt_in_bytes
from lopen.core.stat_cache import signature_at

_BLOCK = 1024 * 1024
_LOOKED_OVER = (
    1024 * 1024
)  # of a longer file only known values are looked for: what looks random in data is data

KnownValues = Callable[[], Sequence[str]]
Before = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Leak:
    """One place of a secret that is not in the last commit. `kind` is the kind of secret.

    `line` 0 means that the path itself contains the secret, which `path` then hides.
    """

    path: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else f"the name of {self.path}"


class SecretScreen:
    """Searches files for secrets, each once while it is unchanged. `known` returns the known secret values."""

    def __init__(self, root: Path, known: KnownValues = tuple) -> None:
        self._root = root
        self._known = known
        self._clean: dict[str, tuple[object, ...]] = {}  # path → what it was when nothing was found

    def leaks(self, paths: Iterable[str], before: Before) -> tuple[Leak, ...]:
        """Return every secret that `paths` would add. `before` returns the last commit's content of a path."""
        known = tuple(self._known())
        return tuple(leak for path in paths for leak in self._in(path, before, known))

    def stored(
        self, blobs: Iterable[tuple[str, str]], form: str, read: Callable[[str], bytes], before: Before
    ) -> tuple[Leak, ...]:
        """Return every secret in stored (path, blob id) pairs; `form` is "sha1" or "sha256".

        A filter, a hook or another process may have stored other content than that of the files.
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
            return (Leak(redact(path, known), 1, f"cannot be read: {error.strerror or error}"),)
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
    """Return (line, kind) of every secret in a file that `before` does not contain."""
    text = _in_text(before, file.read(_LOOKED_OVER + 1), known)
    file.seek(0)
    values = _search(file, spelt_in_bytes(known))
    places = {(line, "known") for value, line in values.items() if value not in before}
    return sorted({*text, *places})


def _blob_id(path: Path, form: str) -> str:
    """Return the blob id of the file's or link's current content; empty if it is not readable."""
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
    """Find known values and secret formats in a text of limited length; binary data has no secret formats."""
    if len(after) > _LOOKED_OVER:
        return []
    text = _text(after)
    return [] if text is None else added(_text(before) or "", text, known)


def _text(raw: bytes) -> str | None:
    """Decode UTF-8, or UTF-16 with a byte order mark; None for binary data."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    return None if b"\0" in raw else raw.decode("utf-8", "replace")


def _search(file: BinaryIO, wanted: Sequence[bytes]) -> dict[bytes, int]:
    """Find the first line of each of `wanted` in a file, reading one block at a time."""
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
    """Open the content that git would store for a file or a link; None for anything else, or if it is missing.

    Raises:
        OSError: the file is not readable.
    """
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return io.BytesIO(os.fsencode(path.readlink()))
        if not stat.S_ISREG(mode):
            return None
        return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except (FileNotFoundError, NotADirectoryError):
        return None
