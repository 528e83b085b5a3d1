"""Patterns over long hostile text: processor time in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from lopen.git import commits
from lopen.guardrails import completion
from lopen.judge import runner_output, tests_run
from lopen.specification import spec_import
from lopen.test_integrity import (
    FileChange,
    conditions,
    configuration,
    local_stand_ins,
    narrowed_places,
    place_settings,
    replaced_runners,
    runner_commands,
    runner_scripts,
    unread,
)
from lopen.test_integrity.java import builds
from lopen.test_integrity.python import pytest_plugins

LENGTH = 100_000
SECONDS = 0.3  # of processor time: three times what is aimed at, for a loaded machine
# as the code calls them
READINGS: list[tuple[Callable[[str], object], str]] = [
    (conditions._LITERAL.match, "1"),
    (configuration._CONFIGURED.findall, "exclude \n"),
    (configuration._FLAGS.findall, "invert \n"),
    (configuration._FLAGS.findall, " \n"),
    (builds._JVM.findall, "test "),
    *(
        (setting.read, unit)
        for setting in place_settings.SETTINGS
        if setting.says.startswith(
            ("the workspace", "JUnit", "rake", "CMake", "Gradle leaves", "PHPUnit looks")
        )
        for unit in ("\n", "junit.", "sh ", "testa/", "excludedTaskNames ", "<directory ")
    ),
    (pytest_plugins._LOADED.findall, "pytest_plugins "),
    (runner_commands._ASKED.search, "[ "),
    (runner_scripts._TARGET.match, " "),
    (runner_scripts._TARGET.match, "a "),
    (tests_run._NAMED.findall, "--- PASS: a ("),
    (tests_run._NAMED.findall, "✔ a ("),
    (runner_output._OUTCOMES.findall, "1"),
    (runner_output._FAILED_TESTS.findall, "● a › "),
    (spec_import._TITLE_SUFFIX.split, " "),
    (commits._IDENTITY.fullmatch, " <a"),
    (completion.NO_BEHAVIOUR.match, ".config."),
]


@pytest.mark.parametrize(("read", "unit"), READINGS)
def test_a_pattern_reads_hostile_text_once(read: Callable[[str], object], unit: str) -> None:
    text = unit * (LENGTH // len(unit)) + "!"
    started = time.process_time()

    read(text)

    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("pom.xml", "<!--"),
        ("pom.xml", "maven-surefire-plugin</artifactId>"),
        ("Cargo.toml", "members = [\n"),
        ("jest.config.js", "testMatch: ['**a**b{c,d}'],\n"),
        ("vitest.config.ts", "x({spec: 'a',"),
        ("build.gradle", "test {"),
    ],
)
def test_settings_of_places_are_read_once(path: str, unit: str) -> None:
    text = unit * (50_000 // len(unit))
    started = time.process_time()

    list(narrowed_places.narrowed_findings(FileChange(path, text[: len(text) // 2], text)))

    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("unit", ["||", "|| a ", "; ", "a&&", "test $x || "])
def test_a_script_of_alternatives_is_read_once(unit: str) -> None:
    script = "pytest " + unit * (50_000 // len(unit))
    change = FileChange(
        "package.json", '{"scripts": {"test": "pytest"}}', f'{{"scripts": {{"test": "{script}"}}}}'
    )
    started = time.process_time()

    list(configuration.configuration_findings([change]))

    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("A.java", '"\\u00e9" + '),
        ("A.java", "\\u000a"),
        ("A.java", "\\\\"),
        ("a.test.js", "const a = () => 1; a.b.c("),
        ("a.test.js", "import a "),
        ("a.test.js", "const a "),
        ("a.test.js", "assert.a.a "),
        ("tests/a.rs", "mod a { a:: "),
        (".cargo/config.toml", "runner "),
        ("package.json", '"runner": "./'),
        ("pytest.ini", " -p "),
    ],
)
def test_a_changed_file_is_read_once(path: str, unit: str) -> None:
    text = unit * (LENGTH // len(unit))
    change = FileChange(path, text[: LENGTH // 2], text)
    tests = frozenset({path})
    started = time.process_time()

    list(unread.unread_findings([change], tests))
    list(local_stand_ins.local_stand_in_findings([change], tests))
    list(replaced_runners.replaced_runner_findings([change]))

    assert time.process_time() - started < 10 * SECONDS  # a parser's time too
