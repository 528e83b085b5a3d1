"""Checks of files that the model wrote, where a check itself fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.core.errors import LopenError
from lopen.loop.change_checks import ChangeChecks
from lopen.verification.findings import Finding
from lopen.verification.test_files import FileChange

FOUND = Finding("warning", "a test was skipped")


def failing(error: Exception) -> list[Finding]:
    raise error


CHANGES = [FileChange(path, None, path) for path in ("a.py", "b.py")]


@pytest.mark.parametrize(("culprit", "told"), [("b.py", ("error", "b.py")), ("none", ("warning", None))])
def test_a_failing_check_blocks_only_for_a_file_that_causes_it(
    tmp_path: Path, culprit: str, told: tuple[str, str | None]
) -> None:
    checks = ChangeChecks(tmp_path, CHANGES)

    found = checks.findings(
        {"one": lambda: failing(RecursionError("deep")), "two": lambda: [FOUND]},
        {"one": lambda change: failing(RecursionError()) if change.path == culprit else []},
    )

    assert [(f.severity, f.path) for f in found] == [told, (FOUND.severity, None)]
    assert "for one (RecursionError)" in found[0].message
    (log,) = (tmp_path / ".lopen" / "logs").iterdir()
    assert "RecursionError: deep" in log.read_text()


@pytest.mark.parametrize("error", [LopenError("the disk is full"), OSError("the disk is full")])
def test_what_lopen_itself_lacks_ends_the_run(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)):
        ChangeChecks(tmp_path, []).findings({"one": lambda: failing(error)})
