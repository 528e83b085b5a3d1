"""A test command's JUnit report: read where this run wrote it, and only ever stricter than the exit code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.sandbox.command import CommandResult
from lopen.tools.calls import ToolResult
from lopen.verification.run_record import NO_RECORD
from tests.models.prompts.examples import planned
from tests.tools.examples import Bench, bench

COMMAND = "run-tests --junitxml=out/report.xml"
PASSED = '<testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>'
FAILED = '<testsuite><testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><error/></testcase></testsuite>'
NOTHING = "<testsuite/>"
Write = Callable[[Path], object]  # what the command does in its folder


def verified(at: Bench, *, exit_code: int = 0, write: Write = lambda _: None) -> ToolResult:
    def act(_: str, folder: Path) -> CommandResult:
        write(folder)
        return CommandResult(exit_code=exit_code, output="done\n")

    at.sandbox.act = act
    return at.call("verify_tests")


def reporting(content: str) -> Write:
    def write(folder: Path) -> None:
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / "report.xml").write_text(content, "utf-8")

    return write


@pytest.fixture
def at(root: Path) -> Bench:
    return bench(root, planned(), commands={"verify-tests": COMMAND})


def test_a_report_that_agrees_is_told(root: Path, at: Bench) -> None:
    result = verified(at, write=reporting(PASSED))

    assert result.fields["passed"] is True
    assert result.fields["output"] == (
        f"done\n[out/report.xml: 2 tests, 1 passed, 0 failed, 0 with errors, 1 skipped]\n[{NO_RECORD}]"
    )
    assert not (root / "out").exists()


def test_failed_tests_behind_a_successful_exit_are_failed_tests(root: Path, at: Bench) -> None:
    result = verified(at, write=reporting(FAILED))

    assert result.fields["passed"] is False
    assert "exited with success, but out/report.xml tells of 2 failed tests" in result.fields["hint"]


@pytest.mark.parametrize("content", [PASSED, FAILED])
def test_a_failing_command_has_failed_whatever_the_report_says(root: Path, at: Bench, content: str) -> None:
    result = verified(at, exit_code=1, write=reporting(content))

    assert result.fields["passed"] is False
    assert "hint" not in result.fields


def test_an_old_report_proves_nothing(root: Path, at: Bench) -> None:
    reporting(FAILED)(root)

    result = verified(at)

    assert (result.fields["passed"], result.fields["output"]) == (True, f"done\n[{NO_RECORD}]")


def test_a_report_that_cannot_be_read_is_said_and_changes_nothing(root: Path, at: Bench) -> None:
    result = verified(at, write=reporting("<!DOCTYPE testsuite><testsuite/>"))

    assert result.fields["passed"] is True
    assert "[out/report.xml was not used: the report has a document type" in result.fields["output"]


def test_a_report_is_not_followed_out_of_the_project(root: Path, at: Bench) -> None:
    def elsewhere(folder: Path) -> None:
        (folder.parent / "report.xml").write_text(FAILED, "utf-8")
        (folder / "out").mkdir()
        (folder / "out" / "report.xml").symlink_to("../../report.xml")

    assert verified(at, write=elsewhere).fields["output"] == f"done\n[{NO_RECORD}]"


def test_a_pipe_in_the_reports_place_hangs_nothing(root: Path, at: Bench) -> None:
    def pipe(folder: Path) -> None:
        (folder / "out").mkdir()
        os.mkfifo(folder / "out" / "report.xml")

    assert verified(at, write=pipe).fields["passed"] is True


@pytest.mark.parametrize(("path", "read"), [("{root}/report.xml", True), ("{root}/../report.xml", False)])
def test_an_absolute_path_is_read_inside_the_project(root: Path, path: str, read: bool) -> None:
    file = path.format(root=root)
    at = bench(root, planned(), commands={"verify-tests": f"run-tests --junitxml={file}"})

    result = verified(at, write=lambda folder: Path(path.format(root=folder)).write_text(NOTHING, "utf-8"))

    assert result.fields["passed"] is not read
