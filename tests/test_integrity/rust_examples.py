"""Changes to Rust tests."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, swap, tampered

PATH = "src/money.rs"
MONEY = """
    pub fn add(a: i32, b: i32) -> i32 { a + b }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn adds() {
            assert_eq!(add(2, 2), 4);
        }

        #[test]
        fn adds_nothing() {
            assert_eq!(add(2, 0), 2);
        }
    }
"""
SECOND = """
        #[test]
        fn adds_nothing() {
            assert_eq!(add(2, 0), 2);
        }
"""


def body(after: str, before: str = "assert_eq!(add(2, 2), 4);") -> tuple[str, str]:
    """Two versions of one test's body."""
    return f"#[test]\nfn adds() {{\n{before}\n}}\n", f"#[test]\nfn adds() {{\n{after}\n}}\n"


def swapped(old: str, new: str) -> tuple[str, str]:
    """The file, and the file with `old` replaced."""
    return swap(MONEY, old, new)


TAMPERED: tuple[Example, ...] = (
    tampered("a test is deleted", "tests::adds_nothing", change(PATH, MONEY, MONEY.replace(SECOND, ""))),
    tampered("a test file is deleted", "was deleted with 1 test", change("tests/it.rs", body("")[0], None)),
    tampered(
        "the test module is deleted",
        "gone: 2 tests",
        change(PATH, MONEY, MONEY.partition("    #[cfg(test)]")[0]),
    ),
    tampered(
        "a test loses its attribute",
        "tests::adds",
        change(PATH, *swapped("#[test]\n        fn adds()", "fn adds()")),
    ),
    tampered(
        "a test is commented out",
        "adds_nothing",
        change(PATH, MONEY, MONEY.replace(SECOND, f"/* {SECOND} */")),
    ),
    *(
        tampered(
            f"a test gains {mark}",
            "from running",
            change(
                PATH, *swapped("#[test]\n        fn adds()", f"#[test]\n        {mark}\n        fn adds()")
            ),
        )
        for mark in (
            "#[ignore]",
            '#[ignore = "slow"]',
            '#[cfg(feature = "slow")]',
            "#[cfg(any())]",
            '#[cfg_attr(not(feature = "x"), ignore)]',
        )
    ),
    tampered(
        "the module is not compiled",
        "keeps 2 tests",
        change(PATH, *swapped("#[cfg(test)]", '#[cfg(all(test, feature = "slow"))]')),
    ),
    tampered(
        "the file is not compiled",
        "keeps 1 test",
        change("tests/it.rs", body("")[0], "#![cfg(any())]\n" + body("")[0]),
    ),
    *(
        tampered(f"the body becomes `{after}`", "checks nothing", change(PATH, *body(after)))
        for after in (
            "assert!(true);",
            "assert_eq!(4, 4);",
            "let x = add(2, 2); assert_eq!(x, x);",
            "assert!(add(2, 2) == 4 || true);",
            "let _ = add(2, 2);",
            "",
            "return;\nassert_eq!(add(2, 2), 4);",
            "if false { assert_eq!(add(2, 2), 4); }",
            "// assert_eq!(add(2, 2), 4);",
            "let _ = std::panic::catch_unwind(|| { assert_eq!(add(2, 2), 4); });",
        )
    ),
    tampered(
        "should_panic is taken away",
        "checks nothing",
        change(
            PATH, "#[test]\n#[should_panic]\nfn bad() { add(-1, 0); }\n", "#[test]\nfn bad() { let _ = 1; }\n"
        ),
    ),
    tampered(
        "an assertion is loosened",
        "less strictly",
        change(PATH, *body("assert!(add(2, 2) > 0);")),
        worst="warning",
    ),
    tampered(
        "an assertion is turned round",
        "less strictly",
        change(PATH, *body("assert_ne!(add(2, 2), 5);")),
        worst="warning",
    ),
    tampered(
        "an assertion is dropped",
        "1 assertion less",
        change(
            PATH, *body("assert_eq!(add(2, 2), 4);", "assert_eq!(add(2, 2), 4);\nassert_eq!(add(1, 0), 1);")
        ),
        worst="warning",
    ),
    tampered(
        "rows are dropped",
        "1 rows where it ran for 2",
        change(
            PATH,
            "#[rstest]\n#[case(1, 2)]\n#[case(2, 4)]\nfn f(#[case] a: i32, #[case] b: i32) { assert_eq!(twice(a), b); }\n",
            "#[rstest]\n#[case(1, 2)]\nfn f(#[case] a: i32, #[case] b: i32) { assert_eq!(twice(a), b); }\n",
        ),
        worst="warning",
    ),
    tampered(
        "a test is left out on another platform",
        "from running",
        change(
            PATH,
            *swapped(
                "#[test]\n        fn adds()",
                '#[test]\n        #[cfg(not(any(windows, target_os = "macos")))]\n        fn adds()',
            ),
        ),
        worst="warning",
    ),
    *(
        tampered(
            f"a test that asserts gains {mark}",
            "passes only if it fails now",
            change(
                PATH, *swapped("#[test]\n        fn adds()", f"#[test]\n        {mark}\n        fn adds()")
            ),
        )
        for mark in (
            "#[should_panic]",
            '#[should_panic(expected = "left")]',
            "#[cfg_attr(all(), should_panic)]",
        )
    ),
    tampered(
        "a test that only calls gains should_panic",
        "passes only if it fails now",
        change(
            PATH,
            '#[test]\nfn f() { parse("1").unwrap(); }\n',
            '#[test]\n#[should_panic]\nfn f() { parse("1").unwrap(); }\n',
        ),
    ),
    *(
        tampered(
            f"a test gains {mark}, which is never compiled",
            "keeps 1 test from running",
            change(
                PATH, *swapped("#[test]\n        fn adds()", f"#[test]\n        {mark}\n        fn adds()")
            ),
        )
        for mark in (
            "#[cfg(not(test))]",
            "#[cfg(false)]",
            "#[cfg_attr(all(), cfg(any()))]",
            "#[cfg_attr(all(), ignore)]",
        )
    ),
    *(
        tampered(
            f"the file of tests is declared under {mark}",
            "keeps other tests from running",
            change("src/lib.rs", "#[cfg(test)]\nmod tests;\n", f"{mark}\nmod tests;\n"),
        )
        for mark in ("#[cfg(any())]", "#[cfg(not(test))]")
    ),
    tampered(
        "a test ends the process",
        "process::exit(0) keeps 1 test",
        change(PATH, *body("assert_eq!(add(2, 2), 4);\nstd::process::exit(0);")),
    ),
    tampered(
        "the file of tests needs a feature",
        "keeps other tests from running",
        change(
            "src/lib.rs", "#[cfg(test)]\nmod tests;\n", '#[cfg(all(test, feature = "slow"))]\nmod tests;\n'
        ),
        worst="warning",
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent("a new file with tests", change(PATH, None, MONEY)),
    innocent("a test is added", change(PATH, MONEY.replace(SECOND, ""), MONEY)),
    innocent(
        "the tests move to a file of their own",
        change(PATH, MONEY, MONEY.partition("    mod tests {")[0] + "    mod tests;\n"),
        change(
            "src/money/tests.rs",
            None,
            "    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(2, 2), 4);\n    }\n"
            + SECOND,
        ),
    ),
    innocent("a test is renamed", change(PATH, *swapped("adds_nothing", "adding_zero_changes_nothing"))),
    innocent(
        "an assertion is added", change(PATH, *body("assert_eq!(add(2, 2), 4);\nassert_eq!(add(1, 0), 1);"))
    ),
    innocent(
        "an assertion is stricter",
        change(PATH, *body("assert_eq!(add(2, 2), 4);", "assert!(add(2, 2) > 0);")),
    ),
    innocent(
        "assert becomes assert_eq",
        change(PATH, *body("assert_eq!(add(2, 2), 4);", "assert!(add(2, 2) == 4);")),
    ),
    innocent("a message is added", change(PATH, *body('assert_eq!(add(2, 2), 4, "two and two");'))),
    innocent(
        "a test returns a result",
        change(
            PATH,
            "#[test]\nfn f() {\n assert_eq!(g().unwrap(), 1);\n}\n",
            "#[test]\nfn f() -> Result<(), E> {\n assert_eq!(g()?, 1);\n Ok(())\n}\n",
        ),
    ),
    innocent(
        "a test becomes async",
        change(
            PATH,
            "#[test]\nfn f() {\n assert_eq!(g(), 1);\n}\n",
            "#[tokio::test]\nasync fn f() {\n assert_eq!(g().await, 1);\n}\n",
        ),
    ),
    innocent("ignore is taken away", change(PATH, MONEY.replace("#[test]", "#[test]\n#[ignore]"), MONEY)),
    innocent(
        "an attribute that allows is added",
        change(
            PATH,
            *swapped(
                "#[test]\n        fn adds()", "#[test]\n        #[allow(clippy::eq_op)]\n        fn adds()"
            ),
        ),
    ),
    innocent(
        "a string speaks of ignore",
        change(
            PATH,
            *body(
                'assert_eq!(add(2, 2), 4);\nassert_eq!(render(r#"#[ignore] fn x() { assert!(true) }"#), "\'{\'");'
            ),
        ),
    ),
    innocent(
        "lifetimes and characters",
        change(
            PATH,
            "fn f<'a>(x: &'a str) -> char { '{' }\n#[test]\nfn g() { assert_eq!(f(\"\"), '{'); }\n",
            "fn f<'a>(x: &'a str) -> char { '}' }\n#[test]\nfn g() { assert_eq!(f(\"\"), '{'); }\n",
        ),
    ),
    innocent(
        "a nested comment",
        change(PATH, MONEY, MONEY.replace("use super::*;", "use super::*; /* a /* #[ignore] */ } */")),
    ),
    innocent(
        "a helper takes over",
        change(
            PATH,
            MONEY,
            MONEY.replace("assert_eq!(add(2, 0), 2);", "same(add(2, 0), 2);").replace(
                "use super::*;", "use super::*;\n        fn same(a: i32, b: i32) { assert_eq!(a, b); }"
            ),
        ),
    ),
    innocent(
        "a row is added",
        change(
            PATH,
            "#[rstest]\n#[case(1, 2)]\nfn f(#[case] a: i32, #[case] b: i32) { assert_eq!(twice(a), b); }\n",
            "#[rstest]\n#[case(1, 2)]\n#[case(2, 4)]\nfn f(#[case] a: i32, #[case] b: i32) { assert_eq!(twice(a), b); }\n",
        ),
    ),
    innocent(
        "the code changes and its tests do not",
        change(PATH, *swapped("{ a + b }", "{\n        a.wrapping_add(b)\n    }")),
    ),
    innocent(
        "a test is rewritten to expect a panic",
        change(
            PATH,
            "#[test]\nfn negative() { assert!(root(-1).is_nan()); }\n",
            "#[test]\n#[should_panic]\nfn negative() { root(-1); }\n",
        ),
    ),
    innocent(
        "a new test expects a panic behind an assertion",
        change(
            PATH,
            MONEY,
            MONEY
            + "\n    #[test]\n    #[should_panic]\n    fn f() { let x = make(); assert_eq!(x.len(), 1); x.bad(); }\n",
        ),
    ),
    innocent(
        "should_panic says what it expects",
        change(
            PATH,
            "#[test]\n#[should_panic]\nfn f() { root(-1); }\n",
            '#[test]\n#[should_panic(expected = "negative")]\nfn f() { root(-1); }\n',
        ),
    ),
    innocent(
        "a child process of the test ends itself",
        change(
            PATH,
            *body('if env::var("CHILD").is_ok() {\n std::process::exit(0);\n}\nassert_eq!(add(2, 2), 4);'),
        ),
    ),
    innocent(
        "the tests' file is declared",
        change("src/lib.rs", "mod money;\n", "mod money;\n#[cfg(test)]\nmod tests;\n"),
    ),
    innocent("a module for Windows", change("src/lib.rs", "", "#[cfg(windows)]\nmod windows;\n")),
)
