"""JSON without the `json` module reads and writes what that module does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.quick_stdlib import dumps, loads
from tests.fuzz.inputs import bounded

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
OPTIONS: list[dict[str, Any]] = [{}, {"sort_keys": True, "ensure_ascii": False}, {"separators": (",", ":")}]


@given(VALUES, st.sampled_from(OPTIONS))
@bounded(100)
def test_values_are_written_and_read_alike(value: object, options: dict[str, Any]) -> None:
    text = json.dumps(value, **options)
    assert dumps(value, **options) == text
    assert loads(f" {text}\n") == loads(text.encode("utf-8", "surrogatepass")) == json.loads(text)


@pytest.mark.parametrize(
    "text", ["", " ", "{", "{]", "[1,]", "nul", "1 2", '{"a":}', "\0", '"\n"', "{'a':1}"]
)
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


def test_what_json_cannot_hold_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        dumps(circle)
    with pytest.raises(TypeError, match="set is not JSON"):
        dumps({"a": {1}})
    assert dumps({1, 2}, default=sorted) == "[1, 2]"
