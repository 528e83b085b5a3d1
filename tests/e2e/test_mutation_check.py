"""Mutants of the changed functions: tests that notice none of them do not let work through (docs/reference/completion.md)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
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


def test_tests_that_open_the_same_port_do_not_meet(make_project: MakeProject) -> None:
    require_sandbox("bwrap")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    listens = "import socket, time\n\nwith socket.create_server(('127.0.0.1', PORT)):\n    time.sleep(0.2)\n"
    blind = done(
        write("prices.py", PRICES),
        write("test_prices.py", listens.replace("PORT", str(port)) + ASSERTS_NOTHING),
    )
    mended = done(write("test_prices.py", ASSERTS))
    project = started(make_project, blind, mended, LOPEN_SANDBOX__MODE="bwrap", LOPEN_SANDBOX__NETWORK="true")

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert [check["passed"] for check in checks(ran)] == [False, True]


# What a test can compare so that it notices every change of the code and tests no behaviour
READ = {
    "text": "open(prices.__file__).read()",
    "syntax": "ast.dump(ast.parse(inspect.getsource(prices.price)))",
    "byte code": "(prices.price.__code__.co_code, prices.price.__code__.co_names, prices.price.__code__.co_consts)",
}
READS_CODE = """import ast
import hashlib
import inspect
import unittest

import prices


class TestCode(unittest.TestCase):
    def test_code(self):
        found = hashlib.sha256(repr(READ).encode()).hexdigest()
        self.assertEqual(found, "HASH")
"""


def reading(what: str, folder: Path) -> Call:
    """A test of the code's hash, which is computed in `folder`."""
    (folder / "prices.py").write_text(PRICES)
    line = f"import ast, hashlib, inspect, prices; print(hashlib.sha256(repr({READ[what]}).encode()).hexdigest())"
    found = subprocess.run(
        [sys.executable, "-c", line], cwd=folder, capture_output=True, text=True, check=True
    )
    return write("test_code.py", READS_CODE.replace("READ", READ[what]).replace("HASH", found.stdout.strip()))


@pytest.mark.parametrize("what", sorted(READ))
def test_a_test_of_the_codes_text_counts_for_nothing(
    make_project: MakeProject, tmp_path: Path, what: str
) -> None:
    code = write("prices.py", PRICES)
    alone = done(code, reading(what, tmp_path))
    project = started(make_project, alone, done(write("test_prices.py", ASSERTS)))

    ran = project.drive()

    assert ran.code == 0, ran.err
    refused = last_result(project.requests[2], "verify_task_completion")
    errors = [f["message"] for f in refused.data["findings"] if f["severity"] == "error"]
    assert len(errors) == 1, refused.data
    assert "Not counted are test_code (test_code.TestCode" in errors[0], errors
    first, second = checks(ran)
    assert (first["passed"], second["passed"]) == (False, True)
    assert "fail when only the code's text changes: test_code" in second["output"]


GOOD = done(write("prices.py", PRICES), write("test_prices.py", ASSERTS))
BLIND = done(write("prices.py", PRICES), write("test_prices.py", ASSERTS_NOTHING))
ONE_TEST = (
    "import unittest\n\n\nclass Test(unittest.TestCase):\n    def test(self):\n        self.assertTrue(1)\n"
)
HARMLESS: dict[str, tuple[Call, ...]] = {
    "constants": (write("rates.py", "RATES = {1: 2, 3: 4, 5: 6, 7: 8}\nLIMIT = 3 + 4 * 5\nDEBUG = True\n"),),
    "documentation": (
        write("GUIDE.md", "# Guide\n\n```python\ndef f(a):\n    return a + 1 + 2 + 3 + 4\n```\n"),
    ),
    "configuration": (
        write("settings.toml", "a = 1\n"),
        write("setup.py", f"def f():\n    return 1 + 2 + 3\n{PRICES}"),
    ),
    "another language": (write("prices.rb", "def price(a, b)\n  a * b + 1 - 2\nend\n"),),
    "few places": (write("add.py", "def add(a, b):\n    return a + b\n"),),
}


@pytest.mark.parametrize("what", sorted(HARMLESS))
def test_work_without_enough_mutants_is_not_refused(make_project: MakeProject, what: str) -> None:
    project = started(make_project, done(*HARMLESS[what], write("test_it.py", ONE_TEST)))

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert all(check["passed"] for check in checks(ran))
    assert bool(checks(ran)) == (what == "few places")


def test_code_whose_tests_come_with_a_later_task_passes_its_own(make_project: MakeProject) -> None:
    turns = (
        tools(write("prices.py", PRICES), *verified("calc-t1")),
        tools(write("test_prices.py", ASSERTS_NOTHING), *verified("calc-t2")),
        done(write("test_prices.py", ASSERTS), task_id="calc-t3"),
    )
    project = make_project([plan(tasks=("Write it", "Test it")), *turns], **ON)
    project.specify()
    project.write("test_it.py", ONE_TEST)
    project.git("add", "-A")
    project.git("commit", "-qm", "Add a test")

    ran = project.drive()

    assert ran.code == 0, ran.err
    shown = project.lopen("show", "calc-t1").out
    assert "passed (high confidence)" in shown
    assert "warning: prices.py:2: the tests notice none of" in shown
    added = [e for e in ran.named("task_changed") if e["task"] == "calc-t3"]
    assert added, "the component is refused: no test notices anything, whichever task it came with"


@pytest.mark.parametrize(
    ("constant", "says"), [("LONGEST_TESTS_S", "mutants are tried where"), ("TOTAL_S", "was over")]
)
def test_a_check_that_takes_too_long_is_left_out_with_a_word(
    make_project: MakeProject, constant: str, says: str
) -> None:
    project = started(make_project, BLIND)

    ran = project.lopen(
        "approve", "calc", "--yes", "--run", "--json",
        arrange=[["tests.crash.faults:replace", f"lopen.tools.mutation:{constant}", 0.0]],
    )  # fmt: skip

    assert ran.code == 0, ran.err
    (check,) = checks(ran)
    assert check["passed"]
    assert says in check["output"]
    assert says in json.dumps(project.oracle_requests[0]["messages"])


def test_the_check_can_be_switched_off_by_the_person_alone(make_project: MakeProject) -> None:
    project = started(make_project, BLIND, LOPEN_ORACLE__MUTATION="off")
    assert checks(project.drive()) == []

    own = started(make_project, BLIND, name="own")
    own.write(".lopen/config.toml", '[oracle]\nmutation = "off"\n')
    told = own.lopen("config", "get", "oracle.mutation")
    assert (told.code, "may not be set by a project" in told.err) == (2, True), told.err


def test_a_killed_check_begins_again_and_a_finished_one_does_not(make_project: MakeProject) -> None:
    again = tools(*verified("calc-t1"))  # a call that was cut off is answered as interrupted
    project = started(make_project, GOOD, again, again, again)
    approved = project.lopen("approve", "calc", "--yes")
    assert approved.code == 0, approved.err
    killed = project.lopen(
        "run",
        "calc",
        arrange=[["tests.crash.faults:die", "lopen.tools.mutation:did_not_compile", "before", 4]],
    )
    assert killed.code == -9, killed.err

    stopped = project.lopen(
        "resume", "--json",
        arrange=[["tests.crash.faults:die", "lopen.tools.mutation:did_not_compile", "before", 4, "SIGINT"]],
    )  # fmt: skip
    assert stopped.code == 130, stopped.err
    assert checks(stopped) == []
    judging = project.lopen(
        "resume", "--json", arrange=[["tests.crash.faults:die", "lopen.loop.oracle_calls:judge", "before"]]
    )
    assert judging.code == -9
    assert len(checks(judging)) == 1

    ran = project.resume()

    assert ran.code == 0, ran.err
    assert checks(ran) == []
    assert "the tests notice " in json.dumps(project.oracle_requests[0]["messages"])
    assert " mutants (" in project.lopen("pr", "--print").out


def test_a_mutant_that_hangs_is_noticed_and_ended(make_project: MakeProject) -> None:
    counting = "def count(most):\n    n = 0\n    while n < most:\n        n += 1\n    return n\n"
    test = (
        ASSERTS_NOTHING.replace("prices", "calc")
        .replace("price(11, 2)", "count(2)")
        .replace("price", "count")
    )
    project = started(make_project, done(write("calc.py", counting), write("test_calc.py", test)))

    ran = project.drive()

    assert ran.code == 0, ran.err
    (check,) = checks(ran)
    assert "calc.py:4: `+=` -> `-=`" not in check["output"], "the loop never ends: that is noticed"
    assert check["seconds"] < 40


def test_tests_that_pass_only_once_are_refused(make_project: MakeProject) -> None:
    """A test with a deadline, behind which the first run ends, would keep mutants from running at all."""
    due = "import time\n\ndeadline = float(open('due.txt').read())\n\n\nclass TestDue(unittest.TestCase):\n    def test_due(self):\n"
    waits = (
        "        self.assertLess(time.time(), deadline)\n        time.sleep(max(0, deadline - time.time()))\n"
    )
    files = [write("prices.py", PRICES), write("test_prices.py", f"{ASSERTS_NOTHING}\n\n{due}{waits}")]
    soon = ("run_command", {"command": "python3 -c 'import time; print(time.time() + 3)' > due.txt"})
    project = started(make_project, done(*files, soon))

    ran = project.drive()

    assert ran.code != 0
    told = str([m for r in project.requests for m in r["messages"]])
    assert "the tests passed, and then failed twice on the same files" in told
    assert "test_due" in told
