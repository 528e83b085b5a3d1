"""Changed files that the judge cannot be shown, the texts that are compared, and the files that words name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from lopen.git.repository import Repository
from lopen.git.trees import TreeChange
from lopen.judge import change as change_of_trees
from lopen.judge.change import UNREADABLE, compared_trees, spoken_names, unseen_files
from lopen.verification.compared_tests import compare_tests
from tests.fakes import FakeClock
from tests.git.conftest import run_git

BINARY = bytes(range(256)) * 8
CYRILLIC = "Привет, мир: это проверка кодировки. ".encode("koi8-r") * 20
WIDE = "class A { string s; }".encode("utf-16")


@pytest.mark.parametrize(
    ("path", "content", "mode", "told"),
    [
        ("src/Strings.cs", WIDE, "100644", ""),
        ("src/empty.py", b"", "100644", ""),
        ("assets/logo.png", BINARY, "100644", ""),
        ("tests/data/sample.bin", BINARY, "100644", ""),
        ("tests/data/broken.json", BINARY, "100644", "warning"),
        ("src/speedups.so", BINARY, "100644", "error"),
        ("tests/data/dep.whl", BINARY, "100644", "error"),
        ("src/app.py", CYRILLIC, "100644", "error"),
        ("package.json", BINARY, "100644", "error"),
        ("tests/data/run", BINARY, "100755", "error"),
        ("tests/data/run", b"#!/bin/sh\n" + BINARY, "100644", "error"),
    ],
)
def test_the_judge_is_told_of_a_file_that_runs_and_cannot_be_shown(
    path: str, content: bytes, mode: str, told: str
) -> None:
    added = TreeChange(path, "added", None, "b", None, mode)
    found = unseen_files(cast(Any, None), [added], {"b": len(content)}, {"b": content})
    assert [f.severity for f in found] == [told] * bool(told)


def test_content_that_was_there_before_is_told_alone() -> None:
    moved = TreeChange("lib/speedups.so", "added", None, "b", None, "100644")
    gone = TreeChange("src/speedups.so", "deleted", "b", None, "100644", None)
    found = unseen_files(cast(Any, None), [gone, moved], {"b": len(BINARY)}, {"b": BINARY})
    assert [f.severity for f in found] == ["warning"]


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
def test_hostile_words_end(hostile: str) -> None:
    list(spoken_names(hostile * (100_000 // len(hostile))))
    list(spoken_names(f"{hostile * 20} " * 2_000))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    run_git(tmp_path, "init", "-q")
    return Repository.open(tmp_path, clock=FakeClock())


def test_a_test_file_that_grew_too_large_is_not_deleted(repository: Repository) -> None:
    tests = repository.root / "tests/test_rows.py"
    tests.parent.mkdir()
    text = "from rows import f\n\n\ndef test_one():\n    assert f(1) == 1\n"
    tests.write_text(text)
    base = repository.snapshot()
    tests.write_text(f"{text}\n\nROWS = [{'(1, 1), ' * 300_000}]\n")

    change = compared_trees(repository, base, repository.snapshot(), "rows")
    compared = compare_tests(change.compared)

    assert (compared.lost, compared.pairs) == ([], [])


def test_files_are_read_up_to_a_total_tests_and_source_first(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_of_trees, "MOST_COMPARED", 25_000)
    base = repository.snapshot()
    for number in range(9):
        (repository.root / f"data{number}.json").write_text(f"{number}" * 10_000)
    (repository.root / "calc.py").write_text("# calc\n" * 2_000)

    change = compared_trees(repository, base, repository.snapshot(), "calc")

    read = {each.path for each in change.compared if each.after != UNREADABLE}
    assert len(read) == 2
    assert "calc.py" in read
