"""Read a specification's file and describe every reason for which it cannot be read."""

from __future__ import annotations

import os
import re
import shlex
import stat
from pathlib import Path

from lopen.base.errors import LopenError

SPECS = "specs"
MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of a specification in bytes."""
MAX_HEADINGS = 50_000
_HEADING = re.compile(rb"^ {0,3}(?:#{1,6}(?=[ \t\r\n])|=+[ \t]*$)", re.MULTILINE)


class UnreadableSource(LopenError):
    """The file is missing, too large, not text, or not readable.

    `problem` describes the error in `line`, 0 if it concerns the whole file. The message contains the path too.
    """

    def __init__(self, path: Path, problem: str, *, hint: str, line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path} {problem}", hint=hint)
        self.problem = problem
        self.line = line


class MissingSource(UnreadableSource):
    """The file does not exist."""


def read_source(path: Path) -> str:
    """Return the text of a specification with its byte order mark and line ends.

    Raises:
        UnreadableSource: the file is missing, too large, not text, or not readable.
    """
    content = _bytes(path)
    if b"\0" in content:
        line = _line(content, content.index(b"\0"))
        raise UnreadableSource(
            path, "NUL byte: the file is not text", hint="save it as a UTF-8 text file", line=line
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


def file_instead_of_folder(folder: Path) -> UnreadableSource:
    """Return the error for a file in the place of `folder` or of one of its parents."""
    file = next((f for f in (folder, *folder.parents) if f.exists()), folder)
    return UnreadableSource(file, "is not a folder", hint="rename or remove it; then: lopen init MODULE")


def _require_inside(path: Path, descriptor: int) -> None:
    """Refuse `specs/<module>/SPECIFICATION.md` if links lead it out of its project.

    Compare the open file with the resolved name, so that a link that changes meanwhile is refused too.
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
    """Return the name of the module whose specification is at `path`, quoted for a shell."""
    return shlex.quote(path.parent.name)


def _line(content: bytes, offset: int) -> int:
    return len((content[:offset] + b"x").splitlines())


def _bytes(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK a named pipe in place of the file would block forever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _require_inside(path, file.fileno())
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableSource(path, "is not a regular file", hint="put a markdown file there")
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise MissingSource(
            path,
            "does not exist",
            hint=f"write it, or let lopen draft it: lopen spec {_module(path)} -p 'what it should do'",
        ) from error
    except NotADirectoryError as error:
        raise file_instead_of_folder(path.parent) from error
    except IsADirectoryError as error:
        raise UnreadableSource(path, "is a folder", hint="put a markdown file there") from error
    except OSError as error:
        raise UnreadableSource(
            path, f"is not readable: {error.strerror or error}", hint="check the file and its permissions"
        ) from error
    if len(content) > MAX_BYTES:
        raise UnreadableSource(
            path,
            f"is larger than {MAX_BYTES // 1024 // 1024} MB",
            hint="split the module, or move material into research files beside the specification",
        )
    if sum(1 for _ in _HEADING.finditer(content)) > MAX_HEADINGS:  # reading them would take minutes
        raise UnreadableSource(
            path,
            f"has more than {MAX_HEADINGS:,} headings",
            hint="split the module, or put repeated material into files beside the specification",
        )
    return content
