"""Mutants of the changed functions: tests that notice none of them do not let work through (docs/reference/mutation.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lopen.sandbox.choice import Mode
from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.needs import require_sandbox
from tests.project import Project, plan, verified
from tests.ran import Ran

Call = tuple[str, dict[str, Any]]
MODES: tuple[Mode, ...] = ("bwrap", "landlock", "none")
ON = {"LOPEN_ORACLE__MUTATION": ""}  # the default, which the other tests switch off

PRICES = """def price(count, each):
    if count < 0:
        return 0
    total = count * each
    if count > 10 and each > 1:
        total = total - 5
    return total
"""
ASSERTS_NOTHING = """import unittest

from prices import price


class TestPrice(unittest.TestCase):
    def test_price(self):
        found = price(11, 2)
        expected = price(11, 2)
        self.assertEqual(found, expected)
"""
ASSERTS = """import unittest

from prices import price


class TestPrice(unittest.TestCase):
    def test_price(self):
        given = [(2, 3), (0, 2), (-1, 2), (10, 2), (11, 2), (11, 1)]
        self.assertEqual([price(*pair) for pair in given], [6, 0, 0, 20, 17, 11])
"""


def write(path: str, content: str) -> Call:
    return "write_file", {"path": path, "content": content}


def done(*files: Call, task_id: str = "calc-t1") -> Any:
    return tools(*files, *verified(task_id))


def checks(ran: Ran) -> list[dict[str, Any]]:
    """The mutation checks that a run made."""
    return [e for e in ran.named("verification_ran") if e["tool"] == "mutation_check"]


def started(
    make_project: MakeProject, *turns: Any, tasks: tuple[str, ...] = ("Write it",), **given: Any
) -> Project:
    project = make_project([plan(tasks=tasks), *turns], **{**ON, **given})
    project.specify()
    return project


@pytest.mark.parametrize("mode", MODES)
def test_tests_that_notice_no_mutant_are_refused_then_mended(make_project: MakeProject, mode: Mode) -> None:
    require_sandbox(mode)
    blind = done(write("prices.py", PRICES), write("test_prices.py", ASSERTS_NOTHING))
    project = started(make_project, blind, done(write("test_prices.py", ASSERTS)), LOPEN_SANDBOX__MODE=mode)

    ran = project.drive()

    assert ran.code == 0, ran.err
    refused = last_result(project.requests[2], "verify_task_completion")
    (finding,) = refused.data["findings"]
    assert (refused.data["passed"], finding["severity"], finding["path"]) == (False, "error", "prices.py")
    assert "notice none of" in finding["message"]
    assert "prices.py:4: `*` -> `/`" in finding["message"]
    assert "add tests" in finding["message"]
    first, second = checks(ran)
    assert (first["passed"], second["passed"]) == (False, True)
    assert len(project.oracle_requests) == 1, "the refused work is not judged"
    shown = json.dumps(project.oracle_requests[0]["messages"])
    assert "the tests notice " in shown
    verdict = project.lopen("show", "calc").out
    assert f"verification-{second['number']} mutation_check" in verdict
    assert " mutants (" in project.lopen("show", f"verification-{second['number']}").out
    assert project.git("status", "--porcelain") == ""
