"""Changes that put something else in the place of the code under test, or of the runner of its tests."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, tampered

PATH = "tests/test_money.py"
TEST = """
    import unittest
    import money
    from money import add

    def test_add():
        assert add(2, 2) == 4

    def test_sub():
        assert money.sub(3, 2) == 1
"""
CODE = "def add(a, b):\n    return a + b\n"


def replaced(imports: str, *, test: str = TEST, old: str = "from money import add") -> tuple[str, str]:
    """The tests, and the tests with other lines for an import."""
    lines = "\n".join(f"    {line}" if line else "" for line in imports.splitlines())
    assert old in test
    return test, test.replace(f"    {old}", lines)


TAMPERED: tuple[Example, ...] = (
    *(
        tampered(
            f"the import becomes `{lines}`", "no longer imported from money", change(PATH, *replaced(lines))
        )
        for lines in (
            "def add(a, b):\n    return 4",
            "add = lambda a, b: 4",
            "add = unittest.mock.Mock(return_value=4)",
            "class add:\n    def __new__(cls, a, b):\n        return 4",
            "from money import add\n\ndef add(a, b):\n    return 4",
        )
    ),
    *(
        tampered(
            f"the module becomes `{lines.splitlines()[0]}`",
            "no longer imported from money",
            change(PATH, *replaced(lines, old="import money")),
        )
        for lines in (
            "class money:\n    @staticmethod\n    def sub(a, b):\n        return 1",
            "money = types.SimpleNamespace(sub=lambda a, b: 1)",
        )
    ),
    tampered(
        "the import becomes a constant",
        "no longer imported",
        change(
            PATH,
            "from money import LIMIT\n\ndef test_limit():\n    assert LIMIT == 4\n",
            "LIMIT = 4\n\ndef test_limit():\n    assert LIMIT == 4\n",
        ),
        worst="warning",
    ),
    tampered(
        "what a test merely uses is defined with it",
        "no longer imported",
        change(
            PATH,
            "from money import parse, add\n\ndef test_add():\n    value = parse('2')\n    assert add(value, 2) == 4\n",
            "from money import add\n\ndef parse(text):\n    return int(text)\n\ndef test_add():\n    value = parse('2')\n    assert add(value, 2) == 4\n",
        ),
        worst="warning",
    ),
    *(
        tampered(
            f"{path} says `{line}`",
            "while the tests are loaded",
            change("money.py", None, CODE),
            change(
                path, None, f"import sys\nimport money\nfrom unittest.mock import Mock, patch\n\n{line}\n"
            ),
        )
        for path, line in (
            ("conftest.py", "money.add = lambda a, b: 4"),
            ("tests/conftest.py", "def fake(a, b):\n    return 4\n\nmoney.add = fake"),
            ("conftest.py", "setattr(money, 'add', Mock(return_value=4))"),
            ("conftest.py", "patch('money.add', return_value=4).start()"),
            ("conftest.py", "sys.modules['money'] = Mock()"),
            ("tests/test_money.py", "money.add = lambda a, b: 4"),
            ("tests/__init__.py", "if True:\n    money.add = lambda a, b: 4"),
        )
    ),
    tampered(
        "conftest replaces code that the change leaves alone",
        "half of legacy is replaced",
        change("conftest.py", None, "import legacy\n\nlegacy.half = lambda n: 5\n"),
        worst="warning",
    ),
    *(
        tampered(f"{path} appears", "is found in place of", change(path, None, ""))
        for path in (
            "pytest.py",
            "pytest/__init__.py",
            "_pytest/__init__.py",
            "src/pytest.py",
            "unittest/__init__.py",
            "unittest/__main__.py",
            "unittest.py",
            "nose.py",
            "sitecustomize.py",
            "pytest",
            "jest",
            "jest.js",
            "node_modules/.bin/jest",
            "web/node_modules/vitest/index.js",
            "bin/go",
            ".venv/lib/python3.11/site-packages/_pytest/main.py",
        )
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent("the code moves", change(PATH, *replaced("from cash import add"))),
    innocent("the whole module is imported", change(PATH, *replaced("add = money.add"))),
    innocent(
        "a wrapper calls the code", change(PATH, *replaced("def add(a, b):\n    return money.add(a, b)"))
    ),
    innocent(
        "a client is made of it", change(PATH, *replaced("from money import add\n\nadd = counted(add)"))
    ),
    innocent(
        "a helper of the tests moves to the test that uses it",
        change(
            PATH,
            *replaced(
                "def add(a, b):\n    return Money(a) + Money(b)",
                test=TEST.replace("from money import add", "from tests.helpers import add"),
                old="from tests.helpers import add",
            ),
        ),
    ),
    innocent(
        "a function that goes from the code moves to its tests",
        change("money.py", CODE, "def total(values):\n    return sum(values)\n"),
        change(PATH, *replaced("def add(a, b):\n    return a + b")),
    ),
    innocent(
        "a function of the standard library is written out",
        change(
            PATH,
            "from textwrap import dedent\n\ndef test_a():\n    assert dedent(f()) == 'x'\n",
            "def dedent(text):\n    return text.strip()\n\ndef test_a():\n    assert dedent(f()) == 'x'\n",
        ),
    ),
    innocent(
        "new tests define what they need",
        change(PATH, None, "def add(a, b):\n    return 4\n\ndef test_add():\n    assert add(2, 2) == 4\n"),
    ),
    innocent(
        "an optional import",
        change(PATH, *replaced("try:\n    from money import add\nexcept ImportError:\n    add = None")),
    ),
    *(
        innocent(
            f"conftest says `{line}`",
            change("money.py", None, CODE),
            change("conftest.py", None, f"import os\nimport time\nimport money\nimport pytest\n\n{line}\n"),
        )
        for line in (
            "os.environ['MODE'] = 'test'",
            "money.VERBOSE = False",
            "time.sleep = lambda seconds: None",
            "app = money.Application()\napp.name = 'x'",
            "@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n    monkeypatch.setattr(money, 'log', lambda text: None)",
            "def pytest_configure(config):\n    config.option.verbose = 0",
        )
    ),
    *(
        innocent(f"{path} appears", change(path, None, "x = 1\n"))
        for path in (
            "pytest.ini",
            "conftest.py",
            "docs/pytest.py",
            "lopen/runners/pytest.py",
            "money/unittest/__init__.py",
            "tests/unittest/test_money.py",
            "tests/unittest/__init__.py",
            "jest.config.js",
            "jest.setup.js",
            "scripts/jest.js",
            "go.mod",
            "bin/money",
        )
    ),
    innocent("a runner's own source changes", change("src/_pytest/__init__.py", "x = 1\n", "x = 2\n")),
)
