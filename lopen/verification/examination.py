"""lopen's own examination of a change: certain errors, questions for the judge, and measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lopen.store.audit import VerifyResult
from lopen.verification.compared_tests import compare_tests, numbered, text_questions
from lopen.verification.extra_runs import ExtraRuns
from lopen.verification.findings import ChangeQuestion, Finding
from lopen.verification.no_longer_run import no_longer_run, not_reported
from lopen.verification.run_files import dependency_questions, run_file_questions
from lopen.verification.test_files import ExaminedChange, FileChange, looks_like_test
from lopen.verification.test_reader import read_tests
from lopen.verification.test_run import TestRun


@dataclass(frozen=True, slots=True)
class Runs:
    """The test runs that an examination compares.

    `tests` is the passing run on the tree, None where a verify command failed. `before` ran at the base, or on an
    earlier accepted tree. `wide`: no later task of the same work can add tests. `control`: functions may be broken.
    """

    commands: Mapping[str, str | None]
    tests: VerifyResult | None
    before: TestRun | None
    after: TestRun
    wide: bool
    control: bool = True


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of an examination: findings, of which errors fail the work, and questions for the judge."""

    findings: tuple[Finding, ...]
    questions: tuple[ChangeQuestion, ...]


def examine(change: ExaminedChange, runs: Runs, extra: ExtraRuns) -> Examination:
    """Return what comparing the tests, their runs and a few more runs tell of a change."""
    compared = compare_tests(change.changes)
    command = (runs.tests.command if runs.tests else runs.commands.get("verify-tests")) or ""
    findings: list[Finding] = []
    questions: list[ChangeQuestion] = []
    if runs.tests is not None:
        findings += no_longer_run(change, compared, runs.before, runs.after, command)
        findings += not_reported(compared, runs.after, command)
    told = frozenset[str]()
    if runs.tests is not None:
        mutation, earlier = extra.check(change, compared, runs.tests, runs.after, broken=runs.control)
        if mutation is not None:
            findings += mutation.findings(blocks=runs.wide or _has_tests(change.changes))
        if earlier is not None:
            questions += earlier.questions(compared, change.changes)
            told = frozenset(earlier.failing)
    questions += text_questions(compared, told)
    questions += run_file_questions(runs.commands, change.changes, change.read)
    questions += dependency_questions(change.changes)
    return Examination(tuple(findings), numbered(questions))


def _has_tests(changes: Sequence[FileChange]) -> bool:
    """Return True if the change touches a test: one of its own, or beside the code."""
    return any(looks_like_test(c.path) or read_tests(c.path, c.after).cases for c in changes)
