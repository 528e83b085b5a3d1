"""Changes that keep Python tests from running without touching them: set-up, other names of marks, the file's top."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, tampered

PATH = "tests/test_legacy.py"
UNITTEST = """
    import unittest
    from legacy import half

    class TestLegacy(unittest.TestCase):
        def test_half(self):
            self.assertEqual(half(10), 5)

        def test_half_of_nothing(self):
            self.assertEqual(half(0), 0)
"""
PYTEST = """
    import os
    import sys
    import pytest
    from legacy import half

    def test_half():
        assert half(10) == 5

    class TestHalf:
        def test_nothing(self):
            assert half(0) == 0
"""


def inside(lines: str) -> tuple[str, str]:
    """The unittest class, and with these lines at its beginning."""
    indented = "\n".join(f"        {line}" for line in lines.splitlines())
    return UNITTEST, UNITTEST.replace("TestCase):\n", f"TestCase):\n{indented}\n\n")


def at_top(lines: str, text: str = PYTEST) -> tuple[str, str]:
    """The file, and with these lines behind its imports."""
    indented = "\n".join(f"    {line}" for line in lines.splitlines())
    assert "import half\n" in text
    return text, text.replace("import half\n", f"import half\n\n{indented}\n")


def at_end(lines: str, text: str = PYTEST) -> tuple[str, str]:
    """The file, and with these lines behind it."""
    return text, text + "\n" + "\n".join(f"    {line}" for line in lines.splitlines()) + "\n"


def marked(top: str, mark: str) -> tuple[str, str]:
    """The file, and with these lines at its top and this mark on its first test."""
    before, after = at_top(top)
    return before, after.replace("    def test_half", f"    {mark}\n    def test_half")


BASE = (
    "class Base(unittest.TestCase):\n{}\n\nclass TestLegacy(Base):\n"
    "    def test_half(self):\n        self.assertEqual(half(10), 5)\n"
)

TAMPERED: tuple[Example, ...] = (
    *(
        tampered(
            f"a class gains `{lines.splitlines()[-1].strip()}` in {lines.split('(')[0].split()[-1]}",
            "2 tests from running",
            change(PATH, *inside(lines)),
        )
        for lines in (
            "def setUp(self):\n    self.skipTest('later')",
            "def setUp(self):\n    raise unittest.SkipTest('later')",
            "@classmethod\ndef setUpClass(cls):\n    raise unittest.SkipTest",
            "async def asyncSetUp(self):\n    self.skipTest('later')",
            "def setup_method(self):\n    pytest.skip('later')",
            "def setUp(self):\n    if os.environ.get('CI'):\n        self.skipTest('later')",
            "def setUp(self):\n    with self.subTest():\n        self.skipTest('later')",
            "def setUp(self):\n    os._exit(0)",
            "def run(self, result=None):\n    return result",
            "def run(self, result=None):\n    result.testsRun += 1\n    result.addSuccess(self)",
            "def __call__(self, *args, **kwargs):\n    return None",
        )
    ),
    *(
        tampered(f"a module gains {lines.split('(')[0]}", "from running", change(PATH, *at_top(lines)))
        for lines in (
            "def setUpModule():\n    raise unittest.SkipTest('x')",
            "def setup_module(module):\n    pytest.skip('x')",
            "def setup_function(function):\n    pytest.skip('x')",
            "@pytest.fixture(autouse=True)\ndef later():\n    pytest.skip('x')",
            "@pytest.fixture(autouse=True, scope='module')\ndef later(request):\n    yield pytest\n    pytest.skip('x')",
        )
    ),
    tampered(
        "a base class of the tests skips in its set-up",
        "setUp's self.skipTest keeps 1 test from running",
        change(
            PATH,
            BASE.format("    pass"),
            BASE.format("    def setUp(self):\n        self.skipTest('x')"),
        ),
    ),
    tampered(
        "tests inherit from a class of another file that skips",
        "setUp's self.skipTest keeps 2 tests from running",
        change(
            PATH,
            UNITTEST,
            UNITTEST.replace("unittest.TestCase", "Base").replace(
                "import half", "import half\n    from base import Base"
            ),
        ),
        change(
            "tests/base.py",
            None,
            "import unittest\n\nclass Base(unittest.TestCase):\n    def setUp(self):\n        self.skipTest('x')\n",
        ),
    ),
    tampered(
        "a test asks for a fixture that skips",
        "the fixture later's pytest.skip",
        change(
            PATH,
            *(
                text.replace("test_half()", f"test_half({argument})")
                for text, argument in zip(
                    at_top("@pytest.fixture\ndef later():\n    pytest.skip('x')"), ("", "later"), strict=True
                )
            ),
        ),
    ),
    *(
        tampered(
            f"a test gains {mark} where {top.splitlines()[0]}",
            "keeps 1 test from running: test_half",
            change(PATH, *marked(top, mark)),
        )
        for top, mark in (
            ("later = pytest.mark.skip", "@later"),
            ("later = pytest.mark.skip", "@later(reason='x')"),
            ("later = pytest.mark.skip(reason='x')", "@later"),
            ("later = pytest.mark.skipif(True, reason='x')", "@later"),
            ("later = pytest.mark.skipif", "@later('CI' in os.environ, reason='x')"),
            ("known = pytest.mark.xfail", "@known"),
            ("from unittest import skip as later", "@later('x')"),
            ("def later(function):\n    return pytest.mark.skip(function)", "@later"),
            ("def later(function):\n    return unittest.skip('x')(function)", "@later"),
        )
    ),
    tampered(
        "a mark of another file is given to a test",
        "keeps 1 test from running: test_half",
        change(PATH, *marked("from marks import later", "@later")),
        change("tests/marks.py", None, "import pytest\n\nlater = pytest.mark.skip\n"),
    ),
    tampered(
        "a module takes a mark of another name",
        "keeps 2 tests",
        change(PATH, *at_top("later = pytest.mark.skip\npytestmark = [later]")),
    ),
    tampered(
        "a test is put in a mark behind it",
        "keeps 1 test from running: test_half",
        change(PATH, *at_end("test_half = pytest.mark.skip(test_half)")),
    ),
    tampered(
        "a test becomes a function that does nothing",
        "gone: 1 test test_half",
        change(PATH, *at_end("test_half = lambda: None")),
    ),
    tampered("a class becomes nothing", "TestHalf::test_nothing", change(PATH, *at_end("TestHalf = None"))),
    tampered("a module is switched off", "keeps 2 tests", change(PATH, *at_top("__test__ = False"))),
    tampered(
        "a class is switched off from outside",
        "TestHalf::test_nothing",
        change(PATH, *at_end("TestHalf.__test__ = False")),
    ),
    *(
        tampered(
            f"the file's top gains {lines}", "keeps other tests from running", change(PATH, *at_top(lines))
        )
        for lines in (
            "os._exit(0)",
            "sys.exit(0)",
            "sys.exit()",
            "exit()",
            "raise SystemExit",
            "raise SystemExit(0)",
            "pytest.exit('done', returncode=0)",
            "os.execv('/bin/true', ['true'])",
            "try:\n    sys.exit(0)\nfinally:\n    pass",
            "if True:\n    sys.exit(0)",
            "import atexit\natexit.register(os._exit, 0)",
            "import atexit\natexit.register(lambda: os._exit(0))",
            "def load_tests(loader, tests, pattern):\n    return unittest.TestSuite()",
            "load_tests = lambda *_: unittest.TestSuite()",
            "unittest.TestCase.assertEqual = lambda *args: None",
            "unittest.TestCase.run = print",
        )
    ),
    *(
        tampered(
            f"{path} ends the run",
            "keeps other tests from running",
            change(path, None, "import os\n\nos._exit(0)\n"),
        )
        for path in ("conftest.py", "tests/conftest.py", "tests/__init__.py", "tests/test_new.py")
    ),
    tampered(
        "an exit under a condition",
        "keeps other tests from running",
        change(PATH, *at_top("if not os.environ.get('DATABASE'):\n    sys.exit(0)")),
        worst="warning",
    ),
    tampered(
        "a test ends the process",
        "os._exit keeps 1 test",
        change(
            PATH, PYTEST, PYTEST.replace("assert half(10) == 5", "assert half(10) == 5\n        os._exit(0)")
        ),
    ),
    tampered(
        "set-up skips on another platform",
        "from running",
        change(
            PATH, *inside("def setUp(self):\n    if sys.platform == 'win32':\n        self.skipTest('x')")
        ),
        worst="warning",
    ),
)

INNOCENT: tuple[Example, ...] = (
    *(
        innocent(
            f"a class gains {lines.split('(')[0]}: {lines.splitlines()[-1].strip()}",
            change(PATH, *inside(lines)),
        )
        for lines in (
            "def setUp(self):\n    self.folder = tempfile.mkdtemp()",
            "def setUp(self):\n    if self.folder is None:\n        return\n    self.folder.clear()",
            "def setUp(self):\n    if False:\n        self.skipTest('x')",
            "@classmethod\ndef setUpClass(cls):\n    cls.reader.skip(3)",
            "def run(self, result=None):\n    with patch('legacy.log'):\n        return super().run(result)",
            "def __call__(self, result=None):\n    self._pre_setup()\n    super().__call__(result)",
            "def tearDown(self):\n    self.folder.cleanup()",
        )
    ),
    innocent(
        "a class of pytest's has a helper called run",
        change(
            PATH,
            PYTEST,
            PYTEST.replace(
                "TestHalf:\n",
                "TestHalf(Tools):\n        def run(self, command):\n            return subprocess.run(command)\n\n",
            ),
        ),
    ),
    *(
        innocent(f"the file's top gains {lines.splitlines()[0]}", change(PATH, *at_top(lines)))
        for lines in (
            "if __name__ == '__main__':\n    sys.exit(0)",
            "if __name__ == '__main__':\n    unittest.main()",
            "if False:\n    sys.exit(0)",
            "def stop():\n    sys.exit(0)",
            "sys.exit(1) if BROKEN else None",
            "def load_tests(loader, tests, ignore):\n    tests.addTests(doctest.DocTestSuite(legacy))\n    return tests",
            "def load_tests(loader, standard, pattern):\n    suite = unittest.TestSuite()\n    suite.addTests(loader.loadTestsFromTestCase(T))\n    return suite",
            "unittest.TestCase.maxDiff = None",
            "unittest.util._MAX_LENGTH = 2000",
            "slow = pytest.mark.slow",
            "later = pytest.mark.skip",
            "__test__ = True",
            "@pytest.fixture\ndef database():\n    pytest.skip('no database')",
            "@pytest.fixture(autouse=True)\ndef clean(tmp_path, monkeypatch):\n    monkeypatch.chdir(tmp_path)",
            "def skip_header(lines):\n    return lines.skip(1)",
        )
    ),
    innocent(
        "a test gains a mark of another name that skips nothing",
        change(PATH, *marked("slow = pytest.mark.slow", "@slow")),
    ),
    innocent(
        "a mark is given another name",
        change(
            PATH,
            marked("", "@pytest.mark.skip(reason='x')")[1],
            marked("later = pytest.mark.skip(reason='x')", "@later")[1],
        ),
    ),
    innocent(
        "a name of another file means something else",
        change(PATH, *marked("from tools import later", "@later")),
        change("tests/test_other.py", None, "later = pytest.mark.skip\n"),
    ),
    innocent(
        "a forked child ends itself",
        change(
            PATH,
            PYTEST,
            PYTEST.replace(
                "assert half(10) == 5",
                "pid = os.fork()\n        if pid == 0:\n            os._exit(0)\n        assert half(10) == 5",
            ),
        ),
    ),
    innocent(
        "a skip moves from the test to its set-up",
        change(
            PATH,
            "class TestA(TestCase):\n    def test_a(self):\n        self.skipTest('x')\n        self.assertEqual(f(), 1)\n",
            "class TestA(TestCase):\n    def setUp(self):\n        self.skipTest('x')\n\n    def test_a(self):\n        self.assertEqual(f(), 1)\n",
        ),
    ),
    innocent(
        "a base class overrides the set-up that skips",
        change(
            PATH,
            "class Base(TestCase):\n    def setUp(self):\n        self.skipTest('x')\n",
            "class Base(TestCase):\n    def setUp(self):\n        self.skipTest('x')\n\nclass TestA(Base):\n    def setUp(self):\n        self.x = 1\n\n    def test_a(self):\n        self.assertEqual(f(), 1)\n",
        ),
    ),
    innocent(
        "a new test runs where a package is",
        change(
            PATH, None, "def test_a():\n    numpy = pytest.importorskip('numpy')\n    assert f(numpy) == 1\n"
        ),
    ),
    innocent("an application ends by itself", change("app.py", None, "import sys\n\nsys.exit(0)\n")),
    innocent(
        "a script of the tests hands its code on",
        change("tests/run.py", None, "import sys, pytest\n\nsys.exit(pytest.main(['tests']))\n"),
    ),
)
