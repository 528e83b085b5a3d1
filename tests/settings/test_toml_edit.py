"""TOML texts: the lines of keys, and one value changed."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.cli.commands.init import CONFIG
from lopen.core.errors import WrongUsage
from lopen.settings.toml import lines, with_value


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("budget.session_tokens", 2, "tokens = 1 # dotted", "tokens = 2 # dotted"),
        ("models.building", "y", "building = 'x # no comment'  # a", 'building = "y"  # a'),
        ("circuit.rapid_fire.threshold", 7, "threshold = 5", "threshold = 7"),
        ("models.planning", "p", "# a comment\n", '# a comment\nplanning = "p"\n'),
        ("git.sign", True, "[oracle]\n", "[oracle]\n\n[git]\nsign = true\n"),
        ("models.fallback", ["c"], '[\n  "a", # first\n  "b",\n]', '["c"]'),
    ],
)
def test_one_value_changes_and_nothing_else(key: str, value: object, old: str, new: str) -> None:
    assert with_value(FILE, key, value) == FILE.replace(old, new)
    windows = with_value(FILE.replace("\n", "\r\n"), key, value)
    assert windows == FILE.replace(old, new).replace("\n", "\r\n")


@pytest.mark.parametrize("text", ["a = 1\n", "a = [1]\n", "[[a]]\nb = 1\n", "a.b.c = 1\n"])
def test_a_file_that_has_no_room_for_the_key_is_left_alone(text: str) -> None:
    with pytest.raises(WrongUsage, match=r"cannot set a\.b in this file"):
        with_value(text, "a.b", 7)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(_TEXTS)
def test_any_text_survives_as_a_value(text: str) -> None:
    assert tomllib.loads(with_value("", "a.b", text))["a"]["b"] == text


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


@pytest.mark.parametrize("text", [FILE, FILE.replace("\n", "\r\n")])
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
    ],
)
def test_keys_are_found_on_their_lines(text: str, key: str, line: int | None) -> None:
    assert lines(text).get(key) == line


def test_the_file_that_init_writes_can_be_set_key_by_key() -> None:
    for line in CONFIG.splitlines():
        if found := re.match(r"# (\w+) = ", line):
            table = CONFIG.partition(line)[0].rpartition("[")[2].partition("]")[0]
            changed = tomllib.loads(with_value(CONFIG, f"{table}.{found[1]}", 7))
            assert changed[table] == {found[1]: 7}
