"""Which mutants a change has, by language (docs/reference/mutation.md)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lopen.test_integrity import FileChange
from lopen.test_integrity.mutants import MOST, mutants
from lopen.test_integrity.mutation_controls import (
    did_not_compile,
    inserted,
    neutral_edit,
    one_line_edit,
)
from tests.test_integrity.test_corpus import ENTRIES

# path, source, the edits as `was -> now` in their order
CASES = {
    "python": (
        "calc.py",
        "def f(a, b):\n    if not a:\n        return 0\n    if b:\n        log.info('%d', 7)\n        return a + 2\n"
        "    return a < b and True\n\n\nLIMIT = 1 + 2\n",
        ["not a -> (a)", "0 -> 1", "b -> not (b)", "a + 2 -> None", "+ -> -", "2 -> 3", "a < b and True -> None",
         "< -> >=", "and -> or", "True -> False"],
    ),
    "javascript": (
        "calc.js",
        "export const f = (a) => a * 2;\nexport function g(a) { if (a.ok) { return a === 1; } return !a; }\n",
        ["a * 2 -> undefined", "* -> /", "2 -> 3", "a.ok -> !(a.ok)", "a === 1 -> undefined", "=== -> !==", "1 -> 2",
         "!a -> (a)"],
    ),
    "typescript": (
        "calc.tsx",
        "function f(a: number): number { return a - 1; }\n",
        ["a - 1 -> (undefined as never)", "- -> +", "1 -> 2"],
    ),
    "go": (
        "calc.go",
        "package calc\n\nfunc F(a int) (string, error) {\n\tif a >= 3 {\n\t\treturn name(a), nil\n\t}\n\treturn \"\", nil\n}\n",
        [">= -> <", "3 -> 4", "name(a) -> *new(string)"],
    ),
    "rust": (
        "src/lib.rs",
        "pub fn f(a: i32) -> i32 {\n    if a > 2 { return 1; }\n    a + 1\n}\n"
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { assert_eq!(super::f(1), 1 + 1); }\n}\n",
        ["> -> <=", "2 -> 3", "1 -> Default::default()", "a + 1 -> Default::default()", "+ -> -", "1 -> 2"],
    ),
    "java": (
        "src/main/java/A.java",
        "class A {\n  int f(int a) { return a % 2; }\n  boolean g() { return ok(); }\n  String n() { return name; }\n}\n",
        ["a % 2 -> 0", "% -> *", "2 -> 3", "ok() -> !(ok())", "name -> null"],
    ),
    "a test": ("tests/test_calc.py", "def test_f():\n    assert f(1) == 2\n", []),
    "configuration": ("vite.config.ts", "export default () => ({ port: 1 + 2 });\n", []),
    "no function": ("calc.py", "A = 1 + 2\n", []),
    "unreadable": ("calc.py", "def f(:\n    return 1 + 2\n", []),
    "another language": ("calc.rb", "def f(a)\n  a + 1\nend\n", []),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(CASES))
def test_every_language_has_its_mutants(what: str) -> None:
    path, text, expected = CASES[what]

    found = mutants([FileChange(path, None, text)], most=50)

    assert [f"{m.was} -> {m.now}" for m in found] == expected
    for mutant in found:
        edited = mutant.applied(text.encode()).decode()
        assert edited != text
        assert len(edited) - len(text) == len(mutant.now) - (mutant.end - mutant.start)
        assert mutant.line == text.encode()[: mutant.start].count(b"\n") + 1


def test_only_changed_functions_are_mutated_and_each_gets_its_turn() -> None:
    many = "".join(f"def f{n}(a):\n    return a + {n} - a * {n}\n\n\n" for n in range(10))
    changed = many.replace("a + 3", "a  +  (3)").replace("a + 7", "a - 7")

    assert mutants([FileChange("calc.py", many, f"# A comment\n{many}")]) == ()
    assert {m.line for m in mutants([FileChange("calc.py", many, changed)])} == {14, 30}
    whole = mutants([FileChange("calc.py", None, many)])
    assert len(whole) == MOST
    assert len({m.line for m in whole}) == 10
    assert whole == mutants([FileChange("calc.py", None, many)])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("calc.py", f"X = {'+'.join('1' * 2_500)}\ndef f(a):\n    return a + {'-' * 3_000}1\n"),
        ("calc.js", f"const x = {'1+' * 8_000}1;\nconst f = (a) => a + {'[' * 5_000}{']' * 5_000};\n"),
        (
            "calc.go",
            f"package calc\n\nvar X = {'(' * 3_000}1{')' * 3_000}\n\nfunc F(a int) int {{ return a + 1 }}\n",
        ),
    ],
)
def test_depth_and_length_of_an_expression_do_not_matter(path: str, text: str) -> None:
    assert "+ -> -" in [f"{m.was} -> {m.now}" for m in mutants([FileChange(path, None, text)])]


REFUSED = [
    ("a.go", "# calc\n./calc.go:3:9: undefined: x\nFAIL\tcalc [build failed]\nFAIL\n"),
    ("a.go", "FAIL\texample.org/calc/in [setup failed]\r\n"),
    ("a.rs", "error[E0308]: mismatched types\n --> src/lib.rs:5:21"),
    (
        "a.rs",
        "error: expected expression, found `)`\nerror: could not compile `c` (lib test) due to 1 previous error",
    ),
    ("a.rs", "\x1b[1m\x1b[91merror\x1b[0m: could not compile `c` (lib) due to 2 previous errors"),
    ("A.java", "[INFO] ---\n[ERROR] COMPILATION ERROR : \n[INFO] ---"),
    ("A.java", "> Task :app:compileTestJava FAILED\n"),
    ("A.java", "* What went wrong:\n> Compilation failed; see the compiler error output for details."),
    ("A.java", "src/A.java:1: error: incompatible types: String cannot be converted to int"),
    ("a.ts", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'."),
    ("a.tsx", "    src/my app/a.tsx:3:5 - error TS2322: Type 'string' is not assignable"),
    ("a.ts", "TS2322 [ERROR]: Type 'string' is not assignable to type 'number'."),
]
NOTICED = [
    (
        "a.go",
        "--- FAIL: TestBuild (0.00s)\n    calc_test.go:7: got [build failed], want ok\nFAIL\tcalc\t0.002s",
    ),
    ("a.rs", "error: test failed, to rerun pass `--lib`"),
    ("a.rs", "error: doctest failed, to rerun pass `--doc`"),
    ("a.rs", "error: 1 target failed:\n    `--lib`"),
    ("a.rs", "error: test run failed"),
    ("a.rs", "---- tests::parses stdout ----\nerror: unexpected end of input\nit could not compile"),
    ("A.java", "java.lang.AssertionError: compilation failed for the script\n  at A.java:12: error handling"),
    ("a.ts", "expected 'TS1234' to equal 'TS1235'"),
    ("a.ts", "AssertionError: no message holds error TS2322: none"),
    ("a.py", "error[E0308]: mismatched types"),
]


def test_only_the_compilers_own_lines_mean_a_refused_mutant() -> None:
    assert [case for case in REFUSED if not did_not_compile(*case)] == []
    assert [case for case in NOTICED if did_not_compile(*case)] == []


@settings(max_examples=100)
@given(st.sampled_from([change for entry in ENTRIES for change in entry.changes]), st.data())
def test_any_text_has_its_mutants_without_error(change: FileChange, data: st.DataObject) -> None:
    text = change.after or change.before or ""
    end = data.draw(st.integers(0, len(text)))
    name = f"code.{change.path.rpartition('.')[2]}"

    for mutant in mutants([FileChange(name, change.before, text[:end])]):
        assert mutant.applied(text[:end].encode()) != text[:end].encode()


# code, what the change adds to it, and whether the file has mutants
MISPLACED = {
    "support": ("test_helpers.py", "from test_helpers import f", True),
    "a package": ("tests/impl.py", "from tests.impl import f", True),
    "a part of a package": ("tests/impl.py", "from tests import other, impl", True),
    "a script": ("test/impl.js", "const { f } = require('./test/impl');", True),
    "another file": ("test_helpers.py", "from helpers import f", False),
}


@pytest.mark.parametrize("what", MISPLACED)
def test_product_code_named_like_a_test_has_mutants(what: str) -> None:
    path, line, made = MISPLACED[what]
    text = (
        "def f(a):\n    return a + 1\n"
        if path.endswith(".py")
        else "exports.f = function (a) {\n  return a + 1;\n};\n"
    )
    end = path.rpartition(".")[2]
    changes = [FileChange(f"calc.{end}", None, f"{line}\n"), FileChange(path, None, text)]
    test = FileChange(f"tests/test_calc.{end}", None, f"{line}\n")

    assert bool(mutants(changes)) is made
    assert mutants([*changes, test]) == ()


def test_neutral_edits_touch_the_text_alone() -> None:
    text = (
        'def f(a):\n    """A."""\n    if a:\n        a += 1\n    b = """\n    c = 1\n"""\n    return a + 2\n'
    )
    change = FileChange("calc.py", None, text)

    whole, line = (inserted(text.encode(), edit(change)) for edit in (neutral_edit, one_line_edit))

    assert line.decode() == text.replace("a += 1", "a += 1  #")
    results = []
    for each in (text.encode(), whole):
        names: dict[str, Any] = {}
        exec(each, names)  # noqa: S102  # what it does is what is compared
        results.append([names["f"](given) for given in (0, 3)])
    assert results[0] == results[1]
    assert (whole.count(b"return a + 2  #"), whole.count(b"\n    c = 1\n")) == (1, 1)
    assert all(sign in whole for sign in (b" and __traceback_info__ + 1\n", b" and not "))
