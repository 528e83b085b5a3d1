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
        ("models.planning", "p", "  # a comment\n", '  # a comment\nplanning = "p"\n'),
        ("oracle.model", "o", "[oracle]\n", '[oracle]\nmodel = "o"\n'),
        ("budget.task_tokens", 3, "# dotted\n", "# dotted\nbudget.task_tokens = 3\n"),
        ("git.sign", True, "[oracle]\n", "[oracle]\n\n[git]\nsign = true\n"),
        (
            "circuit.external_api.window",
            1.5,
            "[oracle]\n",
            "[oracle]\n\n[circuit.external_api]\nwindow = 1.5\n",
        ),
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
        ("[a]\nb = 1", "a.c", "[a]\nb = 1\nc = 7\n"),
        ('m = {p = "a"}', "m.url", 'm = {p = "a", url = 7}\n'),
        ('m = {p = "a"} # why\r\n', "m.url", 'm = {p = "a", url = 7} # why\r\n'),
        ('m = { p = "a", url = 1 }\n', "m.url", 'm = { p = "a", url = 7 }\n'),
        ("m = {}\n", "m.deep.url", "m = {deep = {url = 7}}\n"),
        (COMMENTED, "a.x", COMMENTED.replace("# one\n", "# one\nx = 7\n")),
        (COMMENTED.replace("[c]", "[a.c]"), "a.x", "[a]\nb = 1  # one\nx = 7\n\n# about c\n[a.c]\nd = 1\n"),
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
        ("budget", 2),
        ("budget.session_tokens", 2),
        ("models.fallback", 5),
        ("models.building", 9),
        ("circuit", 11),
        ("circuit.rapid_fire.threshold", 12),
        ("circuit.rapid_fire.note", 13),
        ("oracle", 18),
        ("oracle.model", None),
        ("not.a.table", None),
    ],
)
def test_keys_are_found_on_their_lines(text: str, key: str, line: int | None) -> None:
    assert lines(text).get(key) == line


def test_inline_tables_and_arrays_of_tables_have_their_lines() -> None:
    text = 'model = {provider = "a", base_url = "b"}\n\n[[hooks]]\nname = 1\n[[hooks]]\nname = 2\n'
    found = {"model": 1, "model.provider": 1, "model.base_url": 1, "hooks": 3, "hooks.name": 4}
    assert lines(text) == found


TRICKY = r"""
"a]".b = [ # ]
  '"', "\"[", [1, {c = "}"}],
]
c = '''
d = 1 ['''
"#g" = 1 # '''
[[h]]
"""


def test_brackets_and_quotes_inside_values_end_no_statement() -> None:
    quoted = 'e = """"x\\\\\nf = [\\"""""\ni = 1\n'
    assert lines(TRICKY) == {"a]": 2, "a].b": 2, "c": 5, "#g": 7, "h": 8}
    assert lines(quoted) == {"e": 1, "i": 3}
    assert tomllib.loads(quoted) == {"e": '"x\\\nf = [""', "i": 1}


def test_a_long_list_takes_time_in_proportion_to_its_length() -> None:
    """A cloned repository brings its configuration; each line parsed with all before it would take an hour."""
    text = "a = [\n" + '"x",\n' * 40_000 + "]\nb = 1\n"
    assert lines(text) == {"a": 1, "b": 40_003}


def test_the_file_that_init_writes_can_be_set_key_by_key() -> None:
    for line in CONFIG.splitlines():
        if found := re.match(r"# (\w+) = ", line):
            table = CONFIG.partition(line)[0].rpartition("[")[2].partition("]")[0]
            changed = tomllib.loads(with_value(CONFIG, f"{table}.{found[1]}", 7))
            assert changed[table] == {found[1]: 7}
