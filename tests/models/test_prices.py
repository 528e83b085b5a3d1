"""Costs from the price table that ships with its library."""

from __future__ import annotations

import pytest

from lopen.models.messages import Usage
from lopen.models.prices import cost_usd

MILLION = 1_000_000


@pytest.mark.parametrize(
    "model",
    ["claude-opus-4-5-20251101", "claude-opus-4-5@20251101", "us.anthropic.claude-opus-4-5-20251101-v1:0"],
)
def test_dated_and_cloud_names_are_known(model: str) -> None:
    assert cost_usd(model, Usage(output_tokens=MILLION)) == pytest.approx(25.0, rel=0.2)


@pytest.mark.parametrize("model", ["a-model-of-ones-own", "claude-unheard-of-99", "", "replay:file"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert cost_usd(model, Usage(1, 1)) is None


@pytest.mark.parametrize(
    "model", ["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "gemini-2.5-pro"]
)
@pytest.mark.parametrize(
    "usage",
    [Usage(1, 1), Usage(150_000, 900, 0, 30_000), Usage(250_000, 9_000), Usage(10, 5_000, 0, 900_000)],
)
def test_the_quick_way_and_the_table_agree_also_where_prices_go_by_size(model: str, usage: Usage) -> None:
    import genai_prices

    whole = usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens
    table = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=whole,
            output_tokens=usage.output_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_read_tokens=usage.cache_read_tokens,
        ),
        model,
    )
    assert cost_usd(model, usage) == pytest.approx(float(table.total_price))
