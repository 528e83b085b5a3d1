"""What single requests cost, from a table written by `scripts/write_hook_prices.py`. Standard library only."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TABLE = os.path.join(os.path.dirname(__file__), "prices.json")
_AROUND = r"^.*?(?=claude-)|\[.*\]$|@.*$|-latest$|-v\d+:\d+$|-\d{8}(?=$|-v\d)"


def cost_usd(model: str, counts: Iterable[int], prompt: int) -> float | None:
    """US dollars for tokens of each kind, by a prompt of this size; None for a model without a known price."""
    tiers = _table().get(plain_name(model), ())
    rates = [rates for above, rates in tiers if prompt > above or not above]
    if not rates:
        return None
    return sum(rate * count for rate, count in zip(rates[-1], counts, strict=True)) / 1e6


def plain_name(model: str) -> str:
    """The model's name without provider, date and variant."""
    return re.sub(_AROUND, "", model)


@lru_cache(maxsize=1)
def _table() -> dict[str, list[tuple[int, list[float]]]]:
    with open(TABLE, encoding="utf-8") as file:
        found: dict[str, list[tuple[int, list[float]]]] = json.load(file)
    return found
