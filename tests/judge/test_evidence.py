"""The hash that binds a verdict to its evidence."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from lopen.judge.evidence import Assignment, BuilderWork, ChangedFile, Evidence, JudgedChange, evidence_hash
from lopen.judge.judged_work import listed_tests
from lopen.store.audit import VerifyResult
from lopen.verification.findings import Finding
from lopen.verification.test_run import TestRun
from tests.judge.samples import EVIDENCE, TESTS_PASSED, changed

results = st.builds(
    VerifyResult, st.text(), st.text(), st.booleans(), st.none() | st.integers(0, 255), st.text(), st.text()
)
pairs = st.lists(st.tuples(st.text(), st.text()), max_size=4).map(tuple)
files = st.lists(st.builds(ChangedFile, st.text(), st.none() | st.integers(0)), max_size=3).map(tuple)
evidences = st.builds(
    Evidence,
    work=st.builds(
        Assignment,
        scope=st.sampled_from(["task", "component", "module"]),
        subject=st.text(),
        module=st.text(),
        description=st.text(),
        sections=pairs,
        criteria=pairs,
    ),
    change=st.builds(
        JudgedChange, base_tree=st.just("0"), tree=st.text(min_size=2), diff=st.text(), files=files
    ),
    results=st.lists(results, max_size=4).map(tuple),
    findings=st.just(()),
)


@generated(evidences, st.randoms(use_true_random=False))
def test_order_and_what_was_printed_do_not_count(evidence: Evidence, chance: random.Random) -> None:
    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(chance.sample(items, len(items)))

    other = changed(
        evidence,
        scope="module",
        subject="another",
        sections=shuffled(evidence.work.sections),
        criteria=shuffled(evidence.work.criteria),
        results=tuple(replace(r, output="in 0.73s") for r in shuffled(evidence.results)),
    )

    assert evidence_hash(other) == evidence_hash(evidence)


@pytest.mark.parametrize(
    "given",
    [
        {"tree": "tree-2"},
        {"base_tree": "tree-9"},
        {"criteria": (("AC-1", "add(2, 2) gives 5"),)},
        {"sections": ()},
        {"results": (replace(TESTS_PASSED, command="true"),)},
        {"results": (replace(TESTS_PASSED, exit_code=3),)},
        {"results": (replace(TESTS_PASSED, passed=False),)},
        {"results": ()},
        {"answers": (("Half up?", "yes"),)},
    ],
    ids=str,
)
def test_what_the_verdict_rests_on_counts(given: dict[str, Any]) -> None:
    assert evidence_hash(changed(EVIDENCE, **given)) != evidence_hash(EVIDENCE)


@pytest.mark.parametrize(
    "given",
    [
        {"scope": "component"},
        {"subject": "C-1"},
        {"description": "The whole component"},
        {"diff": "cut differently"},
        {"findings": (Finding("info", "x"),)},
        {"builder": BuilderWork("trust me")},
    ],
    ids=str,
)
def test_what_follows_from_it_or_names_it_does_not_count(given: dict[str, Any]) -> None:
    assert evidence_hash(changed(EVIDENCE, **given)) == evidence_hash(EVIDENCE)


def test_two_tasks_that_changed_nothing_are_two_pieces_of_work() -> None:
    idle = changed(EVIDENCE, base_tree="tree-1", diff="")

    assert evidence_hash(idle) != evidence_hash(changed(idle, description="Something else"))


def test_a_test_is_marked_as_skipped_where_the_run_says_so_and_by_its_text_where_no_run_tells() -> None:
    text = (
        "import sys, pytest\n\n\n@pytest.mark.skipif(sys.flags.optimize == 2, reason='no')\n"
        "def test_docstrings():\n    if sys.flags.optimize:\n        return\n    assert f.__doc__\n\n\n"
        "def test_later():\n    assert f() == 1\n\n\ndef test_gone():\n    assert f() == 2\n"
    )
    ran = TestRun(1, {"python": ("test_a.py::test_docstrings",)}, skipped=("test_a.py::test_later",))

    named = [listed_tests(run, {"test_a.py": text})[0][1] for run in (ran, TestRun())]

    missing = "test_gone (the runner did not report it)"
    assert named == [
        ("test_docstrings", "test_later (skipped)", missing),
        ("test_docstrings (skipped)", "test_later", "test_gone"),
    ]
