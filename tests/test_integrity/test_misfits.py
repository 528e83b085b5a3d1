"""Tests whose earlier version failed because a function has other parameters now."""

from __future__ import annotations

import pytest

from lopen.test_integrity import FileChange
from lopen.test_integrity.earlier_tests import EarlierTests, misfits

A = "tests/test_app.py::test_a"
CODE = "def _norm(x):\n    return x\n\ndef slug(x):\n    return _norm(x)\n"
TEST = "from app import _norm\n\ndef test_a():\n    assert _norm('a') == 'a'\n"
OTHER = CODE.replace("_norm(x):", "_norm(x, sep):")


@pytest.mark.parametrize(
    ("code", "summary", "severity"),
    [
        (OTHER, f"FAILED {A} - TypeError: _norm() missing 1 required argument: 'sep'", "warning"),
        (OTHER, f"FAILED {A} - AssertionError: assert 'b' == 'a'", "error"),
        (OTHER, f"FAILED {A}[1] - TypeError: no\nFAILED {A}[2] - assert 1 == 2", "error"),
        (OTHER, f"FAILED {A}", "error"),
        (CODE + "\n", f"FAILED {A} - TypeError: 'str' object is not callable", "error"),
    ],
)
def test_a_call_that_fits_no_more_is_a_warning(code: str, summary: str, severity: str) -> None:
    changes = [
        FileChange("app.py", CODE, code),
        FileChange("tests/test_app.py", TEST, TEST.replace("_norm", "slug")),
    ]
    found = EarlierTests(1, 1, (A,), misfits=tuple(misfits(f"1 failed\n{summary}\n")))

    assert [f.severity for f in found.findings(changes, lambda _: "")] == [severity]
