"""Fuzzing that looks for its inputs by the code they reach, for a few seconds a reader; `guided` goes on for longer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.ran import HERE

SECONDS = 5
STARTED_AND_ENDED_S = 100
TARGETS = ("specification", "tool-input", "recording", "hook-event", "configuration")


@pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris has no build for every machine: pip install -e '.[fuzz]'"
)
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_that_was_found_breaks_a_reader(target: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", target, str(SECONDS)],
        cwd=HERE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=STARTED_AND_ENDED_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    runs = re.search(r"Done (\d+) runs", done.stderr)
    assert runs is not None
    assert int(runs[1]) > 100
