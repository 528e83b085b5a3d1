"""Text of others is shown without effect on a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.escape import exact, inert


@given(st.text())
def test_inert_text_holds_no_control_character(text: str) -> None:
    kinds = {unicodedata.category(c) for c in inert(text, lines=True) if c != "\n"}
    assert not kinds & {"Cc", "Cs"}
    assert "\n" not in inert(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("true \x1b]0;; rm -rf ~", "true ␛]0;; rm -rf ~"),
        ("a\x9b31mb", "a\ufffd31mb"),
        ("user\u202egnp.exe", "user\ufffdgnp.exe"),
        ("zero\u200bwidth", "zero\ufffdwidth"),
        ("a\r\nb\rc\u2028d", "a b c d"),
        ("half \ud83d", "half \ufffd"),
        ("family 👩‍👩‍👧 é 漢", "family 👩‍👩‍👧 é 漢"),
        ("a\ufe0f1\ufe0f\u200d👩", "a\ufffd1\ufffd\ufffd👩"),
        ("❤️ 1️⃣ 🏳️‍🌈 می\u200cخواهم", "❤️ 1️⃣ 🏳️‍🌈 می\u200cخواهم"),
        ("می\u200c\u200cخ 👩\u200d\u200d👧", "می\ufffd\ufffdخ 👩\ufffd\ufffd👧"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert inert(text) == shown


# U+FFF9 and its like are format characters, the others are ignorable by default
IGNORABLE = "\u00ad\u034f\u115f\u1160\u17b4\u180e\u200c\u200d\u2064\u3164\ufe0f\uffa0\ufff9\ufffb\U0001bca0\U000e0001\U000e0141"


@pytest.mark.parametrize("character", IGNORABLE)
def test_a_character_that_shows_nothing_becomes_visible(character: str) -> None:
    assert inert(f"a{character}b") == "a\ufffdb"
    assert exact(f"a{character}b") == f"a<U+{ord(character):04X}>b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pytest -q", "pytest -q"),
        ("a" + " " * 4_000 + "; rm x", "a<4000 spaces>; rm x"),
        (" a ", "<1 spaces>a<1 spaces>"),
        ("a\tb\r\x1b[2K\u2028c", "a<U+0009>b<U+000D><U+001B>[2K<U+2028>c"),
        ("a\u200b\u202e\u00a0\u2800\u3164\ufe0fb", "a<U+200B><U+202E><U+00A0><U+2800><U+3164><U+FE0F>b"),
        ("größe 日本", "größe 日本"),
    ],
)
def test_a_command_is_shown_with_every_character_visible(text: str, shown: str) -> None:
    assert exact(text) == shown
