"""Putting files of the work tree back as a tree has them. HEAD and the user's index stay as they are.

Nothing is written or deleted through a symbolic link: git replaces a link that stands where a folder has to be,
and deletions walk down folder by folder without following any.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from lopen.git import trees
from lopen.git.errors import GitError
from lopen.git.private import PrivateFolder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def restore(private: PrivateFolder, tree: str, paths: Iterable[str]) -> None:
    """Make `paths` what they are in `tree`; those that are not in it are deleted.

    Raises:
        GitError: a path is not one of the work tree's own (absolute, `..`, `.git`), or could not be written.
    """
    wanted = sorted({_checked(path) for path in paths})
    if not wanted:
        return
    known = trees.entries(private.reader(), tree)
    for path in wanted:
        if path not in known:
            remove_file(private.layout.root, path)
    present = [path for path in wanted if path in known and not known[path].is_submodule]
    if present:
        git = private.reader(private.indexes / "index.restore")
        git.run("read-tree", "--reset", tree)
        listed = b"".join(os.fsencode(path) + b"\0" for path in present)
        git.run("checkout-index", "-f", "-z", "--stdin", stdin=listed)


def remove_file(root: Path, path: str) -> None:
    """Delete one file or link below `root` and the folders that it leaves empty; what is missing is no error."""
    *folders, name = PurePosixPath(path).parts
    with contextlib.ExitStack() as opened:
        descriptors = [_opened(opened, root)]
        try:
            for folder in folders:
                descriptors.append(_opened(opened, folder, descriptors[-1]))
            if stat.S_ISDIR(os.stat(name, dir_fd=descriptors[-1], follow_symlinks=False).st_mode):
                return
            os.unlink(name, dir_fd=descriptors[-1])
        except (FileNotFoundError, NotADirectoryError):
            return  # gone, or a link stands in the way: the work tree has no such file
        except OSError as error:
            raise GitError(f"{path} cannot be deleted: {error.strerror}") from error
        with contextlib.suppress(OSError):  # the first folder that is not empty ends it
            for folder, parent in zip(reversed(folders), reversed(descriptors[:-1]), strict=True):
                os.rmdir(folder, dir_fd=parent)


def _opened(stack: contextlib.ExitStack, name: Path | str, parent: int | None = None) -> int:
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:  # the name is a link
            raise NotADirectoryError(name) from error
        raise
    stack.callback(os.close, descriptor)
    return descriptor


def _checked(path: str) -> str:
    if not trees.is_own_path(path):
        raise GitError(f"{path!r} is no path of the work tree")
    return path
