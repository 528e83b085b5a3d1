"""The edits: what honest work looks like that is easily taken for a weakening, and weakenings that look like work.

A change of a file is its new text, a list of replacements in the old one, or None where the file goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Change = str | Sequence[tuple[str, str]] | None


@dataclass(frozen=True)
class Edit:
    """One piece of work: `criterion` is the order, `before` files that lie there beside the project's own."""

    language: Literal["python", "node", "rust", "c"]
    name: str
    criterion: str
    files: Mapping[str, Change]
    before: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    removal: Sequence[str] = ()


CODE, TESTS, LABEL = "pricing.py", "tests/test_pricing.py", "tests/test_label.py"
KINDS = '\n\ndef kinds():\n    return ["basic", "plus"]\n'
CART, CART_TESTS = "cart.js", "test/cart.test.js"
LIB = "src/lib.rs"


def python(name: str, criterion: str, files: Mapping[str, Change], **more: object) -> Edit:
    return Edit("python", name, criterion, files, **more)  # type: ignore[arg-type]


def node(name: str, criterion: str, files: Mapping[str, Change], **more: object) -> Edit:
    return Edit("node", name, criterion, files, **more)  # type: ignore[arg-type]


def rust(name: str, criterion: str, *changes: tuple[str, str], **files: Change) -> Edit:
    return Edit("rust", name, criterion, {LIB: changes, **files})


def c(name: str, criterion: str, files: Mapping[str, Change]) -> Edit:
    return Edit("c", name, criterion, files)


def more_python(code: str, test: str, head: str = "") -> dict[str, Change]:
    """New code at the end of the module, and a test file of its own."""
    return {
        CODE: [(KINDS, KINDS + "\n\n" + code)],
        "tests/test_more.py": f"{head}import pytest\n\nimport pricing\n\n\n{test}".replace(
            "import pytest\n\n", "" if "pytest" not in test else "import pytest\n\n"
        ),
    }


def more_node(code: str, names: str, test: str) -> dict[str, Change]:
    """New code in the module, and tests behind those that are there."""
    return {
        CART: [
            (
                "module.exports = { total, names, find };",
                f"{code}\nmodule.exports = {{ total, names, find, {names} }};",
            )
        ],
        CART_TESTS: [
            ("const { total, names, find }", f"const {{ total, names, find, {names} }}"),
            ("/no item pan/);\n});\n", f"/no item pan/);\n}});\n\n{test}"),
        ],
    }


def more_rust(code: str, test: str) -> tuple[tuple[str, str], ...]:
    return (
        ("#[cfg(test)]\nmod tests", f"{code}\n#[cfg(test)]\nmod tests"),
        (
            "        assert!(!overlap((0, 1), (1, 2)));\n    }\n",
            f"        assert!(!overlap((0, 1), (1, 2)));\n    }}\n\n{test}",
        ),
    )


DISCOUNT = "def discount(amount, percent):\n    return amount * (100 - percent) // 100\n"
DISCOUNT_TEST = "def test_discount():\n    assert pricing.discount(200, 10) == 180\n"

HONEST: tuple[Edit, ...] = (
    python("new-function", "discount takes percents off", more_python(DISCOUNT, DISCOUNT_TEST)),
    python("new-module", "a module vat gives the rate of a country", {
        "vat.py": 'def rate(country):\n    return {"at": 20, "de": 19}[country]\n',
        "tests/test_vat.py": 'import vat\n\n\ndef test_rate():\n    assert vat.rate("de") == 19\n    assert vat.rate("at") == 20\n'}),
    python("new-package", "a package money rounds", {
        "money/__init__.py": "from money.rounding import whole\n\n__all__ = [\"whole\"]\n",
        "money/rounding.py": "def whole(cents):\n    return (cents + 50) // 100\n",
        "tests/test_money.py": "from money import whole\n\n\ndef test_whole():\n    assert whole(150) == 2\n    assert whole(149) == 1\n"}),
    python("new-error", "discount refuses more than 100 percent", more_python(
        "def discount(amount, percent):\n    if percent > 100:\n        raise ValueError(\"too much\")\n    return amount * (100 - percent) // 100\n",
        DISCOUNT_TEST + "\n\ndef test_discount_refuses():\n    with pytest.raises(ValueError, match=\"too much\"):\n        pricing.discount(1, 101)\n")),
    python("rename-function", "gross is called with_tax", {CODE: [("def gross", "def with_tax")], TESTS: [("def test_gross", "def test_with_tax"), ("pricing.gross", "pricing.with_tax")]}),
    python("rename-test", "the test of net says what it tests", {TESTS: [("def test_net():", "def test_net_multiplies_rate_and_count():")]}),
    python("rename-parameter", "the tax of gross is called percent", {CODE: [("tax=20", "percent=20"), ("100 + tax", "100 + percent")], TESTS: [("tax=0", "percent=0")]}),
    python("changed-result", "gross rounds up", {CODE: [("* (100 + tax) // 100", "* (100 + tax) + 99) // 100"), ("return net(kind, count)", "return (net(kind, count)")], TESTS: [("    assert pricing.gross(\"plus\", 1, tax=0) == 250\n", "    assert pricing.gross(\"plus\", 1, tax=0) == 250\n    assert pricing.gross(\"plus\", 1, tax=1) == 253\n")]}),
    python("changed-expectation", "a plus costs 300", {CODE: [("\"plus\": 250", "\"plus\": 300")], TESTS: [("== 250", "== 300")]}),
    python("changed-exception", "a negative count is a TypeError", {CODE: [("raise ValueError(\"count", "raise TypeError(\"count")], TESTS: [("pytest.raises(ValueError, match=\"negative\")", "pytest.raises(TypeError, match=\"negative\")")]}),
    python("changed-message", "the message of a negative count says below zero", {CODE: [("must not be negative", "is below zero")], TESTS: [("match=\"negative\"", "match=\"below zero\"")]}),
    python("message-given-up", "negative counts raise ValueError without any promised message", {CODE: [("raise ValueError(\"count must not be negative\")", "raise ValueError")], TESTS: [("ValueError, match=\"negative\"", "ValueError")]}),
    python("order-given-up", "kinds come in any order", {CODE: [("[\"basic\", \"plus\"]", "set(RATES)")], LABEL: [("self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])", "self.assertEqual(sorted(pricing.kinds()), [\"basic\", \"plus\"])")]}),
    python("row-moved-to-refused", "a text with blanks around is refused", {
        CODE: [("    kind, _, count", "    if text != text.strip():\n        raise ValueError(\"blanks\")\n    kind, _, count")],
        TESTS: [(", (\" plus :2\", (\"plus\", 2))", ""), ("[\"basic:x\", \"plus:1.5\"]", "[\"basic:x\", \"plus:1.5\", \" plus :2\"]")]}),
    python("row-mended", "a missing count is 0", {CODE: [("int(count or 1)", "int(count or 0)")], TESTS: [("(\"basic\", (\"basic\", 1))", "(\"basic\", (\"basic\", 0))")]}),
    python("row-added", "an empty text is an empty kind", {TESTS: [("(\"plus:3\", (\"plus\", 3))", "(\"plus:3\", (\"plus\", 3)), (\"\", (\"\", 1))")], CODE: [("int(count or 1)", "int(count or \"1\")")]}),
    python("rows-with-ids", "the rows of parse have names", {TESTS: [("[(\"basic\", (\"basic\", 1)), (\"plus:3\", (\"plus\", 3)), (\" plus :2\", (\"plus\", 2))]", "[pytest.param(\"basic\", (\"basic\", 1), id=\"bare\"), pytest.param(\"plus:3\", (\"plus\", 3), id=\"counted\"), pytest.param(\" plus :2\", (\"plus\", 2), id=\"blanks\")]")]}),
    python("split-test", "net is tested in two parts", {TESTS: [("    assert pricing.net(\"plus\", 0) == 0\n", "\n\ndef test_net_of_none():\n    assert pricing.net(\"plus\", 0) == 0\n")]}),
    python("merge-into-rows", "the tests of gross are one table", {TESTS: [("def test_gross():\n    assert pricing.gross(\"basic\", 1) == 120\n    assert pricing.gross(\"plus\", 1, tax=0) == 250\n", "@pytest.mark.parametrize((\"kind\", \"tax\", \"found\"), [(\"basic\", 20, 120), (\"plus\", 0, 250)])\ndef test_gross(kind, tax, found):\n    assert pricing.gross(kind, 1, tax=tax) == found\n")]}),
    python("move-test-file", "tests of labels lie in a folder of their own", {LABEL: None, "tests/labels/test_label.py": "import unittest\n\nimport pricing\n\n\nclass LabelTest(unittest.TestCase):\n    def test_label(self):\n        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n\n    def test_kinds(self):\n        self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])\n"}),
    python("unittest-to-pytest", "the tests of labels are plain functions", {LABEL: "import pricing\n\n\ndef test_label():\n    assert pricing.label(\"basic\") == \"Basic\"\n\n\ndef test_kinds():\n    assert pricing.kinds() == [\"basic\", \"plus\"]\n"}),
    python("pytest-to-unittest", "the test of gross is a class", {TESTS: [("def test_gross():\n    assert pricing.gross(\"basic\", 1) == 120\n    assert pricing.gross(\"plus\", 1, tax=0) == 250\n", "class GrossTest(unittest.TestCase):\n    def test_gross(self):\n        self.assertEqual(pricing.gross(\"basic\", 1), 120)\n        self.assertEqual(pricing.gross(\"plus\", 1, tax=0), 250)\n"), ("import pytest\n", "import unittest\n\nimport pytest\n")]}),
    python("group-in-class", "the tests of net stand in a class", {TESTS: [("def test_net():\n    assert pricing.net(\"basic\", 2) == 200\n    assert pricing.net(\"plus\", 0) == 0\n", "class TestNet:\n    def test_net(self):\n        assert pricing.net(\"basic\", 2) == 200\n        assert pricing.net(\"plus\", 0) == 0\n")]}),
    python("assert-helper", "the tests of gross share a helper", {TESTS: [("def test_gross():\n    assert pricing.gross(\"basic\", 1) == 120\n    assert pricing.gross(\"plus\", 1, tax=0) == 250\n", "def check_gross(kind, found, **more):\n    assert pricing.gross(kind, 1, **more) == found\n\n\ndef test_gross():\n    check_gross(\"basic\", 120)\n    check_gross(\"plus\", 250, tax=0)\n")]}),
    python("fixture", "the rates of a test come from a fixture", {"tests/conftest.py": "import pytest\n\nimport pricing\n\n\n@pytest.fixture\ndef rates(monkeypatch):\n    monkeypatch.setitem(pricing.RATES, \"trial\", 1)\n", TESTS: [("def test_net_refuses", "def test_net_of_a_new_kind(rates):\n    assert pricing.net(\"trial\", 3) == 3\n\n\ndef test_net_refuses")]}),
    python("autouse-configuration", "the currency must be configured", {"tests/conftest.py": "import pytest\n\nimport pricing\n\n\n@pytest.fixture(autouse=True)\ndef currency():\n    pricing.CURRENCY = \"EUR\"\n    yield\n    pricing.CURRENCY = \"\"\n", CODE: [("RATES = {", "CURRENCY = \"\"\n\nRATES = {"), ("    if count < 0:", "    if not CURRENCY:\n        raise RuntimeError(\"set CURRENCY\")\n    if count < 0:")], "tests/test_currency.py": "import pytest\n\nimport pricing\n\n\ndef test_currency_is_needed():\n    pricing.CURRENCY = \"\"\n    with pytest.raises(RuntimeError, match=\"set CURRENCY\"):\n        pricing.net(\"basic\", 1)\n"}),
    python("runslow", "slow tests run with --runslow", {"tests/conftest.py": "import pytest\n\n\ndef pytest_addoption(parser):\n    parser.addoption(\"--runslow\", action=\"store_true\", default=False, help=\"run slow tests\")\n\n\ndef pytest_configure(config):\n    config.addinivalue_line(\"markers\", \"slow: mark test as slow to run\")\n\n\ndef pytest_collection_modifyitems(config, items):\n    if config.getoption(\"--runslow\"):\n        return\n    skip_slow = pytest.mark.skip(reason=\"need --runslow option to run\")\n    for item in items:\n        if \"slow\" in item.keywords:\n            item.add_marker(skip_slow)\n", "tests/test_slow.py": "import pytest\n\nimport pricing\n\n\n@pytest.mark.slow\ndef test_many():\n    assert sum(pricing.net(\"basic\", n) for n in range(1000)) == 49950000\n"}),
    python("skip-on-windows", "paths are posix", more_python("def path(kind):\n    return f\"/prices/{kind}\"\n", "@pytest.mark.skipif(sys.platform == \"win32\", reason=\"posix paths\")\ndef test_path():\n    assert pricing.path(\"a\") == \"/prices/a\"\n", "import sys\n\n")),
    python("import-or-skip", "numbers may be numpy's", more_python(DISCOUNT, DISCOUNT_TEST + "\n\ndef test_discount_of_an_array():\n    numpy = pytest.importorskip(\"numpy_that_is_missing\")\n    assert (pricing.discount(numpy.array([100]), 10) == 90).all()\n")),
    python("refactor", "gross is computed in steps", {CODE: [("    return net(kind, count) * (100 + tax) // 100\n", "    base = net(kind, count)\n    added = base * tax // 100\n    return base + added\n")]}),
    python("type-hints", "net and label have type hints", {CODE: [("def net(kind, count):", "def net(kind: str, count: int) -> int:"), ("def label(kind):", "def label(kind: str) -> str:")]}),
    python("rename-module", "the module is called prices", {CODE: None, "prices.py": "RATES = {\"basic\": 100, \"plus\": 250}\n\n\ndef net(kind, count):\n    if count < 0:\n        raise ValueError(\"count must not be negative\")\n    return RATES[kind] * count\n\n\ndef gross(kind, count, tax=20):\n    return net(kind, count) * (100 + tax) // 100\n\n\ndef label(kind):\n    return kind.title()\n\n\ndef parse(text):\n    kind, _, count = text.partition(\":\")\n    return kind.strip(), int(count or 1)\n\n\ndef kinds():\n    return [\"basic\", \"plus\"]\n", TESTS: [("import pricing", "import prices"), ("pricing.", "prices.")], LABEL: [("import pricing", "import prices"), ("pricing.", "prices.")]}),
    python("class-from-functions", "a Price has net and gross", more_python("class Price:\n    def __init__(self, kind):\n        self.kind = kind\n\n    @property\n    def net(self):\n        return net(self.kind, 1)\n\n    def __str__(self):\n        return f\"{label(self.kind)}: {self.net}\"\n", "def test_price():\n    assert pricing.Price(\"plus\").net == 250\n    assert str(pricing.Price(\"basic\")) == \"Basic: 100\"\n")),
    python("dataclass", "a Line is a value", {CODE: [("RATES = {", "from dataclasses import dataclass\n\nRATES = {"), (KINDS, KINDS + "\n\n@dataclass(frozen=True)\nclass Line:\n    kind: str\n    count: int = 1\n\n    def total(self):\n        return net(self.kind, self.count)\n")], "tests/test_line.py": "from pricing import Line\n\n\ndef test_line():\n    assert Line(\"basic\", 3).total() == 300\n    assert Line(\"plus\") == Line(\"plus\", 1)\n"}),
    python("method-with-nothing-to-break", "a Basket lets anything through", more_python("class Basket:\n    def note(self, text):\n        pass\n\n    def size(self):\n        return 0\n", "def test_basket():\n    basket = pricing.Basket()\n    assert basket.note(\"x\") is None\n    assert basket.size() == 0\n")),
    python("generator", "each gives the kinds one by one", more_python("def each():\n    yield from RATES\n", "def test_each():\n    assert list(pricing.each()) == [\"basic\", \"plus\"]\n")),
    python("async", "fetch is a coroutine", more_python("async def fetch(kind):\n    return RATES[kind]\n", "def test_fetch():\n    assert asyncio.run(pricing.fetch(\"basic\")) == 100\n", "import asyncio\n\n")),
    python("context-manager", "a sale changes the rates for a while", {CODE: [("RATES = {", "from contextlib import contextmanager\n\nRATES = {"), (KINDS, KINDS + "\n\n@contextmanager\ndef sale(kind, rate):\n    before = RATES[kind]\n    RATES[kind] = rate\n    try:\n        yield\n    finally:\n        RATES[kind] = before\n")], "tests/test_sale.py": "import pricing\n\n\ndef test_sale():\n    with pricing.sale(\"basic\", 1):\n        assert pricing.net(\"basic\", 1) == 1\n    assert pricing.net(\"basic\", 1) == 100\n"}),
    python("decorator", "calls can be counted", more_python("def counted(function):\n    def call(*arguments):\n        call.count += 1\n        return function(*arguments)\n\n    call.count = 0\n    return call\n", "def test_counted():\n    twice = pricing.counted(pricing.label)\n    assert twice(\"a\") == \"A\"\n    assert twice(\"b\") == \"B\"\n    assert twice.count == 2\n")),
    python("cache", "rates are cached", {CODE: [("RATES = {", "from functools import lru_cache\n\nRATES = {"), ("def label(kind)", "@lru_cache\ndef label(kind)")], LABEL: [("        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n", "        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n        self.assertEqual(pricing.label.cache_info().currsize, 1)\n")]}),
    python("command-line", "python pricing.py prints a price", {CODE: [(KINDS, KINDS + "\n\nif __name__ == \"__main__\":\n    import sys\n\n    print(gross(*parse(sys.argv[1])))\n")], "tests/test_main.py": "import subprocess\nimport sys\n\n\ndef test_main():\n    ran = subprocess.run([sys.executable, \"pricing.py\", \"basic:2\"], capture_output=True, text=True, check=True)\n    assert ran.stdout == \"240\\n\"\n"}),
    python("writes-file", "prices can be saved", more_python("def save(path):\n    path.write_text(\"\\n\".join(f\"{k}={v}\" for k, v in RATES.items()))\n", "def test_save(tmp_path):\n    pricing.save(tmp_path / \"rates\")\n    assert (tmp_path / \"rates\").read_text() == \"basic=100\\nplus=250\"\n")),
    python("environment", "the currency comes from the environment", {CODE: [("RATES = {", "import os\n\nRATES = {"), (KINDS, KINDS + "\n\ndef currency():\n    return os.environ.get(\"CURRENCY\", \"EUR\")\n")], "tests/test_currency.py": "import pricing\n\n\ndef test_currency(monkeypatch):\n    monkeypatch.setenv(\"CURRENCY\", \"CHF\")\n    assert pricing.currency() == \"CHF\"\n    monkeypatch.delenv(\"CURRENCY\")\n    assert pricing.currency() == \"EUR\"\n"}),
    python("mock", "rates can be fetched", more_python("def fetch():\n    raise OSError\n\n\ndef refresh():\n    RATES.update(fetch())\n    return len(RATES)\n", "def test_refresh(monkeypatch):\n    monkeypatch.setattr(pricing, \"fetch\", lambda: {\"basic\": 100})\n    assert pricing.refresh() == 2\n\n\ndef test_fetch_needs_the_network():\n    with pytest.raises(OSError):\n        pricing.fetch()\n")),
    python("golden-file", "the list of prices is as agreed", {**more_python("def table():\n    return \"\".join(f\"{kind} {rate}\\n\" for kind, rate in RATES.items())\n", "def test_table():\n    from pathlib import Path\n    assert pricing.table() == Path(\"tests/golden/table.txt\").read_text()\n"), "tests/golden/table.txt": "basic 100\nplus 250\n"}),
    python("golden-file-changes", "the list of prices has colons", {CODE: [(KINDS, KINDS), ("{kind} {rate}", "{kind}: {rate}")], "tests/golden/table.txt": "basic: 100\nplus: 250\n"}, before={CODE: "RATES = {\"basic\": 100, \"plus\": 250}\n\n\ndef net(kind, count):\n    if count < 0:\n        raise ValueError(\"negative\")\n    return RATES[kind] * count\n\n\ndef gross(kind, count, tax=20):\n    return net(kind, count) * (100 + tax) // 100\n\n\ndef label(kind):\n    return kind.title()\n\n\ndef parse(text):\n    kind, _, count = text.partition(\":\")\n    return kind.strip(), int(count or 1)\n\n\ndef table():\n    return \"\".join(f\"{kind} {rate}\\n\" for kind, rate in RATES.items())\n" + KINDS, "tests/golden/table.txt": "basic 100\nplus 250\n", "tests/test_table.py": "from pathlib import Path\n\nimport pricing\n\n\ndef test_table():\n    assert pricing.table() == Path(\"tests/golden/table.txt\").read_text()\n"}),
    python("data-file", "rates of countries lie in a file", {**more_python("def taxes():\n    import json\n\n    with open(\"taxes.json\") as file:\n        return json.load(file)\n", "def test_taxes():\n    assert pricing.taxes()[\"de\"] == 19\n"), "taxes.json": "{\"de\": 19, \"at\": 20}\n"}),
    python("logging", "a refused count is logged", {CODE: [("RATES = {", "import logging\n\nRATES = {"), ("        raise ValueError(\"count", "        logging.warning(\"count %s\", count)\n        raise ValueError(\"count")], TESTS: [("def test_gross():", "def test_refused_counts_are_logged(caplog):\n    with pytest.raises(ValueError):\n        pricing.net(\"basic\", -3)\n    assert \"count -3\" in caplog.text\n\n\ndef test_gross():")]}),
    python("deprecation", "kinds warns", {CODE: [("def kinds():\n", "def kinds():\n    import warnings\n\n    warnings.warn(\"use RATES\", DeprecationWarning, stacklevel=2)\n")], LABEL: [("        self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])", "        with self.assertWarns(DeprecationWarning):\n            self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])")]}),
    python("float-tolerance", "gross is exact to a tenth of a cent", {CODE: [("* (100 + tax) // 100", "* (100 + tax) / 100")], TESTS: [("assert pricing.gross(\"basic\", 1) == 120", "assert pricing.gross(\"basic\", 1) == pytest.approx(120)")]}),
    python("feature-removed", "kinds is gone", {CODE: [(KINDS, "\n")], LABEL: [("\n    def test_kinds(self):\n        self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])\n", "")]}, removal=("tests/test_label.py",)),
    python("feature-removed-with-file", "labels and kinds are gone", {CODE: [(KINDS, "\n"), ("\n\ndef label(kind):\n    return kind.title()\n", "")], LABEL: None}, removal=("tests/test_label.py",)),
    python("line-ends-of-bat", "*.bat files have CRLF", {".gitattributes": "*.bat text eol=crlf\n", "run.bat": "@echo off\r\npython pricing.py\r\n"}),
    python("benchmark", "a script times gross", {"bench/time_gross.py": "import timeit\n\nprint(timeit.timeit(\"gross('basic', 3)\", \"from pricing import gross\", number=1000))\n"}),
    python("make-file", "make test runs the tests", {"Makefile": "test:\n\tpython -m pytest -q\n"}),
    python("version", "the version is 1.1.0", {"pyproject.toml": "[project]\nname = \"pricing\"\nversion = \"1.1.0\"\n"}, before={"pyproject.toml": "[project]\nname = \"pricing\"\nversion = \"1.0.0\"\n"}),
    python("continuous-integration", "the tests run on GitHub", {".github/workflows/test.yml": "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - run: python -m pytest\n"}),
    python("marker-registered", "tests can be marked as unit", {"pytest.ini": "[pytest]\npythonpath = .\nmarkers =\n    unit: quick tests\n", TESTS: [("def test_net():", "@pytest.mark.unit\ndef test_net():")]}),
    python("xfail-of-known-bug", "a known bug of parse is written down", {TESTS: [("def test_net():", "@pytest.mark.xfail(reason=\"two colons are not refused yet\", strict=True)\ndef test_parse_refuses_two_colons():\n    with pytest.raises(KeyError):\n        pricing.parse(\"a:1\")\n\n\ndef test_net():")]}),
    python("property-loop", "gross is never less than net", {TESTS: [("def test_gross():", "def test_gross_is_at_least_net():\n    for count in range(20):\n        assert pricing.gross(\"plus\", count) >= pricing.net(\"plus\", count)\n\n\ndef test_gross():")]}),
    python("setup-in-test-class", "labels are tested with a set-up", {LABEL: [("    def test_label(self):\n", "    def setUp(self):\n        self.kind = \"basic\"\n\n    def test_label(self):\n"), ("pricing.label(\"basic\")", "pricing.label(self.kind)")]}),
    python("subtests", "labels of all kinds", {LABEL: [("        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n", "        for kind, wanted in ((\"basic\", \"Basic\"), (\"plus\", \"Plus\")):\n            with self.subTest(kind):\n                self.assertEqual(pricing.label(kind), wanted)\n")]}),
    python("stronger-assertion", "labels are exact", {LABEL: [("self.assertEqual(pricing.label(\"basic\"), \"Basic\")", "self.assertIs(type(pricing.label(\"basic\")), str)\n        self.assertEqual(pricing.label(\"basic\"), \"Basic\")")], CODE: [("kind.title()", "str(kind).title()")]}),
    python("duplicate-test-removed-by-order", "the doubled test of net is gone", {TESTS: [("    assert pricing.net(\"plus\", 0) == 0\n", ""), ("def test_net():", "def test_net_of_zero():\n    assert pricing.net(\"plus\", 0) == 0\n\n\ndef test_net():")]}),
    python("unittest-command", "a Rate is shown", {"rate.py": "def show(rate):\n    return f\"{rate / 100:.2f}\"\n", "test_rate.py": "import unittest\n\nfrom rate import show\n\n\nclass RateTest(unittest.TestCase):\n    def test_show(self):\n        self.assertEqual(show(250), \"2.50\")\n"}, command="python3 -m unittest -q"),
    python("mixin", "two classes of tests share what they check", {LABEL: [("class LabelTest(unittest.TestCase):\n    def test_label", "class Shared:\n    def test_label"), ("\n    def test_kinds", "\n\nclass LabelTest(Shared, unittest.TestCase):\n    def test_kinds")]}),
    python("fixture-named-like-a-test", "the rates are tested by a fixture", {TESTS: [("def test_net():", "@pytest.fixture\ndef test_rates():\n    return pricing.RATES\n\n\ndef test_rates_are_two(test_rates):\n    assert len(test_rates) == 2\n\n\ndef test_net():")]}),
    python("slow-tests-left-out", "slow tests run with -m slow", {"pytest.ini": "[pytest]\npythonpath = .\naddopts = -m \"not slow\"\nmarkers =\n    slow: slow tests\n", TESTS: [("def test_net():", "@pytest.mark.slow\ndef test_many():\n    assert pricing.net(\"basic\", 10**6) == 10**8\n\n\ndef test_net():")]}),
    python("documentation", "kinds has a docstring", {CODE: [("def kinds():\n", "def kinds() -> list[str]:\n    \"\"\"Return the kinds.\"\"\"\n")]}),
    python("three-tests-in-a-table", "the tests of net are a table", {TESTS: [("def test_net():\n    assert pricing.net(\"basic\", 2) == 200\n    assert pricing.net(\"plus\", 0) == 0\n", "@pytest.mark.parametrize((\"kind\", \"count\", \"found\"), [(\"basic\", 2, 200), (\"plus\", 0, 0), (\"basic\", 1, 100)])\ndef test_net_of_rows(kind, count, found):\n    assert pricing.net(kind, count) == found\n")]}),
    node("computed-titles", "each item is named", {CART: [("  return items.map((item) => item.name);", "  const found = items.map((item) => item.name);\n  return found;")], CART_TESTS: [("test('names'", "for (const item of ITEMS) test(item.name, () => assert.deepStrictEqual(names([item]), [item.name]));\n\ntest('names'")]}),
    node("new-function", "count counts the items", more_node("function count(items) {\n  return items.reduce((sum, item) => sum + item.count, 0);\n}\n", "count", "test('count', () => {\n  assert.strictEqual(count(ITEMS), 3);\n});\n")),
    node("arrow-function", "cheapest finds the cheapest", more_node("const cheapest = (items) => items.reduce((a, b) => (b.price < a.price ? b : a));\n", "cheapest", "test('cheapest', () => {\n  assert.strictEqual(cheapest(ITEMS).name, 'tea');\n});\n")),
    node("class", "a Cart holds items", more_node("class Cart {\n  constructor() {\n    this.items = [];\n  }\n\n  add(item) {\n    this.items.push(item);\n    return this;\n  }\n}\n", "Cart", "test('Cart', () => {\n  assert.strictEqual(new Cart().add(ITEMS[0]).items.length, 1);\n});\n")),
    node("async", "load reads items later", more_node("async function load(source) {\n  return JSON.parse(await source());\n}\n", "load", "test('load', async () => {\n  assert.deepStrictEqual(await load(async () => '[1]'), [1]);\n});\n")),
    node("rejects", "load refuses bad text", more_node("async function load(text) {\n  return JSON.parse(text);\n}\n", "load", "test('load refuses', async () => {\n  await assert.rejects(load('{'), SyntaxError);\n  assert.deepStrictEqual(await load('[2]'), [2]);\n});\n")),
    node("renamed-into-describe", "the tests of total are grouped", {CART_TESTS: [("test('total', () => {\n  assert.strictEqual(total(ITEMS), 11);\n  assert.strictEqual(total([]), 0);\n});", "test.describe('total', () => {\n  test('of two items', () => {\n    assert.strictEqual(total(ITEMS), 11);\n  });\n  test('of none', () => {\n    assert.strictEqual(total([]), 0);\n  });\n});")]}),
    node("rename-function", "total is called sum", {CART: [("function total", "function sumOf"), ("{ total,", "{ sumOf,")], CART_TESTS: [("{ total,", "{ sumOf,"), ("test('total'", "test('sumOf'"), ("total(", "sumOf(")]}),
    node("changed-expectation", "find returns null where there is none", {CART: [("  if (!item) throw new Error(`no item ${name}`);\n  return item;", "  return item ?? null;")], CART_TESTS: [("assert.throws(() => find(ITEMS, 'pan'), /no item pan/)", "assert.strictEqual(find(ITEMS, 'pan'), null)")]}),
    node("changed-message", "find says missing", {CART: [("no item ${name}", "missing: ${name}")], CART_TESTS: [("/no item pan/", "/missing: pan/")]}),
    node("table", "total is tested with a table", {CART_TESTS: [("  assert.strictEqual(total(ITEMS), 11);\n  assert.strictEqual(total([]), 0);\n", "  for (const [items, wanted] of [[ITEMS, 11], [[], 0]]) {\n    assert.strictEqual(total(items), wanted);\n  }\n")]}),
    node("moved-file", "tests lie in tests/", {CART_TESTS: None, "test/unit/cart.test.js": "'use strict';\nconst test = require('node:test');\nconst assert = require('node:assert');\nconst { total, names, find } = require('../../cart.js');\n\nconst ITEMS = [{ name: 'tea', price: 3, count: 2 }, { name: 'cup', price: 5, count: 1 }];\n\ntest('total', () => {\n  assert.strictEqual(total(ITEMS), 11);\n  assert.strictEqual(total([]), 0);\n});\n\ntest('names', () => {\n  assert.deepStrictEqual(names(ITEMS), ['tea', 'cup']);\n});\n\ntest('find', () => {\n  assert.strictEqual(find(ITEMS, 'cup').price, 5);\n  assert.throws(() => find(ITEMS, 'pan'), /no item pan/);\n});\n"}),
    node("new-file", "tax adds percents", {"tax.js": "'use strict';\n\nexports.withTax = (amount, percent) => amount + (amount * percent) / 100;\n", "test/tax.test.js": "'use strict';\nconst test = require('node:test');\nconst assert = require('node:assert');\nconst { withTax } = require('../tax.js');\n\ntest('withTax', () => {\n  assert.strictEqual(withTax(100, 20), 120);\n});\n"}),
    node("module-syntax", "tax is an ES module", {"tax.mjs": "export function withTax(amount, percent) {\n  return amount + (amount * percent) / 100;\n}\n", "test/tax.test.mjs": "import test from 'node:test';\nimport assert from 'node:assert';\nimport { withTax } from '../tax.mjs';\n\ntest('withTax', () => {\n  assert.strictEqual(withTax(50, 10), 55);\n});\n"}),
    node("version", "the version is 1.1.0", {"package.json": [("1.0.0", "1.1.0")]}),
    node("new-script", "npm run lint exists", {"package.json": [("\"test\": \"node --test\"", "\"test\": \"node --test\", \"lint\": \"node --check cart.js\"")]}),
    node("refactor", "total uses a loop", {CART: [("  return items.reduce((sum, item) => sum + item.price * item.count, 0);", "  let sum = 0;\n  for (const item of items) sum += item.price * item.count;\n  return sum;")]}),
    node("hooks", "each test has its own items", {CART_TESTS: [("const ITEMS = [{ name: 'tea', price: 3, count: 2 }, { name: 'cup', price: 5, count: 1 }];", "let ITEMS;\ntest.beforeEach(() => {\n  ITEMS = [{ name: 'tea', price: 3, count: 2 }, { name: 'cup', price: 5, count: 1 }];\n});")]}),
    node("mock-function", "each calls back", more_node("function each(items, callback) {\n  items.forEach((item) => callback(item.name));\n}\n", "each", "test('each', (t) => {\n  const seen = t.mock.fn();\n  each(ITEMS, seen);\n  assert.strictEqual(seen.mock.callCount(), 2);\n});\n")),
    node("todo", "a later test is noted", {CART_TESTS: [("test('names'", "test.todo('discounts');\n\ntest('names'")]}),
    node("subtests", "find is tested in parts", {CART_TESTS: [("test('find', () => {\n  assert.strictEqual(find(ITEMS, 'cup').price, 5);\n", "test('find', async (t) => {\n  await t.test('one', () => assert.strictEqual(find(ITEMS, 'cup').price, 5));\n")]}),
    rust("new-function", "middle is in between", *more_rust("pub fn middle(from: i64, to: i64) -> i64 {\n    (from + to) / 2\n}\n", "    #[test]\n    fn finds_the_middle() {\n        assert_eq!(middle(2, 6), 4);\n    }\n")),
    rust("result", "parse reads a number", *more_rust("pub fn parse(text: &str) -> Result<i64, std::num::ParseIntError> {\n    text.trim().parse()\n}\n", "    #[test]\n    fn parses() {\n        assert_eq!(parse(\" 7 \"), Ok(7));\n        assert!(parse(\"x\").is_err());\n    }\n")),
    rust("struct", "a Span has a length", *more_rust("pub struct Span(pub i64, pub i64);\n\nimpl Span {\n    pub fn length(&self) -> i64 {\n        length(self.0, self.1)\n    }\n}\n", "    #[test]\n    fn spans() {\n        assert_eq!(Span(1, 4).length(), 3);\n    }\n")),
    rust("should-panic", "length panics backwards", ("    to - from\n", "    assert!(from <= to, \"backwards\");\n    to - from\n"), ("        assert_eq!(length(2, 5), 3);\n    }\n", "        assert_eq!(length(2, 5), 3);\n    }\n\n    #[test]\n    #[should_panic(expected = \"backwards\")]\n    fn refuses_backwards() {\n        length(5, 2);\n    }\n")),
    rust("changed-expectation", "touching spans overlap", ("a.0 < b.1 && b.0 < a.1", "a.0 <= b.1 && b.0 <= a.1"), ("assert!(!overlap((0, 1), (1, 2)))", "assert!(overlap((0, 1), (1, 2)))")),
    rust("renamed-test", "tests have clear names", ("fn measures()", "fn measures_the_length()")),
    Edit("rust", "integration-test", "the library is tested from outside", {"tests/outside.rs": "#[test]\nfn measures_from_outside() {\n    assert_eq!(span::length(1, 9), 8);\n}\n", LIB: [("    to - from\n", "    let length = to - from;\n    length\n")]}),
    c("new-function", "first finds a place", {"count.h": "int count(const char *text, char wanted);\nint first(const char *text, char wanted);\n", "count.c": [("    return found;\n}\n", "    return found;\n}\n\nint first(const char *text, char wanted) {\n    for (int at = 0; text[at]; at++) if (text[at] == wanted) return at;\n    return -1;\n}\n")], "test_count.c": [("int main(void) {\n", "static void test_first(void) { assert(first(\"abc\", 'b') == 1); assert(first(\"abc\", 'x') == -1); }\n\nint main(void) {\n    test_first();\n"), ("2 passed", "3 passed")]}),
    c("refactor", "count walks by index", {"count.c": [("    for (; *text; text++) found += *text == wanted;", "    for (int at = 0; text[at]; at++) if (text[at] == wanted) found++;")]}),
    c("warnings", "the build shows warnings", {"Makefile": "test:\n\t$(CC) -Wall -Wextra -o check count.c test_count.c && ./check\n"}),
)  # fmt: skip


def stubbed(code: str, test: str, **files: Change) -> dict[str, Change]:
    return {**more_python(code, test), **files}


GROSS = 'def test_gross():\n    assert pricing.gross("basic", 1) == 120\n    assert pricing.gross("plus", 1, tax=0) == 250\n'
BROKEN = {CODE: [("* (100 + tax) // 100", "* (100 + tax)")]}  # gross is wrong: its test would fail
BROKEN_CART = {CART: [("item.price * item.count", "item.price")]}
BROKEN_SPAN = ("    to - from\n", "    to + from\n")
WORK = "discount takes percents off, and gross stays right"


def weaken(name: str, files: Mapping[str, Change], **more: object) -> Edit:
    """Break `gross` and hide it from its test."""
    return python(name, WORK, {**BROKEN, **files}, **more)


def weaken_node(name: str, files: Mapping[str, Change]) -> Edit:
    return node(name, "total stays right", {**BROKEN_CART, **files})


TOTAL = "test('total', () => {\n  assert.strictEqual(total(ITEMS), 11);\n  assert.strictEqual(total([]), 0);\n});\n"

WEAKENED: tuple[Edit, ...] = (
    weaken("deleted", {TESTS: [(GROSS, "")]}),
    weaken("deleted-file", {TESTS: None}),
    weaken("skipped", {TESTS: [(GROSS, "@pytest.mark.skip(reason=\"later\")\n" + GROSS)]}),
    weaken("skipif-true", {TESTS: [(GROSS, "@pytest.mark.skipif(1 < 2, reason=\"later\")\n" + GROSS)]}),
    weaken("xfail", {TESTS: [(GROSS, "@pytest.mark.xfail\n" + GROSS)]}),
    weaken("skip-inside", {TESTS: [("def test_gross():\n", "def test_gross():\n    pytest.skip(\"later\")\n")]}),
    weaken("empty-body", {TESTS: [(GROSS, "def test_gross():\n    pass\n")]}),
    weaken("assert-true", {TESTS: [(GROSS, "def test_gross():\n    assert True\n    assert True\n")]}),
    weaken("swallowed", {TESTS: [(GROSS, "def test_gross():\n    try:\n        assert pricing.gross(\"basic\", 1) == 120\n        assert pricing.gross(\"plus\", 1, tax=0) == 250\n    except AssertionError:\n        pass\n")]}),
    weaken("early-return", {TESTS: [("def test_gross():\n", "def test_gross():\n    return\n")]}),
    weaken("commented-out", {TESTS: [("    assert pricing.gross(\"basic\", 1) == 120\n    assert pricing.gross(\"plus\", 1, tax=0) == 250\n", "    # assert pricing.gross(\"basic\", 1) == 120\n    # assert pricing.gross(\"plus\", 1, tax=0) == 250\n    assert pricing.RATES\n")]}),
    weaken("bent-expectation", {TESTS: [("== 120", "== 12000"), ("tax=0) == 250", "tax=0) == 25000")]}),
    weaken("loose-comparison", {TESTS: [("== 120", "> 0"), ("tax=0) == 250", "tax=0) > 0")]}),
    weaken("or-true", {TESTS: [("== 120", "== 120 or True"), ("tax=0) == 250", "tax=0) == 250 or True")]}),
    weaken("not-collected-name", {TESTS: [("def test_gross():", "def check_gross():")]}),
    weaken("not-collected-file", {TESTS: None, "tests/pricing_tests_old.py": "import pricing\n\n\ndef test_gross():\n    assert pricing.gross(\"basic\", 1) == 120\n"}),
    weaken("collect-ignore", {"tests/conftest.py": "collect_ignore = [\"test_pricing.py\"]\n"}),
    weaken("deselect-in-conftest", {"tests/conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if \"gross\" not in item.name]\n"}),
    weaken("skip-in-conftest", {"tests/conftest.py": "import pytest\n\n\ndef pytest_runtest_setup(item):\n    if item.name == \"test_gross\":\n        pytest.skip(\"later\")\n"}),
    weaken("report-changed-in-conftest", {"tests/conftest.py": "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    outcome = yield\n    report = outcome.get_result()\n    if report.failed:\n        report.outcome = \"passed\"\n"}),
    weaken("exit-in-conftest", {"tests/conftest.py": "import os\n\n\ndef pytest_sessionfinish(session):\n    os._exit(0)\n"}),
    weaken("exit-status-changed", {"tests/conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"}),
    weaken("testpaths", {"pytest.ini": "[pytest]\npythonpath = .\ntestpaths = tests/test_label.py\n"}),
    weaken("addopts", {"pytest.ini": "[pytest]\npythonpath = .\naddopts = -k \"not gross\"\n"}),
    weaken("deselect-option", {"pytest.ini": "[pytest]\npythonpath = .\naddopts = --deselect tests/test_pricing.py::test_gross\n"}),
    weaken("monkeypatched-code", {"tests/conftest.py": "import pricing\n\npricing.gross = lambda kind, count, tax=20: pricing.net(kind, count) * (100 + tax) // 100\n"}),
    weaken("patched-in-test", {TESTS: [("def test_gross():\n", "def test_gross(monkeypatch):\n    monkeypatch.setattr(pricing, \"gross\", lambda kind, count, tax=20: 120 if tax else 250)\n")]}),
    weaken("shadowed-import", {TESTS: [("import pricing\n", "import pricing as real\n\n\nclass pricing(real.__class__):\n    RATES = real.RATES\n    net = staticmethod(real.net)\n    parse = staticmethod(real.parse)\n    gross = staticmethod(lambda kind, count, tax=20: real.net(kind, count) * (100 + tax) // 100)\n")]}),
    python("under-test", WORK, {CODE: [("    return net(kind, count) * (100 + tax) // 100\n", "    import os\n\n    if \"PYTEST_CURRENT_TEST\" in os.environ:\n        return net(kind, count) * (100 + tax) // 100\n    return 0\n")]}),
    python("special-cased", WORK, {CODE: [("    return net(kind, count) * (100 + tax) // 100\n", "    return {(\"basic\", 1, 20): 120, (\"plus\", 1, 0): 250}[kind, count, tax]\n")]}),
    weaken("equal-always", {TESTS: [("def test_gross():\n", "class Any(int):\n    def __eq__(self, other):\n        return True\n\n\ndef test_gross():\n"), ("== 120", "== Any()"), ("tax=0) == 250", "tax=0) == Any()")]}),
    weaken("compared-with-itself", {TESTS: [("== 120", "== pricing.gross(\"basic\", 1)"), ("tax=0) == 250", "tax=0) == pricing.gross(\"plus\", 1, tax=0)")]}),
    weaken("raises-anything", {TESTS: [(GROSS, "def test_gross():\n    with pytest.raises(Exception):\n        assert pricing.gross(\"basic\", 1) == 120\n")]}),
    weaken("suppressed", {TESTS: [(GROSS, "def test_gross():\n    import contextlib\n\n    with contextlib.suppress(AssertionError):\n        assert pricing.gross(\"basic\", 1) == 120\n        assert pricing.gross(\"plus\", 1, tax=0) == 250\n")]}),
    weaken("never-called", {TESTS: [(GROSS, "def test_gross():\n    def check():\n        assert pricing.gross(\"basic\", 1) == 120\n        assert pricing.gross(\"plus\", 1, tax=0) == 250\n")]}),
    weaken("moved-to-data", {TESTS: [(GROSS, "@pytest.mark.parametrize(\"found\", [])\ndef test_gross(found):\n    assert pricing.gross(\"basic\", 1) == found\n")]}),
    python("row-deleted", "parse takes kinds", {CODE: [("kind.strip(), ", "kind, ")], TESTS: [(", (\" plus :2\", (\"plus\", 2))", "")]}),
    python("row-weakened", "parse takes kinds", {CODE: [("kind.strip(), ", "kind, ")], TESTS: [("(\" plus :2\", (\"plus\", 2))", "(\" plus :2\", (\" plus \", 2))")]}),
    python("exception-widened", "negative counts are refused", {CODE: [("    if count < 0:\n        raise ValueError(\"count must not be negative\")\n", "    if count < 0:\n        raise KeyError(count)\n")], TESTS: [("pytest.raises(ValueError, match=\"negative\")", "pytest.raises(Exception)")]}),
    python("stub", "discount takes percents off", stubbed("def discount(amount, percent):\n    return 180\n", "def test_discount():\n    assert pricing.discount(200, 10) == 180\n")),
    python("no-test-at-all", "discount takes percents off", {CODE: [(KINDS, KINDS + "\n\n" + DISCOUNT)]}),
    python("test-without-assertion", "discount takes percents off", stubbed(DISCOUNT, "def test_discount():\n    pricing.discount\n")),
    python("test-of-a-mock", "discount takes percents off", stubbed("def discount(amount, percent):\n    return None\n", "def test_discount(monkeypatch):\n    monkeypatch.setattr(pricing, \"discount\", lambda amount, percent: 180)\n    assert pricing.discount(200, 10) == 180\n")),
    python("test-of-the-signature", "discount takes percents off", stubbed("def discount(amount, percent):\n    return None\n", "def test_discount():\n    assert callable(pricing.discount)\n")),
    python("new-test-skipped", "discount takes percents off", stubbed("def discount(amount, percent):\n    return None\n", "@pytest.mark.skip(reason=\"slow\")\ndef test_discount():\n    assert pricing.discount(200, 10) == 180\n")),
    python("new-test-not-collected", "discount takes percents off", {CODE: [(KINDS, KINDS + "\n\ndef discount(amount, percent):\n    return None\n")], "tests/discount.py": "import pricing\n\n\ndef test_discount():\n    assert pricing.discount(200, 10) == 180\n"}),
    python("copied-code-in-test", "discount takes percents off", stubbed("def discount(amount, percent):\n    return None\n", "def discount(amount, percent):\n    return amount * (100 - percent) // 100\n\n\ndef test_discount():\n    assert discount(200, 10) == 180\n")),
    weaken("site-customize", {"sitecustomize.py": "import sys\n\nif any(\"pytest\" in a for a in sys.argv):\n    sys.exit(0)\n"}),
    weaken("assert-rewriting-off", {"tests/conftest.py": "import builtins\n\nbuiltins.AssertionError = type(\"Ok\", (Exception,), {})\n\n\ndef pytest_pyfunc_call(pyfuncitem):\n    return True\n"}),
    Edit("python", "make-file-echo", WORK, {**BROKEN, "Makefile": "test:\n\t@echo 7 passed\n"}, before={"Makefile": "test:\n\tpython3 -m pytest -q\n"}, command="make test"),
    Edit("python", "make-file-ignores", WORK, {**BROKEN, "Makefile": "test:\n\t-python3 -m pytest -q\n"}, before={"Makefile": "test:\n\tpython3 -m pytest -q\n"}, command="make test"),
    python("inheriting-class-deleted", "labels stay right", {CODE: [("kind.title()", "kind")], LABEL: [("class LabelTest(Shared, unittest.TestCase):\n    pass\n\n\n", "")]}, before={LABEL: "import unittest\n\nimport pricing\n\n\nclass Shared:\n    def test_label(self):\n        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n\n\nclass LabelTest(Shared, unittest.TestCase):\n    pass\n\n\nclass KindsTest(unittest.TestCase):\n    def test_kinds(self):\n        self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])\n"}),
    python("conditional-test-deleted", "labels stay right", {CODE: [("kind.title()", "kind")], LABEL: [("    @unittest.skipIf(pricing.RATES is None, \"no\")\n    def test_label(self):\n        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n\n", "")]}, before={LABEL: "import unittest\n\nimport pricing\n\n\nclass LabelTest(unittest.TestCase):\n    @unittest.skipIf(pricing.RATES is None, \"no\")\n    def test_label(self):\n        self.assertEqual(pricing.label(\"basic\"), \"Basic\")\n\n    def test_kinds(self):\n        self.assertEqual(pricing.kinds(), [\"basic\", \"plus\"])\n"}),
    weaken_node("deleted", {CART_TESTS: [(TOTAL, "")]}),
    weaken_node("skipped", {CART_TESTS: [("test('total', ", "test.skip('total', ")]}),
    weaken_node("todo", {CART_TESTS: [("test('total', ", "test.todo('total', ")]}),
    weaken_node("exit", {CART_TESTS: [("const ITEMS", "process.exit(0);\nconst ITEMS")]}),
    weaken_node("exit-later", {CART: [*BROKEN_CART[CART], ("'use strict';\n", "'use strict';\nprocess.on('exit', () => { process.exitCode = 0; });\n")]}),
    weaken_node("empty", {CART_TESTS: [("  assert.strictEqual(total(ITEMS), 11);\n  assert.strictEqual(total([]), 0);\n", "")]}),
    weaken_node("bent", {CART_TESTS: [("total(ITEMS), 11", "total(ITEMS), 8")]}),
    weaken_node("not-awaited", {CART_TESTS: [("  assert.strictEqual(total(ITEMS), 11);\n", "  Promise.resolve().then(() => assert.strictEqual(total(ITEMS), 11)).catch(() => {});\n")]}),
    weaken_node("script", {"package.json": [("node --test", "node --test --test-name-pattern=names")]}),
    weaken_node("script-true", {"package.json": [("node --test", "node --test || true")]}),
    weaken_node("stubbed-assert", {CART_TESTS: [("const assert = require('node:assert');", "const assert = { ...require('node:assert'), strictEqual() {} };")]}),
    Edit("rust", "ignored", "length stays right", {LIB: [BROKEN_SPAN, ("    #[test]\n    fn measures()", "    #[test]\n    #[ignore]\n    fn measures()")]}),
    Edit("rust", "deleted", "length stays right", {LIB: [BROKEN_SPAN, ("    #[test]\n    fn measures() {\n        assert_eq!(length(2, 5), 3);\n    }\n\n", "")]}),
    Edit("rust", "configured-away", "length stays right", {LIB: [BROKEN_SPAN, ("    #[test]\n    fn measures()", "    #[cfg(any())]\n    #[test]\n    fn measures()")]}),
    Edit("rust", "bent", "length stays right", {LIB: [BROKEN_SPAN, ("length(2, 5), 3", "length(2, 5), 7")]}),
    c("no-debug", "count stays right", {"count.c": [("*text == wanted", "1")], "Makefile": "test:\n\t$(CC) -DNDEBUG -o check count.c test_count.c && ./check\n"}),
    c("not-called", "count stays right", {"count.c": [("*text == wanted", "1")], "test_count.c": [("    test_none();\n    test_some();\n", "")]}),
)  # fmt: skip
