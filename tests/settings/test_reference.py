"""Every setting is described, and the reference page says what the schema says."""

from __future__ import annotations

import re

import pytest

from lopen.settings.keys import keys
from scripts.write_configuration_reference import PAGE, page


@pytest.mark.parametrize("name", keys())
def test_a_setting_has_one_plain_sentence_of_meaning(name: str) -> None:
    meaning = keys()[name].meaning
    assert re.fullmatch(r"[A-Z][^\n]{15,160}\.", meaning), meaning
    assert ". " not in meaning


def test_no_two_settings_have_the_same_meaning() -> None:
    meanings = [key.meaning for key in keys().values()]
    assert [meaning for meaning in meanings if meanings.count(meaning) > 1 or "{" in meaning] == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m scripts.write_configuration_reference"
