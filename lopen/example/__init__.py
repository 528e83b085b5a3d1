"""The bundled example: a project with one specification, and the recorded answers of a model that builds it.

`scripts/record_example.py` writes the recording; `lopen demo` plays it.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

MODULE: Final = "tariff"
RECORDING: Final = Path(__file__).parent / "recording.jsonl.gz"
APPROVAL_NOTE: Final = (
    "the specification is bundled with lopen; approved by `lopen demo` on the person's behalf"
)

INTERPRETER: Final = Path(sys.executable)
"""Runs lopen, and the example's tests. Not resolved: a virtual environment is known by the place of its link."""

_PROJECT: Final = Path(__file__).parent / "project"
_PYTHON: Final = "python3"


def lay_out(root: Path) -> None:
    """Copy the project into the folder `root`. The folder of `INTERPRETER` has to be on PATH."""
    for file in sorted(_PROJECT.rglob("*.md")):  # the content alone: installed files may be read-only
        text = file.read_text("utf-8") if file.name != "SPECIFICATION.md" else specification_text()
        copy = root / file.relative_to(_PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, "utf-8")
    (root / ".gitignore").write_text("__pycache__/\n", "utf-8")


def specification_text() -> str:
    """Return the example's specification.

    Its verify commands say `python3`. If that is not the interpreter that runs lopen, they get the path of
    lopen's interpreter instead.
    """
    text = (_PROJECT / "specs" / MODULE / "SPECIFICATION.md").read_text("utf-8")
    if _is_this_interpreter(INTERPRETER.with_name(_PYTHON)):
        return text
    return text.replace(f"`{_PYTHON} ", f"`{shlex.quote(str(INTERPRETER))} ")


def _is_this_interpreter(named: Path) -> bool:
    return named.exists() and named.samefile(INTERPRETER)
