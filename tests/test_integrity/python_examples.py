"""Changes to Python tests."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, tampered

PATH = "tests/test_money.py"
ADD = """
    from money import add

    def test_add():
        assert add(2, 2) == 4
"""
ADD_AND_SUB = (
    ADD
    + """
    def test_sub():
        assert sub(5, 3) == 2
"""
)


def body(after: str, before: str = "assert add(2, 2) == 4") -> tuple[str, str]:
    """Two versions of one test's body."""

    def whole(lines: str) -> str:
        indented = "\n".join(f"    {line}" for line in lines.splitlines())
        return f"import os\nimport pytest\nfrom money import add\n\ndef test_add():\n{indented}\n"

    return whole(before), whole(after)


def in_class(after: str, before: str) -> tuple[str, str]:
    """Two versions of a class's inside."""

    def whole(lines: str) -> str:
        indented = "\n".join(f"    {line}" if line else "" for line in lines.splitlines())
        return f"import unittest\n\nclass TestMoney(unittest.TestCase):\n{indented}\n"

    return whole(before), whole(after)


TAMPERED: tuple[Example, ...] = (
    tampered("a test function is deleted", "test_sub", change(PATH, ADD_AND_SUB, ADD)),
    tampered("a test file is deleted", "was deleted with 2 tests", change(PATH, ADD_AND_SUB, None)),
    tampered(
        "a test that calls nothing is deleted beside a new one of the same shape",
        "was deleted with 1 test",
        change(PATH, "def test_sum():\n    assert 1 + 1 == 2\n", None),
        change("tests/test_calc.py", None, "def test_add():\n    assert add(1, 2) == 3\n"),
    ),
    tampered(
        "a test is commented out",
        "test_sub",
        change(PATH, ADD_AND_SUB, ADD + "\n    # def test_sub():\n    #     assert sub(5, 3) == 2\n"),
    ),
    tampered(
        "a test is renamed so that it is not collected",
        "is now _test_add",
        change(PATH, ADD, ADD.replace("test_add", "_test_add")),
    ),
    tampered(
        "a test file is renamed so that it is not collected",
        "does not look",
        change(PATH, ADD, None),
        change("tests/money_checks.py", None, ADD),
    ),
    tampered(
        "a class is renamed so that it is not collected",
        "test_add",
        change(
            PATH,
            "class TestMoney:\n    def test_add(self):\n        assert add(1, 1) == 2\n",
            "class Money:\n    def test_add(self):\n        assert add(1, 1) == 2\n",
        ),
    ),
    tampered(
        "a later test of the same name hides the first",
        "always true",
        change(PATH, ADD, ADD + "\n    def test_add():\n        assert True\n"),
    ),
    tampered("a test is deleted by a statement", "test_add", change(PATH, ADD, ADD + "\n    del test_add\n")),
    tampered(
        "a test is deleted while another one with the same shape is added",
        "test_sub",
        change(PATH, ADD_AND_SUB, ADD_AND_SUB.replace("sub", "mul")),
    ),
    tampered(
        "a test of the same name in another file does not stand in for a deleted one",
        "test_default",
        change(PATH, "def test_default():\n    assert currency() == 'EUR'\n", None),
        change("tests/test_log.py", None, "def test_default():\n    assert level() == 'info'\n"),
    ),
    *(
        tampered(
            f"a test gains {mark}",
            "keeps 1 test from running",
            change(PATH, ADD, ADD.replace("    def", f"    {mark}\n    def")),
        )
        for mark in (
            "@pytest.mark.skip",
            "@pytest.mark.skip(reason='flaky')",
            "@pytest.mark.xfail",
            "@pytest.mark.xfail(strict=True)",
            "@pytest.mark.skipif(True, reason='x')",
            "@pytest.mark.skipif(sys.platform == 'linux', reason='x')",
            "@pytest.mark.skipif('CI' in os.environ, reason='x')",
            "@unittest.skip('later')",
            "@unittest.skipIf(1, 'later')",
            "@unittest.skipUnless(False, 'later')",
            "@unittest.expectedFailure",
        )
    ),
    *(
        tampered(
            f"a test begins with {call}",
            "from running",
            change(PATH, *body(f"{call}\nassert add(2, 2) == 4")),
        )
        for call in (
            "pytest.skip('later')",
            "pytest.xfail('known')",
            "raise unittest.SkipTest('later')",
            "if os.environ.get('CI'):\n    pytest.skip('slow')",
            "pytest.importorskip('nothing')",
            "if os.environ.get('CI'):\n    return",
        )
    ),
    tampered(
        "a unittest method skips itself",
        "self.skipTest",
        change(
            PATH,
            *in_class(
                "def test_add(self):\n    self.skipTest('x')\n    self.assertEqual(add(1, 1), 2)",
                "def test_add(self):\n    self.assertEqual(add(1, 1), 2)",
            ),
        ),
    ),
    tampered(
        "a module is marked",
        "keeps 2 tests",
        change(PATH, ADD_AND_SUB, "    pytestmark = pytest.mark.skip\n" + ADD_AND_SUB),
    ),
    tampered(
        "a module skips itself",
        "keeps 2 tests",
        change(
            PATH,
            ADD_AND_SUB,
            "    import pytest\n    pytest.skip('x', allow_module_level=True)\n" + ADD_AND_SUB,
        ),
    ),
    tampered(
        "tests are put under a condition",
        "its condition",
        change(
            PATH,
            "def test_a():\n    assert f() == 1\n",
            "if HAVE_F:\n    def test_a():\n        assert f() == 1\n",
        ),
    ),
    tampered(
        "tests are put where they are never defined",
        "test_a",
        change(
            PATH,
            "def test_a():\n    assert f() == 1\n",
            "if False:\n    def test_a():\n        assert f() == 1\n",
        ),
    ),
    tampered(
        "a row is marked as skipped",
        "on a row",
        change(
            PATH,
            "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert f(n) == n\n",
            "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.skip)])\ndef test_n(n):\n    assert f(n) == n\n",
        ),
    ),
    tampered(
        "no row is left",
        "no rows left",
        change(
            PATH,
            "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert f(n) == n\n",
            "@pytest.mark.parametrize('n', [])\ndef test_n(n):\n    assert f(n) == n\n",
        ),
    ),
    tampered(
        "rows are dropped",
        "2 rows where it ran for 3",
        change(
            PATH,
            "@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_n(n):\n    assert f(n) == n\n",
            "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert f(n) == n\n",
        ),
        worst="warning",
    ),
    *(
        tampered(
            f"the assertion becomes `{after}`", "test_add checks nothing: what", change(PATH, *body(after))
        )
        for after in (
            "assert True",
            "assert 1",
            "assert add(2, 2) == 4 or True",
            "assert (add(2, 2) == 4, 'message')",
            "result = add(2, 2)\nassert result == result",
            "assert 4 == 4",
            "assert len([add(2, 2)]) >= 0",
            "assert not False",
            "assert 'add works'",
            "assert add(2, 2) == mock.ANY",
            "assert isinstance(add(2, 2), object)",
        )
    ),
    tampered("the body becomes pass", "asserts nothing", change(PATH, *body("pass"))),
    tampered("the body becomes a docstring", "asserts nothing", change(PATH, *body('"""Later."""'))),
    tampered("the assertion goes and the call stays", "asserts nothing", change(PATH, *body("add(2, 2)"))),
    tampered(
        "the assertion becomes a print", "asserts nothing", change(PATH, *body("print(add(2, 2) == 4)"))
    ),
    tampered("a smoke test is emptied", "was emptied", change(PATH, *body("pass", "add(2, 2)"))),
    tampered(
        "a return stands before the assertion",
        "never reached",
        change(PATH, *body("return\nassert add(2, 2) == 4")),
    ),
    tampered(
        "the assertion is put under if False",
        "never reached",
        change(PATH, *body("if False:\n    assert add(2, 2) == 4")),
    ),
    tampered(
        "the assertion loops over nothing",
        "never reached",
        change(PATH, *body("for _ in []:\n    assert add(2, 2) == 4")),
    ),
    tampered(
        "the assertion moves into a function that nobody calls",
        "never reached",
        change(PATH, *body("def check():\n    assert add(2, 2) == 4")),
    ),
    *(
        tampered(
            f"failures are swallowed by {how.splitlines()[-2].strip()}", "swallowed", change(PATH, *body(how))
        )
        for how in (
            "try:\n    assert add(2, 2) == 4\nexcept AssertionError:\n    pass",
            "try:\n    assert add(2, 2) == 4\nexcept Exception as e:\n    print(e)",
            "try:\n    assert add(2, 2) == 4\nexcept:\n    return",
            "import contextlib\nwith contextlib.suppress(AssertionError):\n    assert add(2, 2) == 4",
        )
    ),
    tampered(
        "half of the assertions become idle",
        "checks less",
        change(
            PATH, *body("assert add(2, 2) == 4\nassert True", "assert add(2, 2) == 4\nassert add(0, 1) == 1")
        ),
    ),
    tampered(
        "an assertion is dropped",
        "1 assertion less",
        change(PATH, *body("assert add(2, 2) == 4", "assert add(2, 2) == 4\nassert add(0, 1) == 1")),
        worst="warning",
    ),
    *(
        tampered(
            f"`==` is loosened to `{after}`", "less strictly", change(PATH, *body(after)), worst="warning"
        )
        for after in (
            "assert add(2, 2) is not None",
            "assert add(2, 2) in (3, 4, 5)",
            "assert add(2, 2)",
            "assert add(2, 2) > 0",
            "assert isinstance(add(2, 2), int)",
            "assert add(2, 2) != 5",
            "assert add(2, 2) == add(2, 2)",
            "assert add(2, 2) == pytest.approx(4, abs=100)",
            "assert add(2, 2) == 4 or add(2, 2) == 5",
        )
    ),
    tampered(
        "an expected exception is loosened",
        "less strictly",
        change(
            PATH,
            *body(
                "with pytest.raises(Exception):\n    add(1, 'a')",
                "with pytest.raises(TypeError, match='str'):\n    add(1, 'a')",
            ),
        ),
        worst="warning",
    ),
    tampered(
        "a helper of the tests stops asserting",
        "checks nothing",
        change(
            PATH,
            "def same(a, b):\n    assert a == b\n\ndef test_add():\n    same(add(1, 1), 2)\n",
            "def same(a, b):\n    return a == b\n\ndef test_add():\n    same(add(1, 1), 2)\n",
        ),
    ),
    tampered(
        "a helper in a support file stops asserting",
        "same checks nothing",
        change("tests/support.py", "def same(a, b):\n    assert a == b\n", "def same(a, b):\n    pass\n"),
    ),
    tampered(
        "an expected value is rewritten",
        "expects another result",
        change(PATH, *body("assert add(2, 2) == 5")),
        worst="info",
    ),
    tampered(
        "a test goes together with what it tested",
        "is that asked for",
        change(PATH, ADD, None),
        change("money.py", "def add(a, b):\n    return a + b\n", None),
        worst="warning",
    ),
    tampered(
        "a skip cannot hold on this platform",
        "from running",
        change(
            PATH,
            ADD,
            ADD.replace("    def", "    @pytest.mark.skipif(sys.platform == 'win32', reason='x')\n    def"),
        ),
        worst="warning",
    ),
    tampered(
        "a new test is skipped",
        "never runs",
        change(PATH, None, ADD.replace("    def", "    @pytest.mark.skip\n    def")),
        worst="warning",
    ),
    tampered(
        "a new test cannot fail",
        "cannot fail",
        change(PATH, None, "def test_x():\n    assert True\n"),
        worst="warning",
    ),
    tampered(
        "a test is deleted from a file that does not parse",
        "test_sub",
        change(
            PATH,
            "def test_add():\n    assert add() == 1\n\ndef test_sub():\n    assert sub() == 1\n",
            "def test_add():\n    assert add( == 1\n",
        ),
    ),
    tampered(
        "a test is skipped in a file that does not parse",
        "from running",
        change(
            PATH,
            "def test_add():\n    assert add() == 1\n\nx = (\n",
            "@pytest.mark.skip\ndef test_add():\n    assert add() == 1\n\nx = (\n",
        ),
    ),
    tampered(
        "a test class is switched off",
        "test_add",
        change(
            PATH,
            "class TestMoney:\n    def test_add(self):\n        assert add(1, 1) == 2\n",
            "class TestMoney:\n    __test__ = False\n\n    def test_add(self):\n        assert add(1, 1) == 2\n",
        ),
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent("a new test file", change(PATH, None, ADD)),
    innocent("a test is added", change(PATH, ADD, ADD_AND_SUB)),
    innocent("an assertion is added", change(PATH, *body("assert add(2, 2) == 4\nassert add(0, 0) == 0"))),
    innocent(
        "tests are put in another order",
        change(
            PATH,
            "def test_a():\n    assert a() == 1\n\ndef test_b():\n    assert b() == 2\n",
            "def test_b():\n    assert b() == 2\n\ndef test_a():\n    assert a() == 1\n",
        ),
    ),
    innocent(
        "a test file is renamed", change(PATH, ADD, None), change("tests/unit/test_money.py", None, ADD)
    ),
    innocent(
        "a test moves to another file",
        change(PATH, ADD_AND_SUB, ADD),
        change("tests/test_sub.py", None, "def test_sub():\n    assert sub(5, 3) == 2\n"),
    ),
    innocent("a test is renamed", change(PATH, ADD, ADD.replace("test_add", "test_adds_two_numbers"))),
    innocent(
        "a test is renamed and grows",
        change(PATH, ADD, ADD.replace("test_add", "test_adds_two") + "        assert add(1, 1) == 2\n"),
    ),
    innocent(
        "tests move into a class",
        change(
            PATH,
            ADD_AND_SUB,
            "class TestMoney:\n    def test_add(self):\n        assert add(2, 2) == 4\n\n    def test_sub(self):\n        assert sub(5, 3) == 2\n",
        ),
    ),
    innocent(
        "tests are merged into a parametrised one",
        change(
            PATH,
            "def test_one():\n    assert add(1, 1) == 2\n\ndef test_two():\n    assert add(2, 2) == 4\n",
            "@pytest.mark.parametrize(('a', 'b', 'c'), [(1, 1, 2), (2, 2, 4)])\ndef test_add(a, b, c):\n    assert add(a, b) == c\n",
        ),
    ),
    innocent(
        "assertions become rows",
        change(
            PATH,
            "def test_add():\n    assert add(1, 1) == 2\n    assert add(2, 2) == 4\n",
            "@pytest.mark.parametrize(('a', 'b', 'c'), [(1, 1, 2), (2, 2, 4)])\ndef test_add(a, b, c):\n    assert add(a, b) == c\n",
        ),
    ),
    innocent(
        "assertions become a loop over rows",
        change(
            PATH,
            "def test_add():\n    assert add(1, 1) == 2\n    assert add(2, 2) == 4\n",
            "def test_add():\n    for a, b, c in [(1, 1, 2), (2, 2, 4)]:\n        assert add(a, b) == c\n",
        ),
    ),
    innocent(
        "two tests are merged into one",
        change(
            PATH,
            ADD_AND_SUB,
            "def test_add_and_sub():\n    assert add(2, 2) == 4\n    assert sub(5, 3) == 2\n",
        ),
    ),
    innocent(
        "rows are added",
        change(
            PATH,
            "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert f(n) == n\n",
            "@pytest.mark.parametrize('n', [1, 2, 3, 4])\ndef test_n(n):\n    assert f(n) == n\n",
        ),
    ),
    *(
        innocent(f"`{before}` becomes the stricter `{after}`", change(PATH, *body(after, before)))
        for before, after in (
            ("assert add(2, 2) is not None", "assert add(2, 2) == 4"),
            ("assert add(2, 2) > 0", "assert add(2, 2) == 4"),
            ("assert add(2, 2)", "assert add(2, 2) == 4"),
            ("assert isinstance(add(2, 2), int)", "assert add(2, 2) == 4"),
            ("assert add(2, 2) in (3, 4)", "assert add(2, 2) == 4"),
            (
                "with pytest.raises(Exception):\n    add(1, 'a')",
                "with pytest.raises(TypeError, match='str'):\n    add(1, 'a')",
            ),
        )
    ),
    *(
        innocent(f"a rewriting: {title}", change(PATH, *body(after, before)))
        for title, before, after in (
            ("a variable is taken out", "result = add(2, 2)\nassert result == 4", "assert add(2, 2) == 4"),
            ("a variable is put in", "assert add(2, 2) == 4", "total = add(2, 2)\nassert total == 4"),
            ("a message is added", "assert add(2, 2) == 4", "assert add(2, 2) == 4, 'two and two'"),
            (
                "and is split",
                "assert add(1, 1) == 2 and add(2, 2) == 4",
                "assert add(1, 1) == 2\nassert add(2, 2) == 4",
            ),
            (
                "two become a tuple",
                "assert add(1, 1) == 2\nassert add(2, 2) == 4",
                "assert (add(1, 1), add(2, 2)) == (2, 4)",
            ),
            ("== True goes", "assert is_money(4) == True", "assert is_money(4)"),
            (
                "a float is compared within rounding",
                "assert add(0.1, 0.2) == 0.3",
                "assert add(0.1, 0.2) == pytest.approx(0.3)",
            ),
            ("operands are swapped", "assert 4 == add(2, 2)", "assert add(2, 2) == 4"),
            ("an empty list is falsy", "assert len(add(2, 2)) == 0", "assert not add(2, 2)"),
            (
                "a comment and a docstring",
                "assert add(2, 2) == 4",
                '"""Adds."""\n# really\nassert add(2, 2) == 4',
            ),
            ("a temporary folder", "assert add(2, 2) == 4", "os.makedirs('x')\nassert add(2, 2) == 4"),
        )
    ),
    innocent(
        "unittest becomes pytest",
        change(
            PATH,
            *in_class(
                "def test_add(self):\n    self.assertEqual(add(1, 1), 2)",
                "def test_add(self):\n    assert add(1, 1) == 2",
            )[::-1],
        ),
    ),
    innocent(
        "assertions move into a helper of the file",
        change(
            PATH,
            "def test_add():\n    r = add(1, 1)\n    assert r.amount == 2\n    assert r.currency == 'EUR'\n",
            "def euros(r, amount):\n    assert r.amount == amount\n    assert r.currency == 'EUR'\n\ndef test_add():\n    euros(add(1, 1), 2)\n",
        ),
    ),
    innocent(
        "an assertion moves into an imported helper that says it asserts",
        change(PATH, *body("assert_euros(add(1, 1), 2)", "assert add(1, 1) == 2")),
    ),
    innocent(
        "a skip is taken away", change(PATH, ADD.replace("    def", "    @pytest.mark.skip\n    def"), ADD)
    ),
    innocent(
        "a skip's reason is reworded",
        change(
            PATH,
            ADD.replace("    def", "    @pytest.mark.skip(reason='a')\n    def"),
            ADD.replace("    def", "    @pytest.mark.skip(reason='b')\n    def"),
        ),
    ),
    innocent(
        "a new test runs on Linux only",
        change(
            PATH,
            ADD,
            ADD
            + "\n    @pytest.mark.skipif(sys.platform == 'win32', reason='x')\n    def test_fork():\n        assert fork() == 1\n",
        ),
    ),
    innocent(
        "a new test expects an exception by hand",
        change(
            PATH,
            ADD,
            ADD
            + "\n    def test_bad():\n        try:\n            add(1, 'a')\n        except TypeError:\n            pass\n        else:\n            pytest.fail('accepted')\n",
        ),
    ),
    innocent(
        "the code under test is called skip",
        change(PATH, ADD, ADD + "\n    def test_skip():\n        assert reader.skip(3) == 'x'\n"),
    ),
    innocent(
        "a test speaks of tampering in a string",
        change(PATH, *body("assert add(2, 2) == 4\nassert render('@pytest.mark.skip') == 'assert True'")),
    ),
    innocent("formatting only", change(PATH, *body("assert (\n    add(2, 2)\n    == 4\n)"))),
    innocent(
        "code and its new test",
        change("money.py", None, "def add(a, b):\n    assert True\n    return a + b\n"),
        change(PATH, None, ADD),
    ),
    innocent(
        "a source file loses its own assertions",
        change("money.py", "def add(a):\n    assert a\n    return a\n", "def add(a):\n    return a\n"),
    ),
    innocent(
        "a source file loses a function called test",
        change("money.py", "def test_connection():\n    assert ping()\n", "x = 1\n"),
    ),
    innocent(
        "a helper is called within the test",
        change(PATH, *body("def check(n):\n    assert add(n, n) == 2 * n\ncheck(2)\nassert add(2, 2) == 4")),
    ),
    innocent(
        "an async test",
        change(
            PATH,
            "async def test_a():\n    assert await f() == 1\n",
            "async def test_a():\n    async with client() as c:\n        assert await c.f() == 1\n",
        ),
    ),
    innocent(
        "a fixture is used instead of a set-up line",
        change(
            PATH,
            "def test_a():\n    db = connect()\n    assert db.count() == 0\n",
            "@pytest.fixture\ndef db():\n    return connect()\n\ndef test_a(db):\n    assert db.count() == 0\n",
        ),
    ),
    innocent("a binary file", change("tests/test_data.py", "\0", None)),
)
