"""The live view in a real terminal: builds at several widths, resized on the way, and its keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from tests import fake_api
from tests.e2e.conftest import MakeProject
from tests.endpoint import message_events, tools
from tests.fake_api import Answer, Message, Raw
from tests.project import TIMEOUT_S, Project, build, code, plan, verified
from tests.ran import SHELL_PYTHON
from tests.screen import Screen, lopen

RULE = "─" * 40  # the least of it: it is as wide as the terminal
GAP_S = 0.01  # between two pieces of a slow answer


class _Slowly(Sequence[bytes]):
    """The pieces of an answer with a gap before each."""

    def __init__(self, answer: Message) -> None:
        self._pieces = [fake_api.encode(event) for event in message_events(answer)]

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, at: Any) -> Any:
        return self._pieces[at]

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            time.sleep(GAP_S)
            yield piece


def _slowly(answer: Message) -> Any:
    return lambda _: Raw(_Slowly(answer))


def _tasks(count: int) -> list[Any]:
    turns = (tools(*code(f"calc{n}"), *verified(f"calc-t{n}")) for n in range(1, count + 1))
    return [plan(tasks=[f"Write part {n}" for n in range(1, count + 1)]), *map(_slowly, turns)]


def _approved(make_project: MakeProject, script: Any) -> Project:
    project = make_project(script, LOPEN_BUDGET__MAX_COST_USD="5")
    project.approve_module()
    return project


def _screen(project: Project, *arguments: str, width: int = 100) -> Screen:
    return Screen(project.root, lopen(*arguments), project.environment(), width=width)


def _unbroken(text: str) -> str:
    """Return the text without blanks and line breaks: a terminal breaks long lines of the log."""
    return "".join(text.split())


def test_a_resized_build_leaves_the_log_and_no_picture(make_project: MakeProject) -> None:
    project = _approved(make_project, _tasks(2))
    with _screen(project, "run", "calc", width=80) as screen:
        for done, other in enumerate((200, 60)):
            rows = screen.until(lambda rows, done=done: any(f"{done} of 2 tasks" in row for row in rows))  # type: ignore[misc]
            assert sum(row.startswith(RULE) for row in rows) == 1
            screen.resize(other, 26 + done)
        assert screen.until_end() == 0
        seen = screen.everything()
    told = project.lopen("log").out.splitlines()
    log = [line[9:] for line in told if not line.startswith(" ") and " tokens in" not in line]
    shown = _unbroken("".join(seen))
    assert [x for x in log if _unbroken(x) not in shown and not x.startswith("iteration")] == []
    assert not any(row.startswith(("───", "calc, ", "d diff")) or "tasks done" in row for row in seen)


def test_the_view_shows_what_is_written_and_obeys_its_keys(make_project: MakeProject) -> None:
    held, asked = threading.Event(), threading.Event()
    written = tools(*code("calc1"), *verified("calc-t1"))

    def first(_: dict[str, Any]) -> Answer:
        pieces = [fake_api.encode(event) for event in message_events(written)]

        def waiting() -> Iterator[bytes]:
            yield from pieces[:6]
            asked.set()
            held.wait(TIMEOUT_S)
            yield from pieces[6:]

        return Raw(waiting())  # type: ignore[arg-type]  # read once, piece by piece

    project = _approved(make_project, [plan(tasks=["Write it", "Test it"]), first, build("calc-t2", "calc2")])
    with _screen(project, "run", "calc") as screen:
        rows = screen.until(lambda rows: any("writing write_file calc1.py" in row for row in rows))
        picture = rows[next(at for at, row in enumerate(rows) if row.startswith(RULE)) :]
        assert picture[1] == "calc: Write it"
        assert "writing write_file calc1.py" in picture[2]
        assert any(" min, 0 of 2 tasks done" in row for row in picture)
        assert any(row.startswith("$0.0") and " of $5.00, " in row for row in picture)
        assert picture[-1] == "d diff  p pause  l log details"
        notes = project.clone() / "notes.txt"
        notes.write_text("by hand\n", "utf-8")
        screen.type("d")
        screen.until(lambda rows: "+by hand" in rows)
        screen.type("l")
        screen.until(lambda rows: any(row.startswith("log with details") for row in rows))
        notes.unlink()
        screen.type("p")
        screen.until(lambda rows: "pausing after the current turn" in rows)
        held.set()
        assert screen.until_end() == 3
        assert f"next: lopen resume {project.status()['session']}" in screen.shown()


def test_ctrl_z_leaves_the_terminal_to_the_shell_and_fg_goes_on(make_project: MakeProject) -> None:
    held, asked = threading.Event(), threading.Event()

    def waiting(_: dict[str, Any]) -> Answer:
        asked.set()
        held.wait(TIMEOUT_S)
        return build("calc-t1")

    project = _approved(make_project, [plan(), waiting])
    shell = Screen(project.root, ["bash", "--norc", "-i"], project.environment(), width=100)
    with shell as screen:
        screen.type(f"{SHELL_PYTHON} -m lopen run calc; echo EXIT $?\n")
        assert asked.wait(TIMEOUT_S)
        screen.until(lambda rows: any("l log details" in row for row in rows))
        screen.type("C-z")
        screen.until(lambda rows: any("Stopped" in row for row in rows))
        screen.type("stty -a | grep -o ' echo '; fg\n")
        rows = screen.until(lambda rows: any("l log details" in row for row in rows))
        assert " echo" in rows
        assert sum(row.startswith(RULE) for row in rows) == 1
        held.set()
        screen.until(  # the picture is there until the view is closed
            lambda rows: (
                any("calc is complete" in row for row in rows) and not any(RULE in row for row in rows)
            )
        )
        assert not any(row.startswith("───") for row in screen.everything())
