"""What a checkout writes: restoring files from a tree, and attributes by which a file differs from its blob."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from lopen.git import trees
from lopen.git.errors import GitError
from lopen.git.private import PrivateFolder
from lopen.store.temporary import TemporaryFolder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def restore(private: PrivateFolder, tree: str, paths: Iterable[str]) -> None:
    """Restore `paths` from `tree`, deleting those that it does not contain.

    Raises:
        GitError: a path is not inside the work tree (absolute, `..`, `.git`), or is not writable.
    """
    wanted = sorted({_require_work_tree_path(path) for path in paths})
    if not wanted:
        return
    known = trees.entries(private.reader(), private.layout, tree)
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
    """Delete a file or link below `root`, and the folders that become empty; a missing file is not an error."""
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
            return  # missing, or behind a link: the work tree has no such file
        except OSError as error:
            raise GitError(f"cannot delete {path}: {error.strerror}") from error
        with contextlib.suppress(OSError):  # stop at the first folder that is not empty
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


def _require_work_tree_path(path: str) -> str:
    if not trees.is_work_tree_path(path):
        raise GitError(f"{path!r} is not a path in the work tree")
    return path


def checked_out(private: PrivateFolder, tree: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes that a checkout of the tree gives these files where git has no settings but the tree's own.

    Filters do not run.
    """
    wanted = list(paths)
    if not wanted:
        return {}
    folder = TemporaryFolder()
    try:
        plain = {"core.autocrlf": "false", "core.eol": "lf", "core.attributesFile": os.devnull}
        git = private.reader(private.indexes / "index.attributes")
        git = git.with_options({"GIT_WORK_TREE": str(folder.path)}, config=plain)
        git.run("read-tree", "--reset", tree)
        listed = b"".join(os.fsencode(path) + b"\0" for path in wanted)
        git.run("checkout-index", "-f", "-q", "-z", "--stdin", stdin=listed, accept=(0, 128))
        places = {path: folder.path / path for path in wanted}
        return {path: p.read_bytes() for path, p in places.items() if p.is_file() and not p.is_symlink()}
    finally:
        folder.remove()


_ATTRIBUTES = ("working-tree-encoding", "ident", "filter", "eol", "text")
_OFF = frozenset({"unspecified", "unset"})


def conversions(private: PrivateFolder, tree: str, paths: Iterable[str]) -> Mapping[tuple[str, str], str]:
    """Return (path, attribute) → value where an attribute of the tree lets a checkout write other bytes than the blob's.

    An `ident` counts whether or not the file has a `$Id$`, a `filter` whether or not one is configured here, `eol` only
    as `crlf` of a file that is not `-text`.
    """
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    if not listed:
        return {}
    git = private.reader(private.indexes / "index.attributes").with_options({"GIT_LITERAL_PATHSPECS": "0"})
    git.run("read-tree", "--reset", tree)
    fields = git.run("check-attr", "--cached", "-z", "--stdin", *_ATTRIBUTES, stdin=listed).fields()
    found = {
        (path, name): value for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    }
    binary = {path for (path, name), value in found.items() if name == "text" and value == "unset"}
    return {
        (path, name): value
        for (path, name), value in found.items()
        if value not in _OFF
        and name != "text"
        and (name != "eol" or (value == "crlf" and path not in binary))
    }
