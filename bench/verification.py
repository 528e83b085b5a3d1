"""How long a task's verification takes over its plain test run, for projects with a quick suite and a slow one, and how
many mutants a suite with sleeps leaves time for.

The plain run is the project's own command in its folder. The verification is all that happens before the commit: the clean
room, the test run, the control, earlier tests and mutants, without the time of a judge.
"""

from __future__ import annotations

import re
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
WAITS = "import time\n\nimport pytest\n\nimport pricing\n\n\n@pytest.mark.parametrize('n', range(5))\ndef test_waits(n):\n    time.sleep(1)\n    assert {call}\n"
PYTHON = next(edit for edit in HONEST if edit.name == "changed-result")
MEASURED = {
    "python, a quick suite": PYTHON,
    "python, a suite of 3 s": replace(PYTHON, before={"tests/test_slow.py": SLOW.format(seconds=3)}),
    "python, a suite of 10 s": replace(PYTHON, before={"tests/test_slow.py": SLOW.format(seconds=10)}),
    "node, a quick suite": next(e for e in HONEST if (e.language, e.name) == ("node", "changed-expectation")),
    "c, a quick suite": next(edit for edit in HONEST if edit.name == "refactor" and edit.language == "c"),
}


def share_tried() -> Row:
    """The share of mutants that a suite of 10 s leaves time for: ten tests that sleep, five of which reach the change."""
    calls = {"gross": "pricing.gross('basic', n) == 120 * n", "kinds": "pricing.kinds()"}
    waits = {f"tests/test_{name}_waits.py": WAITS.format(call=call) for name, call in calls.items()}
    with TemporaryDirectory(prefix="mutants-") as folder:
        ran, _, _ = run(replace(PYTHON, before=waits), Path(folder))
    (told,) = [e["output"] for e in ran.named("verification_ran") if e["tool"] == "mutation_check"]
    tried, late = re.search(r"of (\d+) mutants", told), re.search(r"(\d+)(?: more)? had no time", told)
    done, left = (int(found[1]) if found else 0 for found in (tried, late))
    return Row(
        "mutants tried, python, a suite of 10 s that sleeps", 100 * done / (done + left), 80, "%", True, told
    )


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
    yield share_tried()
