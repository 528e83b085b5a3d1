"""Changes to Java tests."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, swap, tampered

PATH = "src/test/java/money/MoneyTest.java"
MONEY = """
    package money;

    import static org.junit.jupiter.api.Assertions.*;
    import org.junit.jupiter.api.Test;

    class MoneyTest {
        @Test
        void adds() {
            assertEquals(4, Money.add(2, 2));
        }

        @Test
        void subtracts() {
            assertEquals(2, Money.sub(5, 3));
        }
    }
"""
SECOND = """
        @Test
        void subtracts() {
            assertEquals(2, Money.sub(5, 3));
        }
"""


def body(after: str, before: str = "assertEquals(4, add(2, 2));") -> tuple[str, str]:
    """Two versions of one test's body."""
    return tuple(
        f"class MoneyTest {{\n  @Test\n  void adds() {{\n{text}\n  }}\n}}\n" for text in (before, after)
    )  # type: ignore[return-value]  # two of them


def swapped(old: str, new: str) -> tuple[str, str]:
    """The file, and the file with `old` replaced."""
    return swap(MONEY, old, new)


ROWS = 'class T {\n  @ParameterizedTest\n  @CsvSource({"1,2", "2,4", "3,6"})\n  void f(int a, int b) { assertEquals(b, twice(a)); }\n}\n'

TAMPERED: tuple[Example, ...] = (
    tampered("a test is deleted", "MoneyTest::subtracts", change(PATH, MONEY, MONEY.replace(SECOND, ""))),
    tampered("a test class is deleted", "was deleted with 2 tests", change(PATH, MONEY, None)),
    tampered(
        "a test loses its annotation",
        "MoneyTest::adds",
        change(PATH, *swapped("@Test\n        void adds", "void adds")),
    ),
    tampered(
        "a test is commented out", "subtracts", change(PATH, MONEY, MONEY.replace(SECOND, f"/*{SECOND}*/"))
    ),
    *(
        tampered(
            f"a test gains {mark}",
            "from running",
            change(PATH, *swapped("@Test\n        void adds", f"@Test\n        {mark}\n        void adds")),
        )
        for mark in (
            "@Disabled",
            '@Disabled("flaky")',
            "@Ignore",
            "@org.junit.Ignore",
            '@EnabledIfSystemProperty(named = "x", matches = "y")',
            "@DisabledOnOs(OS.LINUX)",
        )
    ),
    tampered(
        "a test is switched off for TestNG",
        "enabled = false",
        change(PATH, *swapped("@Test\n        void adds", "@Test(enabled = false)\n        void adds")),
    ),
    tampered(
        "a class is disabled",
        "keeps 2 tests",
        change(PATH, *swapped("class MoneyTest", "@Disabled\n    class MoneyTest")),
    ),
    *(
        tampered(f"the body becomes `{after}`", "checks nothing", change(PATH, *body(after)))
        for after in (
            "assertTrue(true);",
            "assertEquals(4, 4);",
            "int x = add(2, 2); assertEquals(x, x);",
            "assertFalse(false);",
            'assertNotNull("x");',
            "assertThat(add(2, 2));",
            "assertThat(true).isTrue();",
            "add(2, 2);",
            "",
            "if (false) { assertEquals(4, add(2, 2)); }",
            "try { assertEquals(4, add(2, 2)); } catch (Throwable t) { }",
            "try { assertEquals(4, add(2, 2)); } catch (AssertionError e) { log(e); }",
            "// assertEquals(4, add(2, 2));",
        )
    ),
    tampered(
        "a test assumes what is false",
        "assumeTrue",
        change(PATH, *body("assumeTrue(false);\nassertEquals(4, add(2, 2));")),
    ),
    tampered(
        "an expected exception is taken away",
        "checks nothing",
        change(
            PATH,
            "class T {\n  @Test(expected = Bad.class)\n  public void f() { g(); }\n}\n",
            "class T {\n  @Test\n  public void f() { }\n}\n",
        ),
    ),
    tampered(
        "an assertion is loosened",
        "less strictly",
        change(PATH, *body("assertNotNull(add(2, 2));")),
        worst="warning",
    ),
    tampered(
        "a fluent assertion is loosened",
        "less strictly",
        change(PATH, *body("assertThat(add(2, 2)).isNotNull();", "assertThat(add(2, 2)).isEqualTo(4);")),
        worst="warning",
    ),
    tampered(
        "an assertion is dropped",
        "1 assertion less",
        change(
            PATH,
            *body("assertEquals(4, add(2, 2));", "assertEquals(4, add(2, 2));\nassertEquals(1, add(0, 1));"),
        ),
        worst="warning",
    ),
    tampered(
        "rows are dropped",
        "1 rows where it ran for 3",
        change(PATH, *swap(ROWS, '"1,2", "2,4", "3,6"', '"1,2"')),
        worst="warning",
    ),
    tampered(
        "an old test is renamed so that it does not run",
        "testAdd",
        change(
            PATH,
            "class T extends TestCase {\n  public void testAdd() { assertEquals(2, add(1, 1)); }\n}\n",
            "class T extends TestCase {\n  public void xtestAdd() { assertEquals(2, add(1, 1)); }\n}\n",
        ),
    ),
    tampered(
        "a test is left out on Windows",
        "from running",
        change(
            PATH,
            *swapped(
                "@Test\n        void adds", "@Test\n        @DisabledOnOs(OS.WINDOWS)\n        void adds"
            ),
        ),
        worst="warning",
    ),
    *(
        tampered(
            f"the class gains `{' '.join(lines.split())}`",
            "2 tests from running",
            change(PATH, *swapped("class MoneyTest {\n", f"class MoneyTest {{\n{lines}\n")),
        )
        for lines in (
            "@BeforeEach void setUp() { Assumptions.assumeTrue(false); }",
            "@Before public void setUp() { Assume.assumeTrue(false); }",
            '@BeforeAll static void setUp() { assumeFalse(true, "later"); }',
            '@BeforeClass public static void setUp() { Assume.assumeTrue("later", false); }',
            "@BeforeEach void setUp() { Assumptions.abort(); }",
            "@BeforeEach void setUp() { Assumptions.assumeTrue(docker.isThere()); }",
            "@BeforeEach void setUp() { throw new TestAbortedException(); }",
            '@BeforeMethod public void setUp() { throw new SkipException("later"); }',
            "@BeforeAll static void setUp() { System.exit(0); }",
            "@BeforeAll static void setUp() { Runtime.getRuntime().halt(0); }",
            "static { System.exit(0); }",
        )
    ),
    *(
        tampered(
            f"a test begins with `{line}`",
            "from running",
            change(PATH, *body(f"{line}\nassertEquals(4, add(2, 2));")),
        )
        for line in (
            "System.exit(0);",
            'Assumptions.abort("later");',
            'throw new SkipException("later");',
            "assumeFalse(true);",
        )
    ),
    tampered(
        "a base class of the tests skips in its set-up",
        "setUp's assumeTrue keeps 1 test from running",
        change(
            PATH,
            *(
                f"class Base {{\n  @BeforeEach void setUp() {{ {line} }}\n}}\nclass T extends Base {{\n  @Test void f() {{ assertEquals(1, g()); }}\n}}\n"
                for line in ("", "assumeTrue(false);")
            ),
        ),
    ),
    tampered(
        "a test expects its own failure",
        "passes only if it fails now",
        change(
            PATH,
            "class T {\n  @Test\n  public void f() { assertEquals(1, g()); }\n}\n",
            "class T {\n  @Test(expected = AssertionError.class)\n  public void f() { assertEquals(1, g()); }\n}\n",
        ),
    ),
    tampered(
        "a test assumes that it does not run on Windows",
        "from running",
        change(PATH, *body("assumeFalse(OS.WINDOWS.isCurrentOs());\nassertEquals(4, add(2, 2));")),
        worst="warning",
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent("a new test class", change(PATH, None, MONEY)),
    innocent("a test is added", change(PATH, MONEY.replace(SECOND, ""), MONEY)),
    innocent(
        "a test class moves",
        change(PATH, MONEY, None),
        change("src/test/java/cash/MoneyTest.java", None, MONEY.replace("package money", "package cash")),
    ),
    innocent(
        "a test class is renamed",
        change(PATH, MONEY, None),
        change("src/test/java/money/CashTest.java", None, MONEY.replace("MoneyTest", "CashTest")),
    ),
    innocent("a test is renamed", change(PATH, *swapped("void adds", "void addsTwoNumbers"))),
    innocent("a test is made public", change(PATH, *swapped("void adds", "public void adds"))),
    innocent(
        "a display name is added",
        change(
            PATH,
            *swapped(
                "@Test\n        void adds", '@Test\n        @DisplayName("adds { numbers")\n        void adds'
            ),
        ),
    ),
    innocent(
        "an assertion is added",
        change(PATH, *body("assertEquals(4, add(2, 2));\nassertEquals(1, add(0, 1));")),
    ),
    innocent(
        "an assertion is stricter",
        change(PATH, *body("assertEquals(4, add(2, 2));", "assertNotNull(add(2, 2));")),
    ),
    innocent("JUnit becomes AssertJ", change(PATH, *body("assertThat(add(2, 2)).isEqualTo(4);"))),
    innocent(
        "assertTrue of an equality becomes assertEquals",
        change(PATH, *body("assertEquals(4, add(2, 2));", "assertTrue(add(2, 2) == 4);")),
    ),
    innocent("a message is added", change(PATH, *body('assertEquals(4, add(2, 2), "two and two");'))),
    innocent("a row is added", change(PATH, *swap(ROWS, '"3,6"', '"3,6", "4,8"'))),
    innocent(
        "JUnit 4 becomes JUnit 5",
        change(
            PATH,
            "import org.junit.Test;\nclass T {\n  @Test(expected = Bad.class)\n  public void f() { g(); }\n}\n",
            "import org.junit.jupiter.api.Test;\nclass T {\n  @Test\n  void f() { assertThrows(Bad.class, () -> g()); }\n}\n",
        ),
    ),
    innocent(
        "a disabled test is enabled",
        change(
            PATH,
            MONEY.replace("@Test\n        void adds", "@Test\n        @Disabled\n        void adds"),
            MONEY,
        ),
    ),
    innocent(
        "a text block speaks of @Disabled",
        change(
            PATH,
            *body('assertEquals(4, add(2, 2));\nassertEquals("""\n  @Disabled void x() { }\n""", render());'),
        ),
    ),
    innocent(
        "an Exception handler lets failures through",
        change(
            PATH,
            *body(
                "try { assertEquals(4, add(2, 2)); } catch (Exception e) { throw new RuntimeException(e); }"
            ),
        ),
    ),
    innocent(
        "a helper takes over",
        change(
            PATH,
            MONEY,
            MONEY.replace("assertEquals(2, Money.sub(5, 3));", "same(Money.sub(5, 3), 2);").replace(
                "class MoneyTest {",
                "class MoneyTest {\n        private void same(int a, int b) {\n            assertEquals(a, b);\n        }\n",
            ),
        ),
    ),
    innocent(
        "tests move into a nested class",
        change(
            PATH,
            "class T {\n  @Test\n  void f() { assertEquals(1, g()); }\n}\n",
            "class T {\n  @Nested\n  class Inner {\n    @Test\n    void f() { assertEquals(1, g()); }\n  }\n}\n",
        ),
    ),
    innocent(
        "a source class changes",
        change(
            "src/main/java/money/Money.java", "class Money {\n  @Test void f() { }\n}\n", "class Money { }\n"
        ),
    ),
    *(
        innocent(
            f"the class gains `{lines}`",
            change(PATH, *swapped("class MoneyTest {\n", f"class MoneyTest {{\n{lines}\n")),
        )
        for lines in (
            "@BeforeEach void setUp() { bank = new Bank(); }",
            "@BeforeEach void setUp() { Assumptions.assumeTrue(true); }",
            "@AfterAll static void tearDown() { bank.close(); }",
            'static { System.loadLibrary("money"); }',
            "void stop() { System.exit(0); }",
            "@BeforeEach void setUp() { reader.skip(3); }",
        )
    ),
    innocent(
        "a test of how the program ends",
        change(
            PATH,
            *body("assertEquals(0, catchSystemExit(() -> System.exit(0)));\nassertEquals(4, add(2, 2));"),
        ),
    ),
    innocent(
        "a new test runs where docker is",
        change(
            PATH,
            MONEY.replace(SECOND, ""),
            MONEY.replace(
                "assertEquals(2, Money", "assumeTrue(docker.isThere());\n            assertEquals(2, Money"
            ),
        ),
    ),
)
