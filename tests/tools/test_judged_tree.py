"""The oracle's tools read exactly the judged tree: all of it, and nothing of the work tree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lopen.git.repository import Repository
from lopen.judge.judged_tree import BROKEN, JudgedTree
from lopen.models.messages import Json, ToolUse
from tests.fakes import FakeClock
from tests.tools.examples import project

OUTPUT = "".join(f"line {n}\n" for n in range(1, 2_001))


@pytest.fixture
def judged(tmp_path: Path) -> JudgedTree:
    root = project(tmp_path / "project")
    repository = Repository.open(root, clock=FakeClock())
    files = {
        "core.py": b"def add(a, b):\n    return a + b\n",
        "sub/nul.py": b"NULLED = 1 #\0\n",
        "sub/wide.js": b"x" * 25_000 + b"\n",
        "utf16.txt": "grün\n".encode("utf-16"),
        "specs/calc/plugin.py": b"BESIDE = 1\n",
        "odd\nname.py": b"ODD = 1\n",
    }
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    tree = repository.snapshot()
    (root / "core.py").write_text("def add(a, b):\n    return 0\n", "utf-8")
    (root / "later.py").write_text("x = 1\n", "utf-8")
    return JudgedTree(repository, tree, {"verify_tests": OUTPUT})


@dataclass
class Answer:
    """A result block, taken apart."""

    block: Json

    @property
    def ok(self) -> bool:
        return "is_error" not in self.block

    @property
    def fields(self) -> dict[str, Any]:
        return dict(json.loads(self.block["content"].partition("\n")[0]))

    @property
    def raw(self) -> str:
        return str(self.block["content"].partition("\n")[2])


def call(judged: JudgedTree, name: str, /, **given: Any) -> Answer:
    return Answer(judged.answer(ToolUse("u1", name, given)))


def test_a_file_is_read_as_the_tree_holds_it(judged: JudgedTree) -> None:
    read = call(judged, "read_file", path="core.py")

    assert (read.ok, read.raw) == (True, "1 def add(a, b):\n2     return a + b")
    assert call(judged, "read_file", path="core.py", offset=2).raw == "2     return a + b"


@pytest.mark.parametrize("path", ["later.py", "../core.py", "/etc/passwd", ".git/config", "sub", ""])
def test_what_the_tree_does_not_hold_is_an_error(judged: JudgedTree, path: str) -> None:
    assert not call(judged, "read_file", path=path).ok


def test_nothing_of_the_tree_is_unreadable(judged: JudgedTree) -> None:
    assert call(judged, "read_file", path="sub/nul.py").raw == "1 NULLED = 1 #\\x00"
    assert call(judged, "read_file", path="utf16.txt").raw == "1 grün"
    wide = call(judged, "read_file", path="sub/wide.js")
    assert wide.raw.count("x") == 25_000
    assert wide.fields["note"] == BROKEN


def test_files_are_listed_with_their_sizes(judged: JudgedTree) -> None:
    files = {f["path"]: f["bytes"] for f in call(judged, "list_files").fields["files"]}

    assert files["core.py"] == 32
    assert files["odd\nname.py"] == 8
    assert "later.py" not in files
    assert "\nname" not in call(judged, "list_files").block["content"]
    below = call(judged, "list_files", path="sub", glob="*.py").fields["files"]
    assert [f["path"] for f in below] == ["sub/nul.py"]


def test_the_search_finds_lines_of_the_tree(judged: JudgedTree) -> None:
    found = call(judged, "search_files", pattern=r"return|NULLED|BESIDE")

    heads = [line.partition(":")[0] for line in found.raw.splitlines()]
    assert heads == ["core.py", "2", "specs/calc/plugin.py", "1", "sub/nul.py", "1"]
    assert found.fields["matches"] == 3
    assert "not a Python regular expression" in call(judged, "search_files", pattern="(").fields["error"]
    assert call(judged, "search_files", pattern="add", path="sub").fields["matches"] == 0


def test_the_whole_output_of_a_verification_is_read(judged: JudgedTree) -> None:
    last = call(judged, "read_output", tool="verify_tests", offset=2_000)

    assert last.raw == "2000 line 2000"
    assert "verify_tests" in call(judged, "read_output", tool="verify_lint").fields["hint"]


def test_a_long_file_is_read_in_pieces_without_a_gap(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    repository = Repository.open(root, clock=FakeClock())
    lines = [f"value_{n} = {n}" for n in range(1, 8_001)]
    (root / "long.py").write_text("\n".join(lines) + "\n", "utf-8")
    judged = JudgedTree(repository, repository.snapshot(), {})

    read: list[str] = []
    truncated = True
    while truncated:
        piece = call(judged, "read_file", path="long.py", offset=len(read) + 1)
        read += [line.partition(" ")[2] for line in piece.raw.split("\n")]
        truncated = piece.fields["truncated"]

    assert read == lines
