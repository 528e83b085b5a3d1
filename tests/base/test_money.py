"""Amounts of money as text."""

from __future__ import annotations

import pytest

from lopen.base.money import cost_text, dollars


@pytest.mark.parametrize(
    ("usd", "digits", "text"),
    [
        (None, 2, "price unknown"),
        (0.0, 2, "$0.00"),
        (0.0034, 2, "$0.0034"),
        (0.01, 2, "$0.01"),
        (1234.567, 2, "$1234.57"),
        (0.1517, 4, "$0.1517"),
        (0.0, 4, "$0.0000"),
    ],
)
def test_an_amount_has_as_many_digits_as_it_needs(usd: float | None, digits: int, text: str) -> None:
    assert dollars(usd, digits) == text


def test_tokens_without_a_price_are_named() -> None:
    assert cost_text(0.42, 0) == "$0.42"
    assert cost_text(0.42, 1200, 4) == "$0.4200 and 1,200 tokens without a known price"
