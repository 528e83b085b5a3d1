"""Small files of a git folder, read and replaced whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(wanted)
    Path(name).replace(path)
