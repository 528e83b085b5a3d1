"""What views that only write lines have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO


class LineWriter:
    """Writes whole lines to a stream, secrets taken out, each flushed so that a reader sees it at once."""

    def __init__(self, out: TextIO, redact: Callable[[str], str]) -> None:
        self._out = out
        self._redact = redact

    def write(self, line: str) -> None:
        """One line."""
        self._out.write(self._redact(line) + "\n")
        self._out.flush()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Nothing to give back: a line is out when it is written."""
        yield

    def close(self) -> None:
        """Nothing to give back either."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
