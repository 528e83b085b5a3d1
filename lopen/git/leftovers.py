"""What a killed run left in the repository, and when it is safe to take it away: locks of git, half-written files.

git holds a lock by a file beside the one it writes, and a killed git never removes it. lopen takes such a file
away only where it would have made it itself, and only while no git process works in the repository.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.ignores import HALF_WRITTEN
from lopen.git.layout import Layout
from lopen.git.refs import HEADS

_PROC = Path("/proc")


def clear_locks(layout: Layout, branch: str) -> tuple[str, ...]:
    """Remove the locks on index, HEAD and `branch` if whoever made them is gone; the paths removed.

    To be called by whoever holds lopen's own locks on module and checkout.
    """
    candidates = (
        layout.git_dir / "index.lock",
        layout.git_dir / "HEAD.lock",
        layout.common_dir / f"{HEADS}{branch}.lock",
    )
    found = [lock for lock in candidates if lock.is_file()]
    if not found or _git_at_work((layout.root, layout.git_dir, layout.common_dir)):
        return ()
    for lock in found:
        lock.unlink(missing_ok=True)
    return tuple(map(str, found))


def clear_half_written(git: GitCommand) -> tuple[str, ...]:
    """Remove files that were to take another one's place and never did; the paths removed. `git`: the content door."""
    found = git.run("ls-files", "-z", "--others", "--ignored", "-x", HALF_WRITTEN).fields()
    for path in found:
        (git.folder / path).unlink(missing_ok=True)
    return tuple(found)


def _git_at_work(folders: tuple[Path, ...]) -> bool:
    """Whether a git process may be working in one of the folders; where that cannot be told, any git counts."""
    if not _PROC.is_dir():
        listed = subprocess.run(["/bin/ps", "-axo", "comm="], capture_output=True, text=True, check=False)
        return any(os.path.basename(name).startswith("git") for name in listed.stdout.splitlines())
    return any(_works_in(process, folders) for process in _PROC.iterdir() if process.name.isdigit())


def _works_in(process: Path, folders: tuple[Path, ...]) -> bool:
    try:
        if not (process / "comm").read_text("utf-8", "replace").startswith("git"):
            return False
        where = Path(os.readlink(process / "cwd"))
    except FileNotFoundError:  # it has ended
        return False
    except OSError:  # somebody else's, or not to be looked into
        return True
    return any(where == folder or folder in where.parents for folder in folders)
