"""The live view: its state, its layout, and the terminal restored at the end."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lopen.cli.rendering.live import Board, Snapshot, frame, remaining
from lopen.core import events as e
from lopen.workflow.task_tree import Component, State, Task, TaskTree

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TREE = TaskTree(
    (
        Component("C1", "Lexer", verified=True, tasks=(Task("T1", "Numbers", state=State.COMPLETE),)),
        Component(
            "C2",
            "Parser",
            tasks=(
                Task("T2", "Terms", state=State.COMPLETE),
                Task("T3", "Sums", state=State.IN_PROGRESS),
                Task("T4", "Errors"),
                Task("T5", "Dates", given_up="not now"),
            ),
        ),
        Component("C3", "Printer", tasks=(Task("T6", "Colours", state=State.FAILED),)),
    )
)


def _board(*events: e.Event) -> Board:
    board = Board()
    for at, event in enumerate(events):
        board = board.after(e.Recorded(NOW + timedelta(seconds=at), "s", event))
    return board


def _turn(tokens: int, cost: float | None) -> e.TurnEnded:
    return e.TurnEnded(1, "m", "tool_use", tokens, 10, 100, 0, cost, 1.0)


def _lines(board: Board, snapshot: Snapshot, *, height: int = 24) -> list[str]:
    return [t.plain for t in frame(board, snapshot, height=height, now=NOW + timedelta(seconds=90))]


def test_what_the_model_writes_is_shown_until_the_turn_ends() -> None:
    board = _board(e.TurnStarted(1, "m", 16), e.ModelText("first\nsec"), e.ModelText("ond"))
    assert _lines(board, Snapshot())[2:4] == ["90 s: writing text, 12 characters", "second"]
    for piece in ('{"path": "src/', 'a.py", "content": "x', "y" * 1_000, '"}'):
        board = board.after(e.Recorded(NOW, "s", e.ModelInput("write_file", piece)))
    assert _lines(board, Snapshot())[2] == "90 s: writing write_file src/a.py, 1,036 characters"
    board = board.after(e.Recorded(NOW, "s", e.ModelInput("write_file", '{"path": "b')))
    assert _lines(board, Snapshot())[2] == "90 s: writing write_file, 11 characters"
    assert not any("writing" in text for text in _lines(_board(e.ModelText("x"), _turn(1, 0.0)), Snapshot()))


def test_the_whole_picture_of_a_resumed_session() -> None:
    board = _board(
        e.SessionStarted("calc", "iterate_through_tasks", resumed=True),
        e.IterationStarted(4, "iterate_through_tasks", "claude-sonnet-5-5"),
        e.VerificationRan("verify_tests", "pytest", True, 0, 1.0, 1, "== 12 passed, 1 skipped in 0.1s =="),
        e.ToolStarted("c", "run_command", "pytest -q"),
    )
    picture = frame(
        board,
        Snapshot(TREE, 400_000, 500_000, 1.5, 5.0, unpriced=True),
        height=30,
        now=NOW + timedelta(seconds=90),
        keys="d diff",
    )
    assert [line.plain for line in picture[1:]] == [
        "calc: Sums",
        "87 s: running a command pytest -q",
        "✓ Lexer 1/1",
        "▶ Parser 1/4",
        "  ✓ T2 Terms",
        "  ▶ T3 Sums",
        "  ○ T4 Errors",
        "  ○ T5 Dates (skipped)",
        "✗ Printer 0/1",
        "  ✗ T6 Colours",
        "1:30 min, 2 of 6 tasks done, last test run: 12 tests",
        "$1.50+ of $5.00, 400,000 of 500,000 tokens, claude-sonnet-5-5",
        "d diff",
    ]
    assert [line.style for line in picture[-2:]] == ["yellow", "dim"]


def test_the_remaining_time_is_a_range_once_two_tasks_are_done() -> None:
    board = Board()
    for task, minutes in (("T1", 2), ("T2", 6), ("T3", 4)):
        for state in ("in_progress", "complete"):
            board = board.after(e.Recorded(NOW, "s", e.TaskChanged(task, "", "C", state)))
            board = replace(board, task_start=NOW - timedelta(minutes=minutes))  # when it began
    took = (120.0, 360.0, 240.0)
    assert board.task_seconds == took
    assert remaining(took, TREE) == "about 9 to 15 min left"  # three tasks are open
    assert remaining(took[:1], TREE) == ""


def test_a_low_terminal_shows_the_work_in_progress() -> None:
    lines = _lines(_board(e.SessionStarted("calc", "repeat")), Snapshot(TREE), height=8)
    assert len(lines) <= 8
    assert "  ▶ T3 Sums" in lines
    assert any("more above" in text for text in lines)
    assert any("more below" in text for text in lines)


@given(
    st.integers(4, 60),
    st.text(max_size=300),
    st.lists(st.tuples(st.text(max_size=60), st.sampled_from(State)), max_size=30),
)
def test_no_picture_is_higher_than_the_terminal_and_each_of_its_texts_is_one_line(
    height: int, text: str, names: Sequence[tuple[str, State]]
) -> None:
    tasks = tuple(Task(f"T{n}", name, state=state) for n, (name, state) in enumerate(names))
    tree = TaskTree((Component("C1", text, tasks=tasks),))
    board = _board(e.SessionStarted(text, "repeat"), e.ToolStarted("c", text, text), e.ModelText(text))
    lines = _lines(board, Snapshot(tree, 10, 100), height=height)
    assert len(lines) <= height
    assert all("\x1b" not in line and len(line.splitlines()) <= 1 for line in lines)


SHOW = """
import sys
import time
from datetime import UTC, datetime
from lopen.core import events as e
from lopen.cli.rendering.views import mode_for, subscriber
from lopen.cli.rendering.live import Snapshot
from tests.cli.test_live import TREE

mode = mode_for(sys.stdout, json=False, quiet=False)
with subscriber(mode, sys.stdout, snapshot=lambda: Snapshot(TREE), redact=lambda s: s.replace("sk-1", "***")) as view:
    def tell(event):
        view(e.Recorded(datetime.now(UTC), "s", event))
    tell(e.SessionStarted("calc", "repeat"))
    tell(e.ToolStarted("c", "run_command", "echo sk-1 \\x1b]0;evil\\x07"))
    tell(e.StepEntered("repeat", 7, "building", "assessment"))
    time.sleep(0.3)
    tell(e.Notice("info", "[bold]as written[/bold] sk-1"))
    with view.suspended():
        print("a question?", flush=True)
    tell(e.Committed("abc", "feat: x", "lopen/calc"))
    if "fail" in sys.argv:
        raise SystemExit(1)
print("after")
"""


def _on_a_terminal(surroundings: dict[str, str], *arguments: str, width: int = 80) -> str:
    """Everything that a terminal of that width gets to see."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", SHOW, *arguments], stdout=follower, stderr=follower, env=surroundings
    )
    os.close(follower)
    seen = b""
    try:
        while chunk := os.read(leader, 65_536):
            seen += chunk
    except OSError:  # how Linux says that the other side has closed
        pass
    finally:
        os.close(leader)
        process.wait(30)
    return seen.decode()


def test_the_terminal_is_restored_and_foreign_text_has_no_effect_on_it(surroundings: dict[str, str]) -> None:
    seen = _on_a_terminal(surroundings)
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")
    for shown in ("after", "✓ Lexer", "a question?", "[bold]as written[/bold] ***", "\x1b[32m"):
        assert shown in seen
    for hidden in ("\x1b]", "\x07", "sk-1"):
        assert hidden not in seen


def test_a_failure_restores_the_terminal_and_no_color_is_respected(surroundings: dict[str, str]) -> None:
    seen = _on_a_terminal(surroundings | {"NO_COLOR": "1"}, "fail")
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")
    assert "after" not in seen
    assert not any(f"\x1b[{code}m" in seen for code in range(30, 38))
