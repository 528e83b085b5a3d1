"""Amounts of money as text, and the thresholds of a budget in order. Standard library only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

CENT = 0.01
MOST_USD = 1_000_000_000  # a larger limit is a slip
Thresholds = tuple[float, float, float]  # warning, confirmation, pause: shares of a budget
NAMES = ("warning_threshold", "confirmation_threshold", "pause_threshold")
ORDER = "warning_threshold < confirmation_threshold <= pause_threshold must hold"


def dollars(usd: float | None) -> str:
    """Return an amount in US dollars as text; None is the cost of a model without a known price.

    An amount below one cent gets four digits, so that it does not read as nothing.
    """
    if usd is None:
        return "price unknown"
    return f"${usd:,.{4 if 0 < usd < CENT else 2}f}"


def cost_text(cost_usd: float, unpriced_tokens: int) -> str:
    """Return a cost as text, with the number of tokens that have no known price."""
    said = dollars(cost_usd)
    return f"{said} and {unpriced_tokens:,} tokens without a known price" if unpriced_tokens else said


def in_order(found: Thresholds, given: Container[str]) -> Thresholds | None:
    """Return the thresholds with the ones not `given` (by name) moved between the others; None if that is impossible."""
    warning, confirmation, pause = found
    if NAMES[0] not in given and warning >= pause:
        warning = round(0.8 * pause, 4)
    if NAMES[1] not in given and not warning < confirmation <= pause:
        confirmation = round((warning + pause) / 2, 4)
    return (warning, confirmation, pause) if warning < confirmation <= pause else None
