"""What there is to tell about a line of a specification, before it is known which file it came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A problem or a warning; `line` counts from 1."""

    line: int
    message: str
