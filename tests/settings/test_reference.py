"""Every setting is described, and the reference page says what the schema says."""

from __future__ import annotations

import re

import jsonschema_rs
import pytest

from lopen.settings.keys import json_schema, keys
from scripts.write_configuration_reference import PAGE, page


@pytest.mark.parametrize("name", keys())
def test_a_setting_has_one_plain_sentence_of_meaning(name: str) -> None:
    meaning = keys()[name].meaning
    assert re.fullmatch(r"[A-Z][^\n]{15,160}\.", meaning), meaning
    assert ". " not in meaning


@pytest.mark.parametrize(
    ("ending", "unit"),
    [
        (r"_s", "in seconds"),
        (r"timeout_s", "in seconds"),
        (r"_days", "in days"),
        (r"_kb", "in KiB"),
        (r"_mb", "in Mi?B"),
        (r"_usd", "in US dollars"),
        (r"tokens", "tokens?"),
    ],
)
def test_a_setting_with_a_unit_in_its_name_says_it(ending: str, unit: str) -> None:
    named = [key for key in keys().values() if re.search(ending + "$", key.name)]
    assert named
    for key in named:
        assert re.search(unit, key.meaning, re.IGNORECASE), key.name


def test_editors_get_each_setting_with_its_meaning_and_limits() -> None:
    schema = json_schema()
    for key in keys().values():
        found = schema
        for part in key.name.split("."):
            found = found["properties"][part]
        assert found["description"] == key.meaning
    ruled = jsonschema_rs.validator_for(schema)
    good = {
        "budget": {"session_tokens": 1},
        "circuit": {"rapid_fire": {"window": 2.5}},
        "git": {"sign": True},
    }
    assert ruled.is_valid(good)
    for wrong in (
        {"budget": {"session_tokens": -1}},
        {"budget": {"sessions": 1}},
        {"sandbox": {"mode": "docker"}},
    ):
        assert not ruled.is_valid(wrong)


def test_no_two_settings_have_the_same_meaning() -> None:
    meanings = [key.meaning for key in keys().values()]
    assert [meaning for meaning in meanings if meanings.count(meaning) > 1 or "{" in meaning] == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m scripts.write_configuration_reference"


def test_the_page_has_a_row_for_every_setting() -> None:
    rows = re.findall(
        r"^\| `([a-z_.]+)` \| (?:boolean|integer|number|string|table|list of strings) \|",
        page(),
        re.MULTILINE,
    )
    assert rows == list(keys())
