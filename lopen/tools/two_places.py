"""Tests that pass in the model's own tree and fail in the clean room, or the reverse: the model is told once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

SHOWN = 20  # paths by name
NOISE = ("__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/")
DIFFERS = (
    "the tests {here} in your work tree (run_command) and {there} in the clean room, which holds only what would be "
    "committed, with an empty HOME and no caches; in your work tree alone lie: {names}"
)


@dataclass
class TwoPlaces:
    """The latest run of the tests by the model itself: the tree and whether they passed."""

    looked: tuple[str, bool] | None = None
    _told: bool = False

    def told(self, left_out: Sequence[str], *, passed: bool) -> str:
        """Return the difference in words, "" where the model knows it. `passed`: in the room."""
        if self._told:
            return ""
        self._told = True
        paths = [path for path in left_out if not path.endswith(NOISE)]
        names = ", ".join(json.dumps(path) for path in paths[:SHOWN]) or "nothing"
        more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
        here, there = ("fail", "pass") if passed else ("pass", "fail")
        return DIFFERS.format(here=here, there=there, names=names + more)
