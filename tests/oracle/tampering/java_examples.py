"""Changes to Java tests."""

from __future__ import annotations

from tests.oracle.tampering.examples import Example, change, innocent, tampered

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


def swapped(old: str, new: str, text: str = MONEY) -> tuple[str, str]:
    """The file, and the file with `old` replaced."""
    assert old in text
    return text, text.replace(old, new, 1)


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
        change(PATH, *swapped('"1,2", "2,4", "3,6"', '"1,2"', ROWS)),
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
    innocent("a row is added", change(PATH, *swapped('"3,6"', '"3,6", "4,8"', ROWS))),
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
)
