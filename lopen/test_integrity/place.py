"""The point of a walk through a test: whether a failure there fails the test, and under which condition it is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lopen.test_integrity.conditions import ALWAYS, NEVER
from lopen.test_integrity.suite import Kind

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node


class Place(NamedTuple):
    """What holds at a point of a walk: whether a failure there fails the test, and the `if` around it."""

    kind: Kind = "real"
    condition: str = ""
    truth: int = ALWAYS
    rows: int | None = None  # of the literal table that is looped over
    table: Node | None = None  # what is looped over

    def worse(self, kind: Kind) -> Place:
        """The place, of a kind that it has unless it is something worse than real already."""
        return self if self.kind != "real" or kind == "real" else self._replace(kind=kind)

    def under(self, condition: str, holds: int) -> Place:
        """The place inside a branch."""
        place = self._replace(condition=condition, truth=min(self.truth, holds))
        return place.worse("unreachable") if holds == NEVER else place
