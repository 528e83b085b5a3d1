"""What a request cost. The only importer of `genai_prices`, whose table ships with it: no network is used."""

from __future__ import annotations

from typing import Final

from lopen.llm.messages import Usage

PROVIDERS: Final = (None, "aws")  # the second knows ids like `us.anthropic.claude-…`


def cost_usd(model: str, usage: Usage) -> float | None:
    """US dollars for one request at list prices, or None for a model without a known price.

    Price it request by request: some models have tiers that go by the size of a single prompt.
    """
    import genai_prices

    counted = genai_prices.Usage(
        # The table counts as all input what the Messages API reports as three separate numbers.
        input_tokens=usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
    )
    for provider in PROVIDERS:
        try:
            return float(genai_prices.calc_price(counted, model, provider_id=provider).total_price)
        except LookupError:
            continue
    return None
