"""Lines broken at a terminal's margin: between words, with every command whole."""

from __future__ import annotations

import pytest

from lopen.cli import app
from lopen.core.wrapping import COMMANDS, broken

CASES = [
    ("short", 20, ["short"]),
    ("a rather long line of words", 12, ["a rather", "long line of", "words"]),
    ("  indented words go on below", 14, ["  indented", "  words go on", "  below"]),
    ("12:00:00 the log keeps its column", 20, ["12:00:00 the log", "         keeps its", "         column"]),
    ("         | what the model says", 21, ["         | what the", "         | model says"]),
    ("- [ ] a criterion is long", 16, ["- [ ] a", "      criterion", "      is long"]),
    (
        "to merge it: git switch main && git merge lopen/calc",
        30,
        ["to merge it:", "git switch main && git merge lopen/calc"],
    ),
    (
        "to set one: export KEY=sk-ant-...; to try it: lopen doctor",
        30,
        ["to set one:", "export KEY=sk-ant-...; to try", "it: lopen doctor"],
    ),
    (
        "write it, then: lopen approve calc --expect 0123456789",
        40,
        ["write it, then:", "lopen approve calc --expect 0123456789"],
    ),
    (
        "next: lopen answer calc-1 'one; two, or three four' and more",
        20,
        ["next:", "lopen answer calc-1 'one; two, or three four' and more"],
    ),
    (
        "      lopen merge calc  (merges it if the commands pass)",
        31,
        ["      lopen merge calc  (merges", "      it if the commands pass)"],
    ),
    ("run `lopen log -v` for all of it", 16, ["run", "`lopen log -v`", "for all of it"]),
    ("  verify-tests: python3 -m unittest -q tests", 20, ["  verify-tests: python3 -m unittest -q tests"]),
    ("x: no verify command: lopen cannot test", 20, ["x: no verify", "command: lopen", "cannot test"]),
    ("warn  key: it is not set here", 20, ["warn  key: it is not", "      set here"]),
    ("a_word_that_is_longer_than_the_line then", 10, ["a_word_that_is_longer_than_the_line", "then"]),
    ("name  =  value of the setting here", 20, ["name  =  value of", "the setting here"]),
]


def test_every_command_stays_whole() -> None:
    assert {entry.name for entry in app.COMMANDS} == set(COMMANDS.split("|"))


@pytest.mark.parametrize(("line", "width", "parts"), CASES)
def test_a_line_is_broken_between_words(line: str, width: int, parts: list[str]) -> None:
    assert list(broken(line, width)) == parts
