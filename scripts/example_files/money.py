"""Amounts of money, in pounds, exact to the last decimal."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation


@dataclass(frozen=True, order=True)
class Money:
    """An amount. Adding and multiplying never round."""

    pounds: Decimal

    @classmethod
    def of(cls, value: str | int | Decimal) -> Money:
        """The amount written as text, a whole number or a decimal.

        Raises TypeError for anything else, floats above all, and ValueError for text that is no number.
        """
        if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
            raise TypeError(f"an amount is made from text, int or Decimal, not from {type(value).__name__}")
        try:
            pounds = Decimal(value)
        except InvalidOperation:
            raise ValueError(f"{value!r} is no amount") from None
        if not pounds.is_finite():
            raise ValueError(f"{value!r} is no amount")
        return cls(pounds)

    def __add__(self, other: Money) -> Money:
        return Money(self.pounds + other.pounds)

    def __mul__(self, quantity: Decimal | int) -> Money:
        return Money(self.pounds * quantity)


ZERO = Money(Decimal(0))
