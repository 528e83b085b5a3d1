"""Reading a specification's file: all the ways in which it can be unfit, said once."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from lopen.base.errors import LopenError

SPECS = "specs"
LARGEST = 16 * 1024 * 1024
"""Bytes a specification may have."""


class UnreadableSource(LopenError):
    """The file is missing, too large, no text, or cannot be read.

    `what` is wrong, `line` where it is; 0 where no line is to blame. The message holds the path too.
    """

    def __init__(self, path: Path, what: str, *, hint: str, line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {what}" if line else f"{path} {what}", hint=hint)
        self.what = what
        self.line = line


class NoSource(UnreadableSource):
    """There is no such file."""


def read_source(path: Path) -> str:
    """The text of a specification, a byte order mark and all line ends kept. `UnreadableSource` otherwise."""
    content = _bytes(path)
    if b"\0" in content:
        line = _line(content, content.index(b"\0"))
        raise UnreadableSource(
            path, "a NUL byte: this is no text", hint="save it as a UTF-8 text file", line=line
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = _line(content, error.start)
        raise UnreadableSource(
            path,
            f"not UTF-8 at byte {error.start} ({error.reason})",
            hint="save it as UTF-8",
            line=line,
        ) from error


def file_in_the_way(folder: Path) -> UnreadableSource:
    """What to say where `folder`, or one it lies in, is a file."""
    file = next((f for f in (folder, *folder.parents) if f.exists()), folder)
    return UnreadableSource(file, "is not a folder", hint="rename or remove it; then: lopen init MODULE")


def _require_inside(path: Path, descriptor: int) -> None:
    """Refuse `specs/<module>/SPECIFICATION.md` where links have it lead out of its project.

    What was opened is compared with what the name stands for, so that a link turned meanwhile is no way out.
    """
    if path.parent.parent.name != SPECS:
        return
    real = os.path.realpath(path)
    root = os.path.join(os.path.realpath(path.parents[2]), "")
    if not (real.startswith(root) and os.path.samestat(os.fstat(descriptor), os.lstat(real))):
        raise UnreadableSource(
            path, "leads out of the project through a link", hint="replace the link by the file itself"
        )


def _module(path: Path) -> str:
    """The module whose specification would lie at `path`, as a person types it."""
    return shlex.quote(path.parent.name)


def _line(content: bytes, offset: int) -> int:
    return len((content[:offset] + b"x").splitlines())


def _bytes(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK a named pipe in the file's place would block for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _require_inside(path, file.fileno())
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableSource(path, "is no regular file", hint="put a markdown file there")
            content = file.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise NoSource(
            path, "does not exist", hint=f"write it, or have it drafted: lopen spec {_module(path)} -p TEXT"
        ) from error
    except NotADirectoryError as error:
        raise file_in_the_way(path.parent) from error
    except IsADirectoryError as error:
        raise UnreadableSource(path, "is a folder", hint="put a markdown file there") from error
    except OSError as error:
        raise UnreadableSource(
            path, f"cannot be read: {error.strerror or error}", hint="check the file and its permissions"
        ) from error
    if len(content) > LARGEST:
        raise UnreadableSource(
            path,
            f"is larger than {LARGEST // 1024 // 1024} MB",
            hint="split the module, or move material into research files beside the specification",
        )
    return content
