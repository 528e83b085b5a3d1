"""Write the prices that hooks charge by, from the price table that takes longer to load than a hook may run.

python -m scripts.write_hook_prices
"""

from __future__ import annotations

import json

from lopen.claude_hooks.session import TABLE, plain_name
from lopen.models.prices import known_models, price_tiers


def table() -> dict[str, list[list[object]]]:
    """Every model of Anthropic's with its price tiers, in US dollars for a million tokens."""
    found = {plain_name(model): price_tiers(model) for model in known_models()}
    return {
        name: [[above, [round(rate * 1e6, 4) for rate in rates]] for above, rates in tiers]
        for name, tiers in sorted(found.items())
        if tiers
    }


def text() -> str:
    """The file, a line a model."""
    lines = (f" {json.dumps(name)}: {json.dumps(tiers)}" for name, tiers in table().items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(text())
