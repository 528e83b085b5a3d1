"""Amounts of money as text. Standard library only."""

from __future__ import annotations

CENT = 0.01


def dollars(usd: float | None, digits: int = 2) -> str:
    """Return an amount in US dollars as text; None is the cost of a model without a known price.

    An amount below one cent gets four digits, so that it does not read as nothing.
    """
    if usd is None:
        return "price unknown"
    return f"${usd:.{4 if 0 < usd < CENT else digits}f}"


def cost_text(cost_usd: float, unpriced_tokens: int, digits: int = 2) -> str:
    """Return a cost as text, with the number of tokens that have no known price."""
    said = dollars(cost_usd, digits)
    return f"{said} and {unpriced_tokens:,} tokens without a known price" if unpriced_tokens else said
