"""Numbers by which a change of a file is seen without reading it."""

from __future__ import annotations

import os
from pathlib import Path

Signature = tuple[int, ...]


def signature(found: os.stat_result) -> Signature:
    """Return numbers that change whenever the file does, or another one takes its place."""
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def signature_at(path: str | Path) -> Signature:
    """Return the signature of the file or link at `path`; () where there is none."""
    try:
        return signature(os.lstat(path))
    except OSError:
        return ()
