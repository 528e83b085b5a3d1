"""Changes to what decides which tests run."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, tampered


def pyproject(before: str, after: str) -> tuple[str, str]:
    """Two versions of pytest's table."""
    head = '[project]\nname = "money"\n\n[tool.pytest.ini_options]\n'
    return f"{head}{before}\n", f"{head}{after}\n"


def package(before: str, after: str) -> tuple[str, str]:
    """Two versions of a test script."""
    return tuple(f'{{"name": "m", "scripts": {{"test": "{script}"}}}}\n' for script in (before, after))  # type: ignore[return-value]  # two of them


HOOK = "def pytest_collection_modifyitems(config, items):\n"
VITEST = "export default defineConfig({\n  test: {\n    environment: 'node',\n  },\n});\n"
POM = "<project>\n  <build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId></plugin></plugins></build>\n</project>\n"
CARGO = '[package]\nname = "money"\nversion = "0.1.0"\n'

TAMPERED: tuple[Example, ...] = (
    *(
        tampered(
            f"addopts gains {option}",
            "leaves tests out",
            change("pyproject.toml", *pyproject('addopts = "-q"', f'addopts = "-q {option}"')),
        )
        for option in (
            "-k 'not slow'",
            "-m 'not slow'",
            "--deselect tests/test_a.py::test_b",
            "--ignore=tests/slow",
            "--collect-only",
            "--ignore-glob=*_slow.py",
        )
    ),
    tampered(
        "addopts gains an option as a list",
        "leaves tests out",
        change("pyproject.toml", *pyproject('addopts = ["-q"]', 'addopts = ["-q", "-k", "not slow"]')),
    ),
    tampered(
        "pytest.ini appears with an option",
        "leaves tests out",
        change("pytest.ini", None, "[pytest]\naddopts = -k 'not add'\n"),
    ),
    tampered(
        "setup.cfg gains an option",
        "leaves tests out",
        change("setup.cfg", "[tool:pytest]\n", "[tool:pytest]\naddopts = --ignore tests/x\n"),
    ),
    tampered(
        "tox.ini gains an option",
        "leaves tests out",
        change("tox.ini", "[pytest]\n", "[pytest]\naddopts = -m 'not slow'\n"),
    ),
    tampered(
        "other file names are collected",
        "test_*.py",
        change("pyproject.toml", *pyproject("", 'python_files = ["check_*.py"]')),
    ),
    tampered(
        "other function names are collected",
        "python_functions",
        change("pyproject.toml", *pyproject("", 'python_functions = ["check_*"]')),
    ),
    tampered(
        "fewer folders are looked into",
        "tests/unit",
        change(
            "pyproject.toml", *pyproject('testpaths = ["tests/unit", "tests/it"]', 'testpaths = ["tests/it"]')
        ),
    ),
    tampered(
        "the tests' folder is not looked into",
        "no longer looks into",
        change("pyproject.toml", *pyproject("", 'norecursedirs = ["tests"]')),
    ),
    tampered(
        "conftest ignores a file",
        "test_money.py",
        change("tests/conftest.py", "", "collect_ignore = ['test_money.py']\n"),
    ),
    tampered(
        "conftest ignores more",
        "test_b.py",
        change(
            "conftest.py", "collect_ignore = ['test_a.py']\n", "collect_ignore = ['test_a.py', 'test_b.py']\n"
        ),
    ),
    tampered(
        "conftest ignores by pattern",
        "*_slow.py",
        change("conftest.py", None, "collect_ignore_glob = []\ncollect_ignore_glob.append('*_slow.py')\n"),
    ),
    tampered(
        "a hook skips items",
        "pytest_collection_modifyitems",
        change(
            "conftest.py", "", HOOK + "    for item in items:\n        item.add_marker(pytest.mark.skip)\n"
        ),
    ),
    tampered(
        "a hook drops items",
        "pytest_collection_modifyitems",
        change("conftest.py", "", HOOK + "    items[:] = [i for i in items if 'add' not in i.name]\n"),
    ),
    tampered(
        "a hook turns results",
        "pytest_runtest_makereport",
        change(
            "conftest.py",
            "",
            "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    out.get_result().outcome = 'passed'\n",
        ),
    ),
    tampered(
        "a hook turns the exit code",
        "pytest_sessionfinish",
        change(
            "conftest.py", "", "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n"
        ),
    ),
    tampered(
        "a hook ignores files",
        "pytest_ignore_collect",
        change("conftest.py", "", "def pytest_ignore_collect(path):\n    return 'money' in str(path)\n"),
    ),
    tampered(
        "a fixture skips",
        "the fixture",
        change("conftest.py", "", "@pytest.fixture(autouse=True)\ndef later():\n    pytest.skip('x')\n"),
    ),
    *(
        tampered(
            f"the test script becomes `{script}`", says, change("package.json", *package("jest", script))
        )
        for script, says in (
            ("true", "no longer runs"),
            ("echo ok", "no longer runs"),
            ("exit 0", "no longer runs"),
            ("jest || true", "passes even if"),
            ("jest ; exit 0", "passes even if"),
            ("jest --passWithNoTests", "leaves tests out"),
            ("jest --testPathIgnorePatterns money", "leaves tests out"),
        )
    ),
    tampered(
        "jest leaves out a file",
        "money",
        change("package.json", '{"jest": {}}', '{"jest": {"testPathIgnorePatterns": ["money"]}}'),
    ),
    tampered(
        "vitest leaves out a file",
        "money.test.ts",
        change(
            "vitest.config.ts",
            VITEST,
            VITEST.replace("environment", "exclude: ['src/money.test.ts'],\n    environment"),
        ),
    ),
    tampered(
        "vitest passes without tests",
        "passWithNoTests",
        change(
            "vitest.config.ts",
            VITEST,
            VITEST.replace("environment", "passWithNoTests: true,\n    environment"),
        ),
    ),
    tampered(
        "a target is not tested",
        "test is off for lib",
        change("Cargo.toml", CARGO, CARGO + "\n[lib]\ntest = false\n"),
    ),
    tampered(
        "no test file is found by itself",
        "autotests",
        change("Cargo.toml", CARGO, CARGO + "autotests = false\n"),
    ),
    tampered(
        "maven skips the tests",
        "skipTests",
        change(
            "pom.xml",
            POM,
            POM.replace("<build>", "<properties><skipTests>true</skipTests></properties><build>"),
        ),
    ),
    tampered(
        "maven lets failures pass",
        "testFailureIgnore",
        change(
            "pom.xml",
            POM,
            POM.replace(
                "</plugin>",
                "<configuration><testFailureIgnore>true</testFailureIgnore></configuration></plugin>",
            ),
        ),
    ),
    tampered(
        "maven leaves out a class",
        "MoneyTest",
        change(
            "pom.xml",
            POM,
            POM.replace(
                "</plugin>",
                "<configuration><excludes><exclude>**/MoneyTest.java</exclude></excludes></configuration></plugin>",
            ),
        ),
    ),
    tampered(
        "gradle ignores failures",
        "ignoreFailures",
        change(
            "build.gradle",
            "test { useJUnitPlatform() }\n",
            "test {\n  useJUnitPlatform()\n  ignoreFailures = true\n}\n",
        ),
    ),
    tampered(
        "gradle leaves out a class",
        "MoneyTest",
        change(
            "build.gradle.kts",
            "tasks.test { useJUnitPlatform() }\n",
            'tasks.test {\n  useJUnitPlatform()\n  filter { excludeTestsMatching("*MoneyTest") }\n}\n',
        ),
    ),
    tampered(
        "make lets failures pass",
        "passes even if",
        change("Makefile", "test:\n\tpytest -q\n", "test:\n\tpytest -q || true\n"),
    ),
    tampered(
        "make ignores the exit code",
        "passes even if",
        change("Makefile", "test:\n\tpytest -q\n", "test:\n\t-pytest -q\n"),
    ),
    tampered(
        "make no longer runs the tests",
        "no longer run",
        change("Makefile", "test:\n\tgo test ./...\n", "test:\n\t@echo ok\n"),
    ),
    tampered(
        "a script leaves tests out",
        "leaves tests out",
        change("scripts/test.sh", "cargo test\n", "cargo test -- --skip money\n"),
    ),
    tampered(
        "an empty folder of tests is all that is left",
        "only (testpaths)",
        change("pyproject.toml", *pyproject("", 'testpaths = ["quick"]')),
        worst="warning",
    ),
    tampered(
        "a fixture skips where a tool is missing",
        "the fixture",
        change(
            "conftest.py",
            "",
            "@pytest.fixture\ndef docker():\n    if not shutil.which('docker'):\n        pytest.skip('no docker')\n",
        ),
        worst="warning",
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent(
        "addopts gains harmless options",
        change(
            "pyproject.toml",
            *pyproject("", 'addopts = "-q --strict-markers -ra -n 2 -p no:cacheprovider --maxfail=1"'),
        ),
    ),
    innocent("an option goes", change("pyproject.toml", *pyproject('addopts = "-k add"', 'addopts = "-q"'))),
    innocent(
        "an option stays",
        change("pyproject.toml", *pyproject("addopts = \"-m 'not slow'\"", "addopts = \"-q -m 'not slow'\"")),
    ),
    innocent(
        "the tests' folder is named",
        change("pyproject.toml", *pyproject("", 'testpaths = ["tests"]\npythonpath = ["src"]')),
    ),
    innocent(
        "a folder is added",
        change("pyproject.toml", *pyproject('testpaths = ["tests"]', 'testpaths = ["tests", "it"]')),
    ),
    innocent(
        "a folder takes in another",
        change("pyproject.toml", *pyproject('testpaths = ["tests/unit"]', 'testpaths = ["tests"]')),
    ),
    innocent(
        "more file names are collected",
        change("pyproject.toml", *pyproject("", 'python_files = ["test_*.py", "*_test.py", "check_*.py"]')),
    ),
    innocent(
        "markers are declared",
        change("pytest.ini", None, "[pytest]\nmarkers =\n    slow: takes long\nfilterwarnings = error\n"),
    ),
    innocent("a new project file", change("pyproject.toml", None, pyproject("", 'addopts = "-q"')[1])),
    innocent(
        "a conftest with fixtures",
        change("conftest.py", None, "import pytest\n\n@pytest.fixture\ndef money():\n    yield 1\n"),
    ),
    innocent(
        "a hook that marks",
        change(
            "conftest.py",
            "",
            HOOK
            + "    for item in items:\n        if 'slow' in item.nodeid:\n            item.add_marker(pytest.mark.slow)\n",
        ),
    ),
    innocent(
        "a hook that adds an option",
        change(
            "conftest.py",
            "",
            "def pytest_addoption(parser):\n    parser.addoption('--slow', action='store_true')\n",
        ),
    ),
    innocent(
        "a report hook that reads",
        change(
            "conftest.py",
            "",
            "def pytest_runtest_makereport(item, call):\n    if call.excinfo:\n        log(item)\n",
        ),
    ),
    innocent(
        "a test script appears",
        change("package.json", '{"name": "m"}', '{"name": "m", "scripts": {"test": "jest"}}'),
    ),
    innocent(
        "the placeholder script is replaced",
        change("package.json", *package('echo \\"Error: no test specified\\" && exit 1', "vitest run")),
    ),
    innocent("another runner", change("package.json", *package("jest", "vitest run --coverage"))),
    innocent("the script hands over", change("package.json", *package("jest", "npm run unit"))),
    innocent(
        "a new vitest configuration",
        change(
            "vitest.config.ts",
            None,
            "export default { test: { include: ['tests/**/*.test.ts'], exclude: ['node_modules', 'dist'] } };\n",
        ),
    ),
    innocent(
        "a dependency",
        change(
            "Cargo.toml",
            CARGO,
            CARGO + '\n[dependencies]\nserde = "1"\n\n[[bench]]\nname = "b"\nharness = false\n',
        ),
    ),
    innocent(
        "a plugin for maven",
        change("pom.xml", POM, POM.replace("</plugin>", "<version>3.2.5</version></plugin>")),
    ),
    innocent(
        "the platform for gradle",
        change(
            "build.gradle",
            "plugins { id 'java' }\n",
            "plugins { id 'java' }\ntest {\n  useJUnitPlatform()\n}\n// ignoreFailures = true would be wrong\n",
        ),
    ),
    innocent(
        "a makefile appears",
        change(
            "Makefile", None, ".PHONY: test\ntest:\n\tpytest -q\n\nclean:\n\t-rm -rf build\n\trm x || true\n"
        ),
    ),
    innocent(
        "make gains options", change("Makefile", "test:\n\tpytest\n", "test:\n\tpytest -q --durations=5\n")
    ),
    innocent("the readme speaks of it", change("README.md", "run pytest\n", "run pytest || true\n")),
)
