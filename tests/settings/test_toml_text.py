"""The lines on which keys stand."""

from __future__ import annotations

import pytest

from lopen.settings.toml_text import lines

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
