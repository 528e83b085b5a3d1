"""The three thresholds of a budget in order: those that are not set follow those that are. Standard library only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

Thresholds = tuple[float, float, float]  # warning, confirmation, pause: shares of a budget
NAMES = ("warning_threshold", "confirmation_threshold", "pause_threshold")
ORDER = "warning_threshold < confirmation_threshold <= pause_threshold must hold"


def in_order(found: Thresholds, given: Container[str]) -> Thresholds | None:
    """Return the thresholds with the ones not `given` (by name) moved between the others; None if that is impossible."""
    warning, confirmation, pause = found
    if NAMES[0] not in given and warning >= pause:
        warning = round(0.8 * pause, 4)
    if NAMES[1] not in given and not warning < confirmation <= pause:
        confirmation = round((warning + pause) / 2, 4)
    return (warning, confirmation, pause) if warning < confirmation <= pause else None
