"""Small files of a git folder, read and replaced whole."""

from __future__ import annotations

from pathlib import Path

from lopen.base.atomic_files import replace_file


def content(path: Path) -> bytes:
    """A file's bytes; empty where there is none."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def write_if_different(path: Path, wanted: bytes) -> None:
    """Replace a file whole, and only where needed; a link in its place is replaced, never followed."""
    if not path.is_symlink() and content(path) == wanted and path.is_file():
        return
    replace_file(path, wanted, durable=False)
