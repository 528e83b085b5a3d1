"""`.lopen/`: lopen's folder in a project, and what keeps its state out of git (contract §1)."""

from __future__ import annotations

from pathlib import Path

from lopen.errors import LopenError
from lopen.storage.files import write_whole

DATABASE = "state.db"
IGNORED = "# written by lopen: everything but this file and the configuration stays out of git\n*\n!.gitignore\n!config.toml\n"


def state_folder(root: Path) -> Path:
    """`.lopen/`, made with its `.gitignore` where it is new; a link in its place is refused.

    A `.gitignore` that is missing beside a database was taken away by a switch of branches. It is not written
    anew then: an untracked file would stand in the way of switching back, and of merging.
    """
    folder = root / ".lopen"
    if folder.is_symlink():
        raise LopenError(
            f"{folder} is a link", hint="remove it: lopen keeps its state in a folder of the project"
        )
    if not (folder / DATABASE).exists():
        ignore_state(root)
    return folder


def ignore_state(root: Path) -> None:
    """Write `.lopen/.gitignore` where there is none."""
    ignore = root / ".lopen" / ".gitignore"
    if not ignore.exists():
        write_whole(ignore, IGNORED)
