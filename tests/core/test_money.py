"""Amounts of money as text."""

from __future__ import annotations

import pytest

from lopen.core.money import cost_text, dollars


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "price unknown"),
        (0.0, "$0.00"),
        (0.0034, "$0.0034"),
        (0.01, "$0.01"),
        (0.1517, "$0.15"),
        (1234.567, "$1,234.57"),
    ],
)
def test_an_amount_has_as_many_digits_as_it_needs(usd: float | None, text: str) -> None:
    assert dollars(usd) == text


def test_tokens_without_a_price_are_named() -> None:
    assert cost_text(0.42, 0) == "$0.42"
    assert cost_text(0.42, 1200) == "$0.42 and 1,200 tokens without a known price"
