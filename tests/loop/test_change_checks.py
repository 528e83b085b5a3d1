"""Checks of files that the model wrote, where a check itself fails."""

from __future__ import annotations

import pytest

from lopen.base.errors import LopenError
from lopen.loop.change_checks import findings_of
from lopen.oracle.verdict import Finding

FOUND = Finding("warning", "a test was skipped")


def failing(error: Exception) -> list[Finding]:
    raise error


def test_a_failing_check_is_an_error_beside_what_others_find() -> None:
    found = findings_of({"one": lambda: failing(RecursionError()), "two": lambda: [FOUND]})

    assert [f.severity for f in found] == ["error", "warning"]
    assert "RecursionError" in found[0].message


@pytest.mark.parametrize("error", [LopenError("the disk is full"), OSError("the disk is full")])
def test_what_lopen_itself_lacks_ends_the_run(error: Exception) -> None:
    with pytest.raises(type(error)):
        findings_of({"one": lambda: failing(error)})
