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

COMMENTED = "[a]\nb = 1  # one\n\n# about c\n[c]\nd = 1\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("budget.session_tokens", 2, "tokens = 1 # dotted", "tokens = 2 # dotted"),
        ("models.building", "y", "building = 'x # no comment'  # a", 'building = "y"  # a'),
        ("circuit.rapid_fire.threshold", 7, "threshold = 5", "threshold = 7"),
        ("models.planning", "p", "[models]\n", '[models]\nplanning = "p"\n'),
        ("oracle.model", "o", "[oracle]\n", '[oracle]\nmodel = "o"\n'),
        ("budget.task_tokens", 3, "# dotted\n", "# dotted\nbudget.task_tokens = 3\n"),
        ("git.sign", True, "[oracle]\n", "[oracle]\n\n[git]\nsign = true\n"),
        ("models.fallback", ["c"], '[\n  "a", # first\n  "b",\n]', '["c"]'),
    ],
)
def test_one_value_changes_and_nothing_else(
    newline: str, key: str, value: object, old: str, new: str
) -> None:
    def with_newline(text: str) -> str:
        return text.replace("\n", newline)

    assert with_value(with_newline(FILE), key, value) == with_newline(FILE.replace(old, new))


@pytest.mark.parametrize(
    ("text", "key", "changed"),
    [
        ("", "git.sign", "[git]\nsign = 7\n"),
        ("# only this", "git.sign", "# only this\n\n[git]\nsign = 7\n"),
        ("[a]\nb = 1", "a.c", "[a]\nc = 7\nb = 1\n"),
        ('m = {p = "a"} # why\r\n', "m.url", 'm = {p = "a",url = 7} # why\r\n'),
        ('m = { p = "a", url = 1 }\n', "m.url", 'm = { p = "a", url = 7 }\n'),
        ("m = {}\n", "m.deep.url", "m = {deep = {url = 7}}\n"),
        (COMMENTED, "a.x", COMMENTED.replace("[a]\n", "[a]\nx = 7\n")),
        ("[a.b]\nc = 1\n[d]\n[a.e]\nf = 1\n", "a.e.f", "[a.b]\nc = 1\n[d]\n[a.e]\nf = 7\n"),
        ("a.b.c = 1\n", "a.d.e", "a.b.c = 1\n\n[a.d]\ne = 7\n"),
    ],
)
def test_each_form_of_a_table_takes_a_value(text: str, key: str, changed: str) -> None:
    assert with_value(text, key, 7) == changed


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
