"""The standard streams of a command: characters that the encoding lacks are escaped, a closed stream is discarded."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


def prepare_streams() -> None:
    """Have Python's standard streams escape characters that their encoding lacks.

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
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def discard(stream: TextIO) -> None:
    """Discard what is still to be written, so that the interpreter does not fail at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
