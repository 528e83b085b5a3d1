"""Editing TOML as text: only what is asked for changes."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.settings.toml_text import line_of, literal, statements, with_value

FILE = """\
# top
budget.session_tokens = 1 # dotted

[models]
fallback = [
  "a", # first
  "b",
]
building = 'x # no comment'  # a comment

[circuit.rapid_fire]
threshold = 5
note = \"\"\"
[not.a.table]
threshold = 6
\"\"\"

[oracle]
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("budget.session_tokens", 2),
        ("models.fallback", 5),
        ("models.building", 9),
        ("circuit.rapid_fire.threshold", 12),
        ("circuit.rapid_fire.note", 13),
        ("oracle", 18),
        ("oracle.model", None),
        ("not.a.table", None),
    ],
)
def test_keys_are_found_on_their_lines(key: str, line: int | None) -> None:
    assert line_of(FILE, key) == line


def test_a_statement_over_several_lines_is_one() -> None:
    found = {(s.first, s.last) for s in statements(FILE)}
    assert (4, 7) in found
    assert (12, 15) in found


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("budget.session_tokens", 2, "tokens = 1 # dotted", "tokens = 2 # dotted"),
        ("models.building", "y", "building = 'x # no comment'  # a", 'building = "y"  # a'),
        ("circuit.rapid_fire.threshold", 7, "threshold = 5", "threshold = 7"),
        ("models.planning", "p", "  # a comment\n", '  # a comment\nplanning = "p"\n'),
        ("oracle.model", "o", "[oracle]\n", '[oracle]\nmodel = "o"\n'),
        ("budget.task_tokens", 3, "# dotted\n", "# dotted\nbudget.task_tokens = 3\n"),
        ("git.sign", True, "[oracle]\n", "[oracle]\n\n[git]\nsign = true\n"),
        ("models.fallback", ["c"], '[\n  "a", # first\n  "b",\n]', '["c"]'),
    ],
)
def test_one_value_changes_and_nothing_else(key: str, value: object, old: str, new: str) -> None:
    assert with_value(FILE, key, value) == FILE.replace(old, new)


def test_an_inline_table_is_spelled_out() -> None:
    changed = with_value("budget = { session_tokens = 1, enabled = true }\n", "budget.session_tokens", 2)
    assert changed == "budget.session_tokens = 2\nbudget.enabled = true\n"


def test_an_empty_file_gets_its_first_table() -> None:
    assert with_value("", "git.sign", False) == "[git]\nsign = false\n"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_as_a_value(text: str) -> None:
    assert tomllib.loads(f"a = {literal(text)}")["a"] == text


_NAMES = st.sampled_from(["a", "b", "c"])
_VALUES = st.one_of(
    st.integers(), st.booleans(), st.text(max_size=5), st.lists(st.text(max_size=3), max_size=2)
)


@given(st.lists(st.tuples(_NAMES, _NAMES, _VALUES), min_size=1, max_size=8))
def test_a_file_built_value_by_value_holds_the_last_of_each(sets: list[tuple[str, str, object]]) -> None:
    text, expected = "", dict[tuple[str, str], object]()
    for section, leaf, value in sets:
        text = with_value(text, f"{section}.{leaf}", value)
        expected[section, leaf] = value
    tables = tomllib.loads(text)
    assert {(s, leaf): v for s, table in tables.items() for leaf, v in table.items()} == expected
