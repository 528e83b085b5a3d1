"""Moving a database out of the way: never deleted, so that a person can look at it (contract §1, `corrupted/`)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path


def set_aside(path: Path, state: Path) -> Path:
    """Move a file of lopen's to `corrupted/` in `state`, a database with what belongs to it; where it lies now."""
    folder = state / "corrupted"
    folder.mkdir(exist_ok=True)
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    kept = folder / f"{stamp}-{path.name}"
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(folder / f"{stamp}-{path.name}{suffix}")
    return kept
