"""How long a task's verification takes over its plain test run, for projects with a quick suite and a slow one.

The plain run is the project's own command in its folder. The verification is all that happens before the commit: the clean
room, the test run, the control, earlier tests and mutants, without the time of a judge.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.rows import Row
from tests.edits.edits import HONEST, Edit
from tests.edits.measure import run
from tests.edits.projects import COMMANDS

EACH = 12.0  # a quick suite has more of the time that every run takes
SLOW = "import time\n\n\ndef test_slow():\n    time.sleep({seconds})\n"
PYTHON = next(edit for edit in HONEST if edit.name == "changed-result")
MEASURED = {
    "python, a quick suite": PYTHON,
    "python, a suite of 3 s": replace(PYTHON, before={"tests/test_slow.py": SLOW.format(seconds=3)}),
    "python, a suite of 10 s": replace(PYTHON, before={"tests/test_slow.py": SLOW.format(seconds=10)}),
    "node, a quick suite": next(e for e in HONEST if (e.language, e.name) == ("node", "changed-expectation")),
    "c, a quick suite": next(edit for edit in HONEST if edit.name == "refactor" and edit.language == "c"),
}


def times(edit: Edit) -> tuple[float, float]:
    """Return the seconds of the plain test run, and those of the verification with the test run in it."""
    with TemporaryDirectory(prefix="times-") as folder:
        ran, project, _ = run(edit, Path(folder))
        ended = [e for e in ran.events if e["event"] == "tool_ended"]
        verified = sum(e["seconds"] for e in ended if e["tool"] in ("verify_tests", "verify_task_completion"))
        project.git("clone", "-q", "-b", "lopen/calc", ".", str(Path(folder, "plain")))
        started = time.perf_counter()
        subprocess.run(
            ["/bin/sh", "-c", COMMANDS[edit.language]],
            cwd=Path(folder, "plain"),
            capture_output=True,
            check=True,
        )
        return time.perf_counter() - started, verified


def rows() -> Iterator[Row]:
    """A row for each project, and one of the median of their ratios."""
    ratios = []
    for name, edit in MEASURED.items():
        plain, verified = times(edit)
        ratios.append(verified / plain)
        yield Row(f"verification, {name}", ratios[-1], EACH, detail=f"{verified:.2f} s over {plain:.2f} s")
    yield Row("verification over the plain test run, median", statistics.median(ratios), 4.0)
