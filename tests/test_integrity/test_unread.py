"""What lopen cannot read of a change is told, whatever hides it."""

from __future__ import annotations

import pytest

from lopen.test_integrity import FileChange, find_tampering
from lopen.test_integrity.unread import MAX_CHARS

PYTHON = "def test_add():\n    assert add(5, 9) == 14\n"
IDLE = "def test_add():\n    return\n    assert add(5, 9) == 14\n"
SCRIPT = "test('add', () => {\n  expect(add(5, 9)).toBe(14);\n});\n"
ELIF = "def f(x):\n    if x == 0:\n        return 0\n" + "".join(
    f"    elif x == {n}:\n        return {n}\n" for n in range(1, 200)
)
# path, the file before, what hides the rest of it, a part of the message
HIDDEN = {
    "a long sum": ("tests/test_a.py", PYTHON, IDLE + f"A = {'1 + ' * 160}1\n", "150 levels"),
    "a very long sum": ("tests/test_a.py", PYTHON, IDLE + f"A = {'1 + ' * 2500}1\n", "150 levels"),
    "a chain of attributes": ("tests/test_a.py", PYTHON, IDLE + f"A = a{'.a' * 900}\n", "150 levels"),
    "many branches": ("tests/test_a.py", PYTHON, IDLE + ELIF, "150 levels"),
    "syntax that no Python takes": ("calc.py", "A = 1\n", "A = (\n", "not understood"),
    "a large comment": ("tests/test_a.py", PYTHON, IDLE + "# a\n" * (MAX_CHARS // 4), "300,000 characters"),
    "a NUL in a comment": ("a.test.js", SCRIPT, SCRIPT.replace("{\n", "{ // \0\n  return;\n"), "NUL"),
}
JSX = "test('a', () => {{ render(<p>a{}</p>); expect(add(5, 9)).toBe(14); }});\n"
RUST = "#[test]\nfn a() { assert_eq!(14, add(5, 9)); }\n"
JAVA = "class ATest { @Test void a() { assertEquals(14, add(5, 9)); } }\n"
# path, the file before, what is added to it in good faith
HONEST = {
    "text in JSX": ("a.test.tsx", JSX.format(""), JSX.format(" & b")),
    "types of Flow": (
        "a.test.js",
        SCRIPT,
        "// @flow\nfunction g(x: number): string { return '' }\n" + SCRIPT,
    ),
    "variance": ("a.test.ts", SCRIPT, "interface A<in out T> { a: T }\n" + SCRIPT),
    "safe functions of Rust": ("tests/a.rs", RUST, 'unsafe extern "C" { safe fn g(); }\n' + RUST),
    "modules of Java": ("src/test/java/ATest.java", JAVA, "import module java.base;\n" + JAVA),
    "data that is broken": ("tests/data/bad_syntax.py", "def f(): pass\n", "def f(: pass\n"),
    "data in JavaScript": ("tests/data/broken.test.js", "a = 1\n", "a = (\n"),
    "a generated file": ("a_pb2.py", "A = 1\n", "A = [\n" + "  1,\n" * MAX_CHARS + "]\n"),
    "many branches in the code": ("calc.py", "A = 1\n", ELIF),
    "a long sum in the code": ("calc.py", "A = 1\n", "A = (''\n" + "  + 'abc'\n" * 160 + ")\n"),
}


@pytest.mark.parametrize("what", HONEST)
def test_valid_syntax_data_and_generated_code_are_warnings(what: str) -> None:
    found = find_tampering([FileChange(*HONEST[what])])

    assert [f.severity for f in found] == ["warning"], found
    assert "lopen cannot read this file" in found[0].message


@pytest.mark.parametrize("what", HIDDEN)
def test_a_file_that_becomes_unreadable_is_an_error(what: str) -> None:
    path, before, after, says = HIDDEN[what]

    errors = [f for f in find_tampering([FileChange(path, before, after)]) if f.severity == "error"]

    assert any(f.path == path and says in f.message for f in errors), errors
    told = find_tampering([FileChange(path, after, after + "\nB = 1\n")])
    assert [f.severity for f in told] == ["warning"]
    assert find_tampering([FileChange(path, after, after + "\n\n")]) == ()


def test_tests_that_could_not_be_read_before_are_told() -> None:
    (found,) = find_tampering([FileChange("tests/test_a.py", PYTHON * (MAX_CHARS // 40), "")])

    assert (found.severity, "are not compared" in found.message) == ("warning", True)
