"""By which files an approved command runs, and that each change of one is told."""

from __future__ import annotations

import json

import pytest

from lopen.verification.run_files import dependency_questions, run_by, run_file_questions
from lopen.verification.test_files import FileChange

TREE = {
    "Makefile": "include mk/rules.mk\n-include local.mk\ncheck: lint\n\t@./run_tests.sh --all\n\t$(MAKE) -C sub test\n",
    "mk/rules.mk": "lint:\n\tpython tools/check.py\n",
    "run_tests.sh": "#!/bin/sh\n# sh old.sh\ncd web && npm test\n. ./env.sh\npython3 -m tools.count\n",
    "sub/Makefile": "test:\n\tbash scripts/test.bash\n",
    "web/package.json": json.dumps({"scripts": {"pretest": "node scripts/before.js", "test": "vitest run"}}),
    "tools/check.py": "import subprocess\nsubprocess.run(['sh', 'tools/inner.sh'])\n",
    "pyproject.toml": "[build-system]\nbuild-backend = 'backend'\nbackend-path = ['tools']\n[tool.pytest.ini_options]\naddopts = '-q'\n",
}
RUN = {
    "make check": {"GNUmakefile", "Makefile", "mk/rules.mk", "local.mk", "run_tests.sh", "env.sh", "sub/Makefile",
        "sub/GNUmakefile", "sub/scripts/test.bash", "web/package.json", "web/.npmrc", "web/scripts/before.js",
        "web/vitest.config.ts", "tools/check.py", "tools/inner.sh", "tools/count.py"},
    "python -m pytest -q": {"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py"},
    "cd web; npm test": {"web/package.json", "web/.yarnrc.yml", "web/scripts/before.js"},
    "npm --prefix web run test": {"web/package.json"},
    "python tools/check.py && cargo test": {"tools/check.py", ".cargo/config.toml"},
    "make -f other.mk": {"other.mk"},
    "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]'": {"setup.py", "pyproject.toml"},
    "npx jest": {"jest.config.ts", "babel.config.js", ".babelrc", "package.json"},
    "tox -e py": {"tox.ini"},
    "cd app && ./gradlew test": {"app/gradle/wrapper/gradle-wrapper.jar", "app/gradle/wrapper/gradle-wrapper.properties"},
    "./mvnw -q verify": {".mvn/wrapper/maven-wrapper.jar", ".mvn/wrapper/maven-wrapper.properties"},
}  # fmt: skip


@pytest.mark.parametrize("command", RUN)
def test_files_by_which_a_command_runs_are_followed(command: str) -> None:
    runs_by = run_by(command, TREE.get)

    assert [path for path in sorted(RUN[command]) if not runs_by.fullmatch(path)] == []
    assert not runs_by.fullmatch("old.sh")


def test_sources_that_a_program_imports_are_no_files_by_which_a_command_runs() -> None:
    tree = {
        "package.json": json.dumps({"scripts": {"test": "node ./tests/all.mjs"}}),
        "tests/all.mjs": "import { add } from '../lib/calc.js';\n",
        "lib/calc.js": "exports.add = 1;\n",
        "setup.cfg": "[flake8]\nignore = W503\n",
    }
    changes = [FileChange(path, f"\n{text}", text) for path, text in tree.items()]
    commands = {"verify-setup": ".venv/bin/pip install -e .", "verify-tests": "npm test && pytest"}

    asked = {q.path: q.text for q in run_file_questions(commands, changes, tree.get)}

    assert list(asked) == ["tests/all.mjs", "setup.cfg"]
    assert "by which verify-setup, verify-tests runs" in asked["setup.cfg"], "one question for all commands"


def test_an_installation_of_other_packages_reads_nothing_of_the_project() -> None:
    runs_by = run_by("python3 -m venv .venv && .venv/bin/pip install -q 'pytest>=8' \"pyyaml \"", TREE.get)
    assert not runs_by.fullmatch("pyproject.toml")


NEUTRAL = {
    "Makefile": "# A comment\n" + TREE["Makefile"],
    "tools/check.py": TREE["tools/check.py"] + "\n",
    "web/package.json": json.dumps(
        {"scripts": {"test": "vitest run --silent", "pretest": "node scripts/before.js"}}
    ),
}


@pytest.mark.parametrize("path", NEUTRAL)
def test_a_neutral_change_is_asked_about(path: str) -> None:
    change = FileChange(path, TREE[path], NEUTRAL[path])

    (question,) = run_file_questions({"verify-tests": "make check"}, [change], (TREE | NEUTRAL).get)

    assert (question.kind, question.path) == ("run_file_changed", path)
    assert (
        "The work changes this file, by which verify-tests runs: does every verify command" in question.text
    )
    assert question.before + question.after in ("# A comment", "", TREE[path] + NEUTRAL[path]), "what differs"


def test_what_no_approved_command_runs_by_is_not_told() -> None:
    settings = TREE["pyproject.toml"]
    changes = [
        FileChange("pyproject.toml", settings, f"[project]\nname = 'a'\n{settings}"),
        FileChange("Makefile", "a:\n", "b:\n"),
        FileChange("src/calc.py", "A = 1\n", "A = 2\n"),
    ]
    commands = {"verify-tests": "python -m pytest", "verify-lint": None}

    assert list(run_file_questions(commands, changes, TREE.get)) == []
    stricter = FileChange("pyproject.toml", settings, settings.replace("-q", "-q --strict-markers"))
    new, gone = FileChange("conftest.py", None, "A = 1\n"), FileChange("pytest.ini", "[pytest]\n", None)
    found = list(run_file_questions(commands, [stricter, new, gone], TREE.get))
    assert {question.path for question in found} == {"pyproject.toml", "pytest.ini"}


@pytest.mark.parametrize(
    "command", ["cp -r src/pytest out", "python3 -m venv tools/tox", "cat docs/make/just"]
)
def test_a_path_that_holds_a_tools_name_is_no_call_of_it(command: str) -> None:
    runs_by = run_by(command, TREE.get)

    assert not any(map(runs_by.fullmatch, ("pytest.ini", "tox.ini", "justfile")))


DEPENDENCIES = {
    "a package of the project": ("package.json", '  "dependencies": {"left": "file:./left"}'),
    "a folder": ("requirements.txt", "-e ./vendor/pytest"),
    "a plugin": ("pyproject.toml", 'dev = ["pytest-rerunfailures"]'),
    "a crate": ("Cargo.toml", 'span = { path = "../span" }'),
    "a published package": ("requirements.txt", ""),
}


@pytest.mark.parametrize("what", sorted(DEPENDENCIES))
def test_local_dependencies_and_plugins_of_a_runner_are_asked_about(what: str) -> None:
    path, line = DEPENDENCIES[what]

    asked = list(dependency_questions([FileChange(path, "a\n", f"a\nrequests==2.0\n{line}\n")]))

    assert [question.kind for question in asked] == (["dependency"] if line else [])


@pytest.mark.parametrize(
    "line", ["a" * 100_000, "make " * 20_000, "$(" * 50_000, "sh a.sh;" * 10_000, "cd ../;" * 9_000]
)
def test_hostile_lines_end(line: str) -> None:
    run_by("make", {"Makefile": f"t:\n\t{line}\n" * 3}.get)
