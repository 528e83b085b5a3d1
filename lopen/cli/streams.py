"""The standard streams of a command: failures are named, and characters that the encoding lacks are escaped."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from lopen.core.errors import LopenError


class CannotWrite(LopenError):
    """A standard stream cannot be written, for example because its disk is full. A closed pipe is not meant."""

    def __init__(self, stream: TextIO, error: OSError) -> None:
        name = "standard error" if stream is sys.stderr else "standard output"
        super().__init__(
            f"cannot write to {name}: {error.strerror}",
            hint="free some disk space, or redirect the output",
        )
        self.stream = stream


class _Stream(io.TextIOWrapper):
    """A standard stream that raises `CannotWrite`: an `OSError` alone does not name the file.

    A terminal that was closed becomes the null device: SIGHUP follows, unless it is ignored.
    """

    is_terminal = False

    def write(self, text: str, /) -> int:
        with _writing_to(self):
            return super().write(text)

    def flush(self) -> None:
        with _writing_to(self):
            super().flush()


@contextmanager
def _writing_to(stream: _Stream) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if not (stream.is_terminal and error.errno == errno.EIO):
            raise CannotWrite(stream, error) from error
        discard(stream)


def prepare_streams() -> None:
    """Replace Python's standard streams: characters that the encoding lacks are escaped, failures are named.

    A closed descriptor (`>&-`) becomes the null device. A stream that a calling program has replaced is left alone.
    """
    # Also the names with underscores: `shutil` asks `sys.__stdout__` for the terminal's width.
    if sys.stdout is sys.__stdout__:
        sys.stdout = sys.__stdout__ = _prepared(sys.stdout)  # type: ignore[misc, assignment]
    if sys.stderr is sys.__stderr__:
        sys.stderr = sys.__stderr__ = _prepared(sys.stderr)  # type: ignore[misc, assignment]


def _prepared(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")
    if type(stream) is not io.TextIOWrapper:  # replaced already, or unknown
        return stream
    encoding, buffering, through = stream.encoding, stream.line_buffering, stream.write_through
    is_terminal = stream.isatty()
    prepared = _Stream(
        stream.detach(),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=buffering,
        write_through=through,
    )
    prepared.is_terminal = is_terminal
    return prepared


def discard(stream: TextIO) -> None:
    """Discard what is still to be written, so that the interpreter does not fail at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
