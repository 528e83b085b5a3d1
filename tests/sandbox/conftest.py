"""One world for all attempts of a test process; each attempt starts with a fresh project in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.sandbox.world import World, a_world


@pytest.fixture(scope="session")
def surroundings() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def world(surroundings: World) -> World:
    surroundings.renew()
    return surroundings


_CASE = re.compile(r"test_escapes\.py::test_an_attempt_achieves_nothing\[(?P<mode>\w+): (?P<name>.*)\]$")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of attempts, where any were run."""
    from tests.sandbox.table import KINDS, Outcome, drawn

    words: dict[str, Outcome] = {"passed": "held", "failed": "out", "skipped": "not tried"}
    outcomes = [
        (match["name"], match["mode"], outcome)
        for word, outcome in words.items()
        for report in terminalreporter.stats.get(word, ())
        if (match := _CASE.search(getattr(report, "nodeid", ""))) and match["name"] in KINDS
    ]
    if outcomes:
        terminalreporter.section("attempts to get out of the sandbox")
        terminalreporter.write_line("\n".join(drawn(outcomes)))
