"""Objects in files of their own, unpacked in pieces, and taken only for what their hash says."""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from lopen.git.layout import Layout

LARGEST = 4 * 1024**3  # bytes of an object
_PIECE = 64 * 1024  # bytes


def holds(path: Path, name: str, object_format: str, kept: list[bytes] | None = None) -> bool:
    """Return True if a loose object's file holds exactly the object `name`, whose bytes `kept` gets, with its header.

    A few bytes can unpack to gigabytes: no more is unpacked than the header says, and never more than `LARGEST`.
    """
    digest = hashlib.new(object_format, usedforsecurity=False)
    try:
        for piece in _unpacked(path):
            digest.update(piece)
            if kept is not None:
                kept.append(piece)
    except (OSError, ValueError, zlib.error):
        return False
    return digest.hexdigest() == name


def _unpacked(path: Path) -> Iterator[bytes]:
    """Yield the pieces of a loose object; raises `ValueError` where its header does not say its size."""
    if not path.is_file():
        raise ValueError("a pipe would hold lopen")
    unpacker, left, size = zlib.decompressobj(), 0, -1
    with path.open("rb") as file:
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail or file.read(_PIECE)
            piece = unpacker.decompress(packed, _PIECE)
            if not piece and not packed:
                raise ValueError("the file ends too early")
            if size < 0 and piece:  # the first piece holds the header
                head, _, _ = piece.partition(b"\0")
                size = _size(head)
                left = len(head) + 1 + size
            left -= len(piece)
            if left < 0 or size > LARGEST:
                raise ValueError("the object is larger than it says or than lopen reads")
            yield piece
        if unpacker.unused_data or file.read(1):
            raise ValueError("git takes an object before other bytes for damaged")


def _size(head: bytes) -> int:
    said = head.partition(b" ")[2]
    if not said.isdigit() or len(said) > len(str(LARGEST)):
        raise ValueError("the header says no size")
    return int(said)


def copy_loose_object(layout: Layout, name: str, target: Path) -> bool:
    """Copy an object that has a file of its own; return False, and leave none, unless it has the hash `name`."""
    source = layout.objects / name[:2] / name[2:]
    if not source.is_file():
        return False
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, target)
    if holds(target, name, layout.object_format):
        return True
    target.unlink()
    return False


def loose_object(layout: Layout, name: str) -> tuple[str, bytes] | None:
    """Return the kind and content of an object that has a file of its own; None unless it has the hash `name`."""
    kept: list[bytes] = []
    if not holds(layout.objects / name[:2] / name[2:], name, layout.object_format, kept):
        return None
    head, _, content = b"".join(kept).partition(b"\0")
    return head.partition(b" ")[0].decode("ascii", "replace"), content


def packed_bytes(layout: Layout, names: Iterable[str]) -> int | None:
    """Return how much these objects take in files of their own; None where one of them has none."""
    try:
        return sum(os.stat(layout.objects / name[:2] / name[2:]).st_size for name in dict.fromkeys(names))
    except OSError:
        return None
