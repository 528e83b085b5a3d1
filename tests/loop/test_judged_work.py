"""The files that the work's own words name."""

from __future__ import annotations

import time

import pytest

from lopen.loop.judged_files import spoken_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "See src/calc.py:12, `lib/a-b.test.ts` and calc.py's tests.",
            ["src/calc.py", "lib/a-b.test.ts", "calc.py"],
        ),
        ("Change README, docs/CHANGELOG and the Makefile.", ["README", "CHANGELOG", "Makefile"]),
        ("./setup.cfg, then pyproject.toml...", ["setup.cfg", "pyproject.toml"]),
        ("Write the API so that A1B2 and a/b do. An URL isn't one", []),
        (f"{'a' * 300}.py and x.{'y' * 9}", []),
    ],
)
def test_words_that_can_name_a_file_are_found(text: str, names: list[str]) -> None:
    assert list(spoken_names(text)) == names


@pytest.mark.parametrize("hostile", ["a-", "a/", "a.", "-", "/.", "A", "a.b/", "ABCD-"])
def test_hostile_words_are_read_in_proportion_to_their_length(hostile: str) -> None:
    began = time.process_time()
    list(spoken_names(hostile * (100_000 // len(hostile))))
    list(spoken_names(f"{hostile * 20} " * 2_000))
    assert time.process_time() - began < 2.0
