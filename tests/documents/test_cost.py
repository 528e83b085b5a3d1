"""Cutting and hashing stays far cheaper than parsing."""

from __future__ import annotations

import subprocess
import sys

from bench.documents import measure


def test_index_and_hashes_cost_at_most_six_tenths_of_a_full_parse() -> None:
    assert min(measure(300_000)["ratio"] for _ in range(2)) <= 0.6


def test_importing_the_room_loads_no_parser() -> None:
    code = (
        "import sys, lopen.documents.cache, lopen.documents.drift, lopen.documents.plan_file\n"
        "print(sorted({'markdown_it', 'mdit_py_plugins', 'yaml'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
