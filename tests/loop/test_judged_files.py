"""Changed files that the judge cannot be shown, that a test command rewrites, or that other systems cannot hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lopen.git.trees import TreeChange
from lopen.loop.judged_files import rewritten_files, shared_names, unseen_files

BINARY = bytes(range(256)) * 8
CYRILLIC = "Привет, мир: это проверка кодировки. ".encode("koi8-r") * 20
FILM = (b"G" + bytes(187)) * 6
WIDE = "class A { string s; }".encode("utf-16")


@pytest.mark.parametrize(
    ("path", "content", "mode", "severities"),
    [
        ("tests/data/utf16.xml", "<a>some text</a>".encode("utf-16"), "100644", []),
        ("src/Strings.cs", WIDE, "100644", []),
        ("src/empty.py", b"", "100644", []),
        ("tests/fixtures/koi8.html", CYRILLIC, "100644", ["warning"]),
        ("tests/inputs/01.in", BINARY, "100644", ["warning"]),
        ("tests/data/sample.bin", BINARY, "100644", []),
        ("src/data/fast.so", BINARY, "100644", ["error"]),
        ("src/resources/libfast.so.1.2", BINARY, "100644", ["error"]),
        ("tests/data/Impl.class", BINARY, "100644", ["error"]),
        ("media/clip.ts", FILM, "100644", ["warning"]),
        ("src/app.py", FILM, "100644", ["error"]),
        ("gradle/wrapper/gradle-wrapper.jar", b"PK" + BINARY, "100644", ["error"]),
        ("data/.mvn/wrapper/maven-wrapper.properties", BINARY, "100644", ["error"]),
        ("src/clip.ts", BINARY, "100644", ["error"]),
        ("src/speedups.so", BINARY, "100644", ["error"]),
        ("libs/other.jar", b"PK" + BINARY, "100644", ["error"]),
        ("src/app.py", CYRILLIC, "100644", ["error"]),
        ("tests/data/run", BINARY, "100755", ["error"]),
        ("tests/data/run", b"#!/bin/sh\n" + BINARY, "100644", ["error"]),
    ],
)
def test_what_runs_has_to_be_shown_and_data_not(
    path: str, content: bytes, mode: str, severities: list[str]
) -> None:
    def found(*files: TreeChange) -> list[str]:
        return [f.severity for f in unseen_files(cast(Any, None), files, {"b": len(content)}, {"b": content})]

    assert found(TreeChange(path, "added", None, "b", None, mode)) == severities
    before = severities and ["warning"]
    assert found(TreeChange(path, "modified", "b", "b", "100644", mode)) == before
    moved = TreeChange("old", "deleted", "b", None, "100644", None)
    assert found(moved, TreeChange(path, "added", None, "b", None, mode)) == before


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        ("tests/gen/parser_test.py", "error"),
        ("src/__snapshots__/page.html", "error"),
        ("tests/page.snap", "error"),
        ("tests/output/report.html", "warning"),
        ("tests/golden/out.sql", "warning"),
        ("tests/static/app.css", "warning"),
        ("src/app.py", "warning"),
    ],
)
def test_rewritten_tests_and_snapshots_are_errors(path: str, severity: str) -> None:
    result = SimpleNamespace(command="pytest", changed=(path,), left=(), tool="verify_tests")
    assert [f.severity for f in rewritten_files([cast(Any, result)])] == [severity]


@pytest.mark.parametrize(
    ("before", "added", "found"),
    [
        (["calc/money.py"], ["calc/Money.py"], ["error: calc/Money.py"]),
        (["calc/money.py"], ["calc/monies.py", "calc2/money.py"], []),
        (["Makefile", "makefile"], ["src/makefile"], []),  # the repository has the two already
        (["calc/a.py"], ["Calc/b.py", "Calc/c.py", "x"], ["error: Calc/b.py"]),
        (["docs"], ["Docs/index.md"], ["error: Docs/index.md"]),
        ([], ["caf\u00e9", "cafe\u0301"], ["error: cafe\u0301"]),
        ([], ["x\u00b2.py", "x2.py"], []),
        (
            [],
            ["aux.c", "data/a:b", "end.", "auxiliary.c"],
            [*(f"warning: {p}" for p in ("aux.c", "data/a:b", "end."))],
        ),
    ],
)
def test_names_that_other_systems_cannot_hold_apart(
    before: list[str], added: list[str], found: list[str]
) -> None:
    files = [TreeChange(p, "added", None, "b", None, "100644") for p in added]
    repository = cast(Any, SimpleNamespace(entries=lambda _tree: dict.fromkeys([*before, *added])))
    assert [f"{f.severity}: {f.path}" for f in shared_names(repository, "tree", files)] == found
    gone = [TreeChange(p, "deleted", "b", None, "100644", None) for p in before]
    moved = SimpleNamespace(entries=lambda _tree: dict.fromkeys(added))
    assert not before or not [*shared_names(cast(Any, moved), "tree", [*files, *gone])]
