"""What commands print on terminals of several widths: no word is broken at the margin, and commands stay whole."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import build_calls, plan, specification
from tests.terminal import on_a_terminal

PICTURE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WHOLE = re.compile(r"\s*(?:next: |verify-\w+: )?(?:lopen|git|\S+$|\S*python)")  # a command, or a single word
LONG = "The sum of two whole numbers is right, also where one is negative, and a text in place of a number is refused"
SHOWING = (
    "status calc --all",
    "show calc-t1",
    "log",
    "check",
    "modules",
    "circuit",
    "config show budget --explain",
)


def too_long(shown: str, columns: int) -> list[str]:
    text = PICTURE.sub("", shown.replace("\x1b[J", "\n")).replace("\r", "").partition("\ndiff --git")[0]
    return [line for line in text.split("\n") if len(line) > columns and not WHOLE.match(line)]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_word_is_broken_at_the_margin(make_project: MakeProject, columns: int) -> None:
    talks = tools(*build_calls("calc-t1"), say=f"{LONG}, as the specification says. " * 3)
    project = make_project([plan(tasks=(LONG[:70],)), talks])
    project.specify(text=specification(criteria=(LONG, f"TODO {LONG}")))
    refused = on_a_terminal(project, "approve", "calc", answers=(), columns=columns)
    project.specify(text=specification(criteria=(LONG,)))
    shown = [
        refused,
        on_a_terminal(project, "approve", "calc", answers=[(b"edit it]", b"y\n")], columns=columns),
    ]
    shown.append(on_a_terminal(project, "run", "calc", answers=(), columns=columns))
    assert [code for code, _ in shown] == [1, 0, 0], shown[-1][1].decode()
    for line in SHOWING:
        ran = on_a_terminal(project, *line.split(), answers=(), columns=columns)
        shown.append(ran)
        words = PICTURE.sub("", ran[1].decode()).replace("         | ", " ").split()
        assert words == project.lopen(*line.split()).out.replace("         | ", " ").split(), line
    for _, text in shown:
        assert too_long(text.decode(), columns) == []
