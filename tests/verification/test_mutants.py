"""Which mutants a change has, by language and how changed functions are broken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lopen.verification.mutants import MOST, mutants
from lopen.verification.negative_control import FAILURE, did_not_compile, negative_control
from lopen.verification.test_files import FileChange

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
        [">= -> <", "3 -> 4"],
    ),
    "rust": (
        "src/lib.rs",
        "pub fn f(a: i32) -> i32 {\n    if a > 2 { return 1; }\n    a + 1\n}\n"
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { assert_eq!(super::f(1), 1 + 1); }\n}\n",
        ["> -> <=", "2 -> 3", "1 -> 2", "+ -> -", "1 -> 2"],
    ),
    "java": (
        "src/main/java/A.java",
        "class A {\n  int f(int a) { return a % 2; }\n  boolean g() { return ok(); }\n  String n() { return name; }\n}\n",
        ["% -> *", "2 -> 3"],
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

    every = mutants([FileChange(path, None, text)], most=50, most_of_one=50)

    found = sorted(every, key=lambda m: m.start)
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
    # The budget goes to the function that a criterion names first.
    assert mutants([FileChange("calc.py", None, many)], "f7 returns 7")[0].line == 30


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
    ("a.rs", "error[E0308]: mismatched types\n --> src/lib.rs:5:21"),
    (
        "a.rs",
        "error: expected expression, found `)`\nerror: could not compile `c` (lib test) due to 1 previous error",
    ),
    ("a.rs", "\x1b[1m\x1b[91merror\x1b[0m: could not compile `c` (lib) due to 2 previous errors"),
    ("A.java", "[INFO] ---\n[ERROR] COMPILATION ERROR : \n[INFO] ---"),
    ("A.java", "* What went wrong:\n> Compilation failed; see the compiler error output for details."),
    ("A.java", "src/A.java:1: error: incompatible types: String cannot be converted to int"),
    ("a.ts", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'."),
    ("a.tsx", "    src/my app/a.tsx:3:5 - error TS2322: Type 'string' is not assignable"),
]
NOTICED = [
    (
        "a.go",
        "--- FAIL: TestBuild (0.00s)\n    calc_test.go:7: got [build failed], want ok\nFAIL\tcalc\t0.002s",
    ),
    ("a.rs", "error: test failed, to rerun pass `--lib`"),
    ("a.rs", "---- tests::parses stdout ----\nerror: unexpected end of input\nit could not compile"),
    ("A.java", "java.lang.AssertionError: compilation failed for the script\n  at A.java:12: error handling"),
    ("a.ts", "AssertionError: no message holds error TS2322: none"),
    ("a.py", "error[E0308]: mismatched types"),
]


def test_only_the_compilers_own_lines_mean_a_refused_mutant() -> None:
    assert [case for case in REFUSED if not did_not_compile(*case)] == []
    assert [case for case in NOTICED if did_not_compile(*case)] == []


@settings(max_examples=100)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_any_text_has_its_mutants_without_error(what: str, data: st.DataObject) -> None:
    path, text, _ = CASES[what]
    end = data.draw(st.integers(0, len(text)))
    change = FileChange(path, None, text[:end])

    negative_control([change])
    for mutant in mutants([change]):
        assert mutant.applied(text[:end].encode()) != text[:end].encode()


# path, source, and the source in which each function fails at its start; None where there is nothing to break
BROKEN: dict[str, tuple[str, str, str | None]] = {
    "python": ("a.py", 'def f():\n    """Say."""\n    return 1\n\n\nclass A:\n    def g(self): return 2\n', 'def f():\n    """Say."""\n    {}; return 1\n\n\nclass A:\n    def g(self): {}; return 2\n'),
    "a python loop": ("a.py", "def f():\n    for a in b:\n        c(a)\n", "def f():\n    {}\n    for a in b:\n        c(a)\n"),
    "a python stub": ("a.py", 'class A:\n    def f(self):\n        """Say."""\n\n    def g(self): ...\n', None),
    "javascript": ("a.js", "const f = (a) => a.b;\nfunction g() { return 1; }\n", None),
    "go": ("a.go", "package a\n\nfunc F() int { return 1 }\n", "package a\n\nfunc F() int {{} return 1 }\n"),
    "rust": ("src/a.rs", "fn f() -> i32 { 1 }\n#[cfg(test)]\nmod t { #[test] fn g() { f(); } }\n", "fn f() -> i32 {{} 1 }\n#[cfg(test)]\nmod t { #[test] fn g() { f(); } }\n"),
    "java": ("A.java", "class A { A() { super(); a = 1; } int f() { return a; } void g() {} }\n", "class A { A() { super();{} a = 1; } int f() {{} return a; } void g() {} }\n"),
    "c": ("a.c", "int f(int a) { return a; }\n", "int f(int a) {{} return a; }\n"),
    "a test": ("tests/test_a.py", "def test_a():\n    assert f()\n", None),
    "a benchmark": ("benchmarks/speed.py", "def main():\n    run()\n", None),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_each_changed_function_fails_at_its_start(what: str) -> None:
    path, text, expected = BROKEN[what]

    control = negative_control([FileChange(path, None, text)])

    if what == "javascript":
        broken = control.edits[path](text.encode()).decode()
        assert broken.count("throw new Error(") == len(control.broken) == 2
    elif expected is None:
        assert control.edits == {}
    else:
        broken = control.edits[path](text.encode()).decode()
        for failure in sorted(FAILURE.values(), key=len, reverse=True):
            broken = broken.replace(failure.strip() if path.endswith(".py") else failure, "{}")
        assert broken == expected


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", "def f(a):\n    return a\n", 'def f(a: int) -> int:\n    """Say."""\n    return a  # it\n'),
        ("a.ts", "function f(a) { return a; }\n", "function f(a: number): number { return a }\n"),
        (
            "a.go",
            "package a\n\nfunc F() int { return 1 }\n",
            "package a\n\n// Say.\nfunc F() int {\n\treturn 1\n}\n",
        ),
    ],
)
def test_what_readers_alone_need_breaks_no_function(path: str, before: str, after: str) -> None:
    assert negative_control([FileChange(path, before, after)]).broken == ()
    assert negative_control([FileChange(path, before, after.replace("return", "return 1 +"))]).broken != ()
