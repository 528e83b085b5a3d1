"""Find secrets in the lines that a commit would add.

A tree with a secret stays in lopen's clone: only commits are fetched into the person's repository.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lopen.core.redaction import added, redact, spelt_in_bytes
from lopen.git.trees import Objects

_LOOKED_OVER = (
    1024 * 1024
)  # of a longer file only known values are looked for: what looks random in data is data
_LONGEST = 64 * 1024 * 1024

KnownValues = Callable[[], Sequence[str]]


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


def find_leaks(objects: Objects, before: str, after: str, known: Sequence[str]) -> tuple[Leak, ...]:
    """Return every secret that the tree (or commit) `after` adds to `before`, in the files as git stores them."""
    changed = [c for c in objects.changes(before, after) if c.entry_after and not c.entry_after.is_submodule]
    sizes = objects.blob_sizes([c.after for c in changed if c.after])
    looked = [c.after for c in changed if c.after and sizes.get(c.after, 0) <= _LONGEST]
    contents = objects.blob_contents(looked)
    suspects = {c.after for c in changed if list(_places(b"", contents.get(c.after or "", b""), known))}
    old = objects.blob_contents([c.before for c in changed if c.after in suspects and c.before])
    found = []
    for change in changed:
        if change.before is None and (named := added("", change.path, known)):
            found.append(Leak(redact(change.path, known), 0, named[0][1]))
        elif change.after in suspects:
            places = _places(old.get(change.before or "", b""), contents[change.after or ""], known)
            found += [Leak(change.path, line, kind) for line, kind in sorted(set(places))]
    return tuple(found)


def _places(before: bytes, after: bytes, known: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, kind) of every secret in a file that `before` does not contain."""
    text = _text(after) if len(after) <= _LOOKED_OVER else None
    if text is not None:  # binary data has no secret formats
        yield from added(_text(before) or "", text, known)
    for value in spelt_in_bytes(known):
        if (at := after.find(value)) >= 0 and value not in before:
            yield after.count(b"\n", 0, at) + 1, "known"


def _text(raw: bytes) -> str | None:
    """Decode UTF-8, or UTF-16 with a byte order mark; None for binary data."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    return None if b"\0" in raw else raw.decode("utf-8", "replace")
