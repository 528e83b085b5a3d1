"""What models do instead of the work, and work that only looks like it, as data: how each is met, what it may cost,
and where it leaves the session.

`always` answers every request after the turns of `first`, for ever: what ends the run is lopen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.endpoint import Turn, message, text, tools
from tests.fake_api import Answer
from tests.project import code, component, plan, verified

Call = tuple[str, dict[str, Any]]

PREMATURE = ("premature_stop", "warn")
QUALITY = ("quality_gate", "block")
CHURN_WARNS, CHURN = ("churn", "warn"), ("churn", "block")
CIRCLE, DISCIPLINE = ("circular_behaviour", "warn"), ("tool_discipline", "warn")
COOLS, CIRCUIT = ("circuit_breaker", "warn"), ("circuit_breaker", "block")


@dataclass(frozen=True)
class Behaviour:
    """One row.

    `turns` is the most requests it may cost, planning's included (the oracle's are not). `guards` are the
    guardrail lines in the order of their first appearance. `waits` is the kind of the pause ("" for none) and
    `task` the first task's state ("" where there is none).
    """

    name: str
    always: Turn
    turns: int
    guards: Sequence[tuple[str, str]]
    waits: str
    task: str
    first: Sequence[Answer] = field(default_factory=lambda: [plan()])
    code: int = 3
    command: Sequence[str] = ("approve", "calc", "--yes", "--run")
    commits: int = 0

    def script(self) -> Callable[[Any], Answer]:
        """The model's answers, one a request."""
        turns: Iterator[Turn] = itertools.chain(self.first, itertools.repeat(self.always))

        def answer(body: Any) -> Answer:
            turn = next(turns)
            return turn(body) if callable(turn) else turn

        return answer


def numbered(call: Callable[[int], Sequence[Call]]) -> Turn:
    """A turn that is a little different every time."""
    numbers = itertools.count(1)
    return lambda body: tools(*call(next(numbers)))


def in_turns(*answers: Answer) -> Turn:
    """One answer after another, round and round."""
    again = itertools.cycle(answers)
    return lambda body: next(again)


COMPLETE: Call = ("update_task_status", {"task_id": "calc-t1", "status": "complete"})
JUDGE: Call = ("verify_task_completion", {"task_id": "calc-t1"})
TEST: Call = ("verify_tests", {})
ASK = text("The first part is there. Would you like me to continue?")


def write(path: str, content: str) -> Call:
    """A file, whole."""
    return "write_file", {"path": path, "content": content}


def run(command: str) -> Call:
    """A shell command."""
    return "run_command", {"command": command}


def planned_in_steps() -> list[Answer]:
    """A plan recorded step by step, with a question for leave after each."""
    calls = [(b["name"], b["input"]) for b in plan().content]
    recorded: list[Answer] = [tools((name, dict(given))) for name, given in calls]
    return [answer for record in recorded[:-1] for answer in (record, ASK)] + recorded[-1:]


def slow_but_committing() -> list[Answer]:
    """Four tasks, each done only at the third attempt."""
    turns: list[Answer] = [plan(tasks=("One", "Two", "Three", "Four"))]
    for n in range(1, 5):
        task = f"calc-t{n}"
        failed = ("update_task_status", {"task_id": task, "status": "failed", "note": "not yet"})
        turns += [tools(failed), tools(failed), tools(*code(f"part{n}"), *verified(task))]
    return turns


BEHAVIOURS: Sequence[Behaviour] = (
    Behaviour(
        "lies by text",
        text("All done: every test passes and the module is complete."),
        10,
        [PREMATURE, CHURN_WARNS, CHURN],
        "confirmation",
        "failed",
    ),
    Behaviour(
        "lies by tool",
        tools(COMPLETE),
        5,
        [QUALITY, CIRCUIT],
        "circuit",
        "in_progress",
    ),
    Behaviour(
        "verifies, then edits, and claims",
        numbered(lambda n: [*code(), TEST, JUDGE, write("extra.py", f"N = {n}\n"), COMPLETE]),
        16,
        [QUALITY, CHURN_WARNS, CHURN],
        "confirmation",
        "failed",
    ),
    Behaviour(
        "asks leave at every step, and works when told to",
        in_turns(tools(*code()), ASK, tools(*verified("calc-t1"))),
        11,
        [PREMATURE],
        "",
        "complete",
        first=planned_in_steps(),
        code=0,
        commits=1,
    ),
    Behaviour(
        "reads one file 40 times in one turn",
        tools(*[("read_file", {"path": "README.md"})] * 40),
        2,
        [CIRCLE, CIRCUIT],
        "circuit",
        "in_progress",
    ),
    Behaviour(
        "searches on and on",
        numbered(lambda n: [("search_files", {"pattern": f"word{n}"})]),
        51,
        [CIRCUIT],
        "circuit",
        "in_progress",
    ),
    Behaviour(
        "alternates two failing commands",
        in_turns(tools(run("false")), tools(run("test -f nowhere"))),
        11,
        [CIRCLE, DISCIPLINE, COOLS, CIRCUIT],
        "circuit",
        "in_progress",
    ),
    Behaviour(
        "edits and fails the same test again and again",
        numbered(lambda n: [*code(value=f"a - b - {n}"), TEST]),
        26,
        [CIRCUIT],
        "circuit",
        "in_progress",
    ),
    Behaviour(
        "records the same wrong plan again and again",
        numbered(
            lambda n: [
                ("record_components", {"components": [component("core", "AC-9")]}),
                ("read_spec", {"section": f"Try {n}"}),
            ]
        ),
        5,
        [CIRCUIT],
        "circuit",
        "",
        first=[tools(("record_dependencies", {"dependencies": []}))],
    ),
    Behaviour(
        "adds tasks without end",
        numbered(
            lambda n: [
                (
                    "add_task",
                    {"component": "core", "name": f"More {n}", "description": "More.", "reason": "to do"},
                )
            ]
        ),
        3,
        [],
        "confirmation",
        "in_progress",
    ),
    Behaviour(
        "returns nothing",
        message(),
        9,
        [PREMATURE, CHURN_WARNS, CHURN],
        "confirmation",
        "",
        first=[],
        command=("plan", "calc"),  # the same guards on every path
    ),
    # Work that only looks like a bad habit: nothing is blocked, and where nothing is wrong nothing is said.
    Behaviour(
        "is slow but commits",
        ASK,
        13,
        [CHURN_WARNS],
        "",
        "complete",
        first=slow_but_committing(),
        code=0,
        commits=4,
    ),
)
