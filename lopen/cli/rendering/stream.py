"""What views that only write lines have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO

from lopen.base.events import Recorded


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


# Written as escapes, which mean the same in JSON: a terminal obeys C1 controls and reorders by bidirectional
# ones, some readers break lines at U+0085, U+2028 and U+2029, and half a surrogate pair cannot be encoded.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def json_line(recorded: Recorded) -> str:
    """The event's line, safe to show anywhere."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", recorded.to_json())


class JsonView(LineWriter):
    """Every event, streaming text included, as it happens."""

    def __call__(self, recorded: Recorded) -> None:
        self.write(json_line(recorded))
