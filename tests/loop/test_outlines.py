"""Outlines of source files: line and signature of each definition."""

from __future__ import annotations

import pytest

from lopen.loop.languages import LARGEST, outline

CASES = {
    "a.py": (
        'class A(B):\n    """Does A.\n\n    More."""\n\n    @property\n    def m(self, a: int,\n          b: str = "x") -> int:\n'
        "        return 1\n\n\nasync def f():\n    r'''Raw.'''\n\n    def inner(): pass\n",
        [
            "1: class A(B)",
            '7:   def m(self, a: int, b: str = "x") -> int',
            "12: async def f()",
        ],
    ),
    "a.js": (
        "// Adds.\nconst add = (a, b) => a + b\nlet total = 1\nexport default class Foo extends Bar {\n"
        "  /** Runs. */\n  run() {}\n}\n",
        ["2: const add = (a, b)", "4: export default class Foo extends Bar", "6:   run()"],
    ),
    "a.ts": (
        "/**\n * Adds.\n */\nexport function add(a: number): number { return a }\ninterface I { m(): void }\n"
        "type T = string | number;\n",
        [
            "4: export function add(a: number): number",
            "5: interface I",
            "5:   m(): void",
            "6: type T = string | number",
        ],
    ),
    "a.go": (
        "package x\n\n// Add adds.\n// It does.\nfunc Add(a, b int) int { return a + b }\n\ntype T struct {\n\tA int\n}\n",
        ["5: func Add(a, b int) int", "7: type T struct"],
    ),
    "a.rs": (
        "/// Adds.\n#[inline]\npub fn add(a: i32) -> i32 { a }\nimpl<T> P<T> {\n    /// New.\n"
        "    pub fn new(x: T) -> Self { P { x } }\n}\n",
        ["3: pub fn add(a: i32) -> i32", "4: impl<T> P<T>", "6:   pub fn new(x: T) -> Self"],
    ),
    "A.java": (
        "/** The A. */\npublic class A extends B {\n  private int x;\n  @Override public int m(int a) { return 1; }\n}\n"
        "enum E { X, Y; int f() { return 1; } }\n",
        [
            "2: public class A extends B",
            "4:   @Override public int m(int a)",
            "6: enum E",
            "6:   int f()",
        ],
    ),
}


@pytest.mark.parametrize("path", CASES)
def test_a_definition_is_one_line(path: str) -> None:
    text, expected = CASES[path]
    assert (outline(path, text) or "").splitlines() == expected


@pytest.mark.parametrize(("path", "text"), [("a.txt", "def f(): pass"), ("a.py", "x" * (LARGEST + 1))])
def test_a_file_without_one(path: str, text: str) -> None:
    assert outline(path, text) is None


@pytest.mark.parametrize("path", CASES)
def test_any_text_has_one(path: str) -> None:
    for text in ("", '\0\ud800 def class {{{ ((( /* """', CASES[path][0][: len(CASES[path][0]) // 2]):
        assert outline(path, text) is not None


def test_a_large_outline_holds_the_outermost_definitions_alone() -> None:
    text = "class Cart:\n    def total(self):\n        pass\n\n\ndef buy():\n    pass\n"

    assert outline("shop.py", text, most=20) == "1: class Cart\n6: def buy()"
    assert outline("shop.py", text, most=200) == outline("shop.py", text)
