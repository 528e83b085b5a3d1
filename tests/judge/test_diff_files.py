"""Diffs taken apart by file, and text with line numbers in which nothing is unseen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.escape import INVISIBLE
from lopen.judge.diff_files import is_text, numbered_diff, numbered_source, split_diff, visible

DIFF = """\
diff --git a/money.py b/money.py
index 1..2 100644
--- a/money.py
+++ b/money.py
@@ -4,2 +4,3 @@ def add():
 kept
-a
+b
+--- c
diff --git a/old.py b/old.py
deleted file mode 100644
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""


def test_a_diff_falls_into_its_files() -> None:
    parts = split_diff(DIFF)

    assert [part.path for part in parts] == ["money.py", "old.py"]
    assert "".join(part.text for part in parts) == DIFF
    assert split_diff("") == ()


def test_lines_of_a_diff_carry_the_new_files_line_numbers() -> None:
    money, old = split_diff(DIFF)

    assert numbered_diff(money).split("\n") == [
        "@@ -4,2 +4,3 @@ def add():",
        "4  kept",
        "-a",
        "5 +b",
        "6 +--- c",
    ]
    assert numbered_diff(old).split("\n") == ["deleted file mode 100644", "@@ -1 +0,0 @@", "-gone"]


def test_source_carries_its_line_numbers() -> None:
    assert numbered_source("a\nb\n", 9) == "9 a\n10 b"
    assert numbered_source("") == ""


@pytest.mark.parametrize(
    "name",
    ["é.py", 'quo"te.py', "new\nline.py", "x b/y.py"],
)
def test_paths_are_read_as_git_writes_them(tmp_path: Path, name: str) -> None:
    def git(*arguments: str) -> str:
        ran = subprocess.run(["git", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return ran.stdout

    git("init", "-q")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("diff --git a/forged b/forged\n")
    git("add", "-A")

    (part,) = split_diff(git("diff", "--cached"))

    assert part.path == name
    assert numbered_diff(part).endswith("1 +diff --git a/forged b/forged")


@given(st.text())
def test_nothing_unseen_is_left_and_no_line_is_added(text: str) -> None:
    shown = visible(text)

    assert not INVISIBLE.search(shown)
    assert shown.count("\n") == text.count("\n")
    assert len(shown.splitlines()) <= text.count("\n") + 1


def test_bytes_that_are_no_text_are_told_from_text() -> None:
    assert is_text("x = 1\r\n" * 50 + "é\n")
    assert is_text("NUL = '\0'\n" * 3 + "x = 1\n" * 20)
    assert not is_text("\0\1\ufffd" * 50)
