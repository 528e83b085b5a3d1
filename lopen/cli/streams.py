"""The standard streams: there also where they were closed, and their failures told apart from every other file's."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from lopen.base.errors import LopenError


class CannotSay(LopenError):
    """A standard stream takes no more: its disk is full, or what it leads to fails. A reader that left is not meant."""

    def __init__(self, stream: TextIO, error: OSError) -> None:
        name = "standard error" if stream is sys.stderr else "standard output"
        super().__init__(
            f"what lopen says could not be written to {name}: {error.strerror}",
            hint="free some space there, or send it elsewhere",
        )
        self.stream = stream


class _Stream(io.TextIOWrapper):
    """A standard stream that names its own failures: an `OSError` alone does not tell which file it was."""

    def write(self, text: str, /) -> int:
        with _named(self):
            return super().write(text)

    def flush(self) -> None:
        with _named(self):
            super().flush()


@contextmanager
def _named(stream: _Stream) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotSay(stream, error) from error


def prepare_streams() -> None:
    """Put these in the place of Python's own; a terminal that knows no ✓ does not end a run.

    Python has none for a descriptor that was closed (`>&-`): what would be written there is nobody's to read. What a
    program that runs lopen inside itself has put there stays: it may be a file of its own.
    """
    # The names with underscores too: a terminal's width is asked of `sys.__stdout__`.
    if sys.stdout is sys.__stdout__:
        sys.stdout = sys.__stdout__ = _prepared(sys.stdout)  # type: ignore[misc, assignment]
    if sys.stderr is sys.__stderr__:
        sys.stderr = sys.__stderr__ = _prepared(sys.stderr)  # type: ignore[misc, assignment]


def _prepared(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")
    if type(stream) is not io.TextIOWrapper:  # they are these already, or nothing is known of them
        return stream
    encoding, buffering, through = stream.encoding, stream.line_buffering, stream.write_through
    return _Stream(
        stream.detach(),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=buffering,
        write_through=through,
    )


def give_up(stream: TextIO) -> None:
    """Nobody takes what is still to be written; keep the interpreter from saying so at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
