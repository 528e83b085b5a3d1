"""A row of the table: what was measured, its target, and whether it is met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`measured` is a ratio against a floor of the same run, or a count, in `unit`; at most (or least) `target`."""

    what: str
    measured: float
    target: float
    unit: str = "x"
    at_least: bool = False
    detail: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is kept."""
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def line(self) -> str:
        """For the table."""
        sign = "≥" if self.at_least else "≤"
        word = "ok  " if self.met else "MISS"
        figures = f"{self.measured:10,.2f} {self.unit:<4} {sign} {self.target:,.2f}"
        return f"{word} {self.what:<58} {figures}  {self.detail}".rstrip()


def printed(rows: Iterable[Row]) -> bool:
    """Print the rows as they come; whether all targets are met."""
    met = True
    for row in rows:
        print(row.line(), flush=True)
        met = met and row.met
    return met
