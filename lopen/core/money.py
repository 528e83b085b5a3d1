"""Amounts of money as text."""

from __future__ import annotations

import math

CENT = 0.01
MOST_USD = 1_000_000_000  # a larger limit is a slip


def dollars(usd: float | None) -> str:
    """Return an amount in US dollars as text; None is the cost of a model without a known price.

    An amount below one cent gets four digits, so that it does not read as nothing.
    """
    if usd is None:
        return "price unknown"
    return f"${usd:,.{4 if 0 < usd < CENT else 2}f}"


def apart(one: float, other: float) -> tuple[str, str]:
    """Return two amounts in US dollars with as many digits as tell them apart, up to six."""
    if (pair := (dollars(one), dollars(other)))[0] != pair[1]:
        return pair
    pairs = ((f"${one:,.{digits}f}", f"${other:,.{digits}f}") for digits in range(3, 7))
    return next((longer for longer in pairs if longer[0] != longer[1]), pair)


def cents_above(usd: float) -> str:
    """Return the amount as `--max-cost` takes it, rounded up to whole cents."""
    return f"{math.ceil(round(100 * usd, 4)) / 100:.12g}"


def cost_text(cost_usd: float, unpriced_tokens: int) -> str:
    """Return a cost as text, with the number of tokens that have no known price."""
    said = dollars(cost_usd)
    return f"{said} and {unpriced_tokens:,} tokens without a known price" if unpriced_tokens else said
