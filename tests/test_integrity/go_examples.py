"""Changes to Go tests."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, swap, tampered

PATH = "money/money_test.go"
MONEY = """
package money

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(2, 2); got != 4 {
		t.Errorf("Add(2, 2) = %d", got)
	}
}

func TestSub(t *testing.T) {
	if Sub(5, 3) != 2 {
		t.Fatal("wrong")
	}
}
"""
TABLE = """
package money

func TestAdd(t *testing.T) {
	for _, c := range []struct{ a, b, want int }{
		{1, 1, 2},
		{2, 2, 4},
	} {
		if got := Add(c.a, c.b); got != c.want {
			t.Errorf("%v", got)
		}
	}
}
"""


def body(
    after: str, before: str = 'if got := Add(2, 2); got != 4 {\n\tt.Errorf("%d", got)\n}'
) -> tuple[str, str]:
    """Two versions of one test's body."""
    return tuple(f"package money\n\nfunc TestAdd(t *testing.T) {{\n{text}\n}}\n" for text in (before, after))  # type: ignore[return-value]  # two of them


def swapped(old: str, new: str) -> tuple[str, str]:
    """The file, and the file with `old` replaced."""
    return swap(MONEY, old, new)


WITHOUT_SUB = MONEY.partition("func TestSub")[0]
TESTIFY = "assert.Equal(t, 4, Add(2, 2))"


def main(lines: str) -> str:
    """A TestMain."""
    return f"\nfunc TestMain(m *testing.M) {{\n{lines}\n}}\n"


TAMPERED: tuple[Example, ...] = (
    tampered("a test function is deleted", "TestSub", change(PATH, MONEY, WITHOUT_SUB)),
    tampered("a test file is deleted", "was deleted with 2 tests", change(PATH, MONEY, None)),
    tampered(
        "a test is renamed so that it does not run",
        "is now testSub",
        change(PATH, *swapped("TestSub", "testSub")),
    ),
    tampered(
        "a test takes a name that is no test's", "TestSub", change(PATH, *swapped("TestSub", "Testsub"))
    ),
    tampered(
        "a test file takes a name that is not read",
        "does not look",
        change(PATH, MONEY, None),
        change("money/_money_test.go", None, MONEY),
    ),
    tampered(
        "a test file takes another platform's name",
        "does not look",
        change(PATH, MONEY, None),
        change("money/money_windows_test.go", None, MONEY),
    ),
    tampered(
        "a file is left out by a build constraint",
        "keeps 2 tests",
        change(PATH, MONEY, "//go:build ignore\n\n" + MONEY.lstrip("\n")),
    ),
    tampered(
        "a file is left out by an old build constraint",
        "keeps 2 tests",
        change(PATH, MONEY, "// +build integration\n\n" + MONEY.lstrip("\n")),
    ),
    *(
        tampered(
            f"a test calls {call}",
            "from running",
            change(PATH, *body(f"{call}\nif Add(2, 2) != 4 {{\n\tt.Fatal()\n}}")),
        )
        for call in (
            't.Skip("later")',
            "t.SkipNow()",
            't.Skipf("%s", why)',
            'if os.Getenv("CI") != "" {\n\tt.Skip("x")\n}',
        )
    ),
    *(
        tampered(f"the body becomes `{after}`", "checks nothing", change(PATH, *body(after)))
        for after in (
            "Add(2, 2)",
            "_ = Add(2, 2)",
            'if got := Add(2, 2); got != 4 {\n\tt.Logf("%d", got)\n}',
            'if false {\n\tt.Error("x")\n}',
            "got := Add(2, 2)\nif got != got {\n\tt.Error(got)\n}",
            "return\nif Add(2, 2) != 4 {\n\tt.Error()\n}",
            "assert.True(t, true)",
            "assert.Equal(t, 4, 4)",
            "// if Add(2, 2) != 4 { t.Error() }",
            "",
        )
    ),
    tampered(
        "a testify assertion becomes idle",
        "checks nothing",
        change(PATH, *body("require.True(t, 1 == 1)", TESTIFY)),
    ),
    tampered(
        "a testify assertion is loosened",
        "less strictly",
        change(PATH, *body("assert.NotNil(t, Add(2, 2))", TESTIFY)),
        worst="warning",
    ),
    tampered(
        "a condition is loosened",
        "less strictly",
        change(PATH, *body('if got := Add(2, 2); got < 0 {\n\tt.Errorf("%d", got)\n}')),
        worst="warning",
    ),
    tampered(
        "a subtest is deleted",
        "TestAdd/two",
        change(
            PATH,
            *body(
                't.Run("one", func(t *testing.T) {\n\tif Add(1, 0) != 1 { t.Error() }\n})',
                't.Run("one", func(t *testing.T) {\n\tif Add(1, 0) != 1 { t.Error() }\n})\nt.Run("two", func(t *testing.T) {\n\tif Minus(1, 1) != 2 { t.Error() }\n})',
            ),
        ),
    ),
    tampered(
        "rows are dropped",
        "1 rows where it ran for 2",
        change(PATH, *swap(TABLE, "\t	{2, 2, 4},\n", "")),
        worst="warning",
    ),
    tampered(
        "no row is left",
        "no rows left",
        change(PATH, TABLE, TABLE.replace("\t	{2, 2, 4},\n", "").replace("\t	{1, 1, 2},\n", "")),
    ),
    tampered(
        "an example loses its output",
        "checks nothing",
        change(
            PATH,
            "package m\n\nfunc ExampleAdd() {\n\tfmt.Println(Add(1, 1))\n\t// Output: 2\n}\n",
            "package m\n\nfunc ExampleAdd() {\n\tfmt.Println(Add(1, 1))\n}\n",
        ),
    ),
    tampered(
        "an assertion is dropped",
        "1 assertion less",
        change(PATH, *body(TESTIFY, TESTIFY + "\nassert.Equal(t, 1, Add(0, 1))")),
        worst="warning",
    ),
    tampered(
        "a helper stops failing",
        "checks nothing",
        change(
            PATH,
            *(
                f"package m\n\nfunc same(t *testing.T, a, b int) {{\n\tif a != b {{\n\t\tt.{call}()\n\t}}\n}}\n\nfunc TestAdd(t *testing.T) {{\n\tsame(t, Add(1, 1), 2)\n}}\n"
                for call in ("Fatal", "Log")
            ),
        ),
    ),
    tampered(
        "a long test is left out of short runs",
        "testing.Short()",
        change(PATH, *body('if testing.Short() {\n\tt.Skip("slow")\n}\nif Add(2, 2) != 4 {\n\tt.Fatal()\n}')),
        worst="warning",
    ),
    *(
        tampered(f"TestMain becomes `{lines}`", says, change(PATH, MONEY, MONEY + main(lines)))
        for lines, says in (
            ("", "never calls m.Run()"),
            ("setUp()", "never calls m.Run()"),
            ("os.Exit(0)", "TestMain's os.Exit(0)"),
            ("m.Run()\nos.Exit(0)", "TestMain's os.Exit(0)"),
            ("_ = m.Run()\nos.Exit( 0 )", "TestMain's os.Exit( 0 )"),
            ("return\nos.Exit(m.Run())", "never calls m.Run()"),
            ("if false {\nos.Exit(m.Run())\n}", "never calls m.Run()"),
            ("// os.Exit(m.Run())", "never calls m.Run()"),
            ('flag.Set("test.run", "TestNone")\nos.Exit(m.Run())', "test.run"),
        )
    ),
    tampered(
        "a new file's TestMain runs nothing",
        "never calls m.Run()",
        change("money/main_test.go", None, "package money\n" + main("os.Exit(code)")),
    ),
    tampered(
        "the test binary ends as it starts",
        "init's os.Exit(0)",
        change(PATH, MONEY, MONEY + "\nfunc init() {\n\tos.Exit(0)\n}\n"),
    ),
    tampered(
        "TestMain gives up under a condition",
        "TestMain's os.Exit(0) if",
        change(PATH, MONEY, MONEY + main('if os.Getenv("DB") == "" {\nos.Exit(0)\n}\nos.Exit(m.Run())')),
        worst="warning",
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent("a new test file", change(PATH, None, MONEY)),
    innocent("a test is added", change(PATH, WITHOUT_SUB, MONEY)),
    innocent("a test file is renamed", change(PATH, MONEY, None), change("money/sum_test.go", None, MONEY)),
    innocent(
        "a test moves to another file",
        change(PATH, MONEY, WITHOUT_SUB),
        change(
            "money/sub_test.go",
            None,
            "package money\n\nfunc TestSub" + MONEY.partition("func TestSub")[2],
        ),
    ),
    innocent("a test is renamed", change(PATH, *swapped("TestSub", "TestSubtract"))),
    innocent(
        "a row is added",
        change(
            PATH,
            *swap(TABLE, "\t	{2, 2, 4},\n", "\t	{2, 2, 4},\n\t	{3, 3, 6},\n"),
        ),
    ),
    innocent("rows get names", change(PATH, TABLE, TABLE.replace("{1, 1, 2}", "{a: 1, b: 1, want: 2}"))),
    innocent(
        "a test becomes a table",
        change(
            PATH,
            *body(
                'for _, c := range []struct{ a, b, want int }{\n\t{2, 2, 4},\n\t{1, 1, 2},\n} {\n\tif got := Add(c.a, c.b); got != c.want {\n\t\tt.Errorf("%d", got)\n\t}\n}'
            ),
        ),
    ),
    innocent(
        "an assertion is added", change(PATH, *body(TESTIFY + "\nassert.Equal(t, 1, Add(0, 1))", TESTIFY))
    ),
    innocent(
        "testify becomes plain Go",
        change(PATH, *body('if got := Add(2, 2); got != 4 {\n\tt.Errorf("%d", got)\n}', TESTIFY)),
    ),
    innocent("plain Go becomes testify", change(PATH, *body(TESTIFY))),
    innocent("Errorf becomes Fatalf", change(PATH, *swapped("t.Errorf", "t.Fatalf"))),
    innocent("a message is reworded", change(PATH, *swapped('"wrong"', '"Sub is wrong"'))),
    innocent(
        "a subtest is added",
        change(
            PATH,
            *body(
                't.Run("one", func(t *testing.T) {\n\tif Add(2, 2) != 4 { t.Error() }\n})\nt.Run("two", func(t *testing.T) {\n\tif Add(1, 1) != 2 { t.Error() }\n})',
                't.Run("one", func(t *testing.T) {\n\tif Add(2, 2) != 4 { t.Error() }\n})',
            ),
        ),
    ),
    innocent(
        "tests run side by side",
        change(PATH, *body('t.Parallel()\nif got := Add(2, 2); got != 4 {\n\tt.Errorf("%d", got)\n}')),
    ),
    innocent(
        "an error is checked first",
        change(
            PATH,
            *body(
                'got, err := Add(2, 2)\nif err != nil {\n\tt.Fatal(err)\n}\nif got != 4 {\n\tt.Errorf("%d", got)\n}'
            ),
        ),
    ),
    innocent(
        "a helper takes over",
        change(
            PATH,
            MONEY,
            MONEY.replace(
                '\tif Sub(5, 3) != 2 {\n\t	t.Fatal("wrong")\n\t}',
                "\tsame(t, Sub(5, 3), 2)",
            )
            + "\n    func same(t *testing.T, a, b int) {\n\tt.Helper()\n\tif a != b {\n\t	t.Fatal(a)\n\t}\n    }\n",
        ),
    ),
    innocent(
        "a skip is taken away",
        change(
            PATH,
            *body("if Add(2, 2) != 4 {\n\tt.Fatal()\n}", 't.Skip("x")\nif Add(2, 2) != 4 {\n\tt.Fatal()\n}'),
        ),
    ),
    innocent(
        "a string speaks of t.Skip",
        change(
            PATH,
            *body(
                'if Add(2, 2) != 4 {\n\tt.Fatal("t.Skip()", `func TestX(t *testing.T) {`)\n}',
                "if Add(2, 2) != 4 {\n\tt.Fatal()\n}",
            ),
        ),
    ),
    innocent(
        "a source file changes",
        change("money/money.go", "package money\n\nfunc TestAdd() {}\n", "package money\n"),
    ),
    *(
        innocent(f"TestMain becomes `{lines}`", change(PATH, MONEY, MONEY + main(lines)))
        for lines in (
            "os.Exit(m.Run())",
            "m.Run()",
            "setUp()\ncode := m.Run()\ntearDown()\nos.Exit(code)",
            "os.Exit(run(m))",
            "goleak.VerifyTestMain(m)",
            "if err := setUp(); err != nil {\nos.Exit(1)\n}\nos.Exit(m.Run())",
            "flag.Parse()\nos.Exit(m.Run())",
        )
    ),
    innocent(
        "a command ends with success",
        change("cmd/money/main.go", None, "package main\n\nfunc main() {\n\tos.Exit(0)\n}\n"),
    ),
)
