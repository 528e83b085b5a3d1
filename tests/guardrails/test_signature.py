from __future__ import annotations

import pytest

from lopen.guardrails.signature import signature


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"path": "src/a.py"}, {"path": "./src/a.py"}),
        ({"path": "src/a.py"}, {"path": "src/../src//a.py"}),
        ({"command": "pytest -q tests/a.py"}, {"command": "  pytest  -q\ttests/./a.py\n"}),
        (
            {"command": "make", "description": "Build it", "timeout": 5_000, "run_in_background": True},
            {"command": "make", "description": "Try again", "timeout_s": 9},
        ),
        ({"prompt": "look", "description": "one"}, {"prompt": "look", "description": "two"}),
        ({"a": 1, "b": [1, " x  y "]}, {"b": [1.0, "x y"], "a": 1}),
    ],
)
def test_calls_that_differ_in_blanks_and_spelling_of_paths_are_the_same(one: object, other: object) -> None:
    assert signature("t", one) == signature("t", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"path": "src/a.py"}, {"path": "src/b.py"}),
        ({"command": "pytest -q"}, {"command": "pytest"}),
        ({"url": "https://a//b"}, {"url": "https://a/b"}),
        ({"n": 1}, {"n": 2}),
        ({"title": "bug", "description": "one"}, {"title": "bug", "description": "two"}),
        ({"url": "a", "timeout": 1}, {"url": "a", "timeout": 2}),
        ({"n": 1}, {"n": "1"}),
    ],
)
def test_calls_that_differ_otherwise_are_not(one: object, other: object) -> None:
    assert signature("t", one) != signature("t", other)


def test_the_tool_counts_and_no_argument_can_be_read_back() -> None:
    assert signature("a", {}) != signature("b", {})
    assert "secret" not in signature("a", {"key": "secret"})


def test_hostile_arguments_have_a_signature_too() -> None:
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    assert signature("t", deep)
    assert signature("t", {"x": "\ud800", "y": "z" * 1_000_000, "w": "/" * 10_000})
