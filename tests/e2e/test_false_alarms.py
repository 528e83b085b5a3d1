"""The mirror table: work that only looks like a bad habit. Nothing is blocked, and where nothing is wrong nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.e2e.behaviours import run, write
from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tools
from tests.fake_api import Answer
from tests.project import UNITTEST, code, plan, verified

PHRASE = "Would you like me to continue?"
QUOTED = f"""The wizard's closing line is specified as

> {PHRASE}

and the code prints it:

```python
QUESTION = "{PHRASE}"
```

It must read "{PHRASE}" to the letter, so that is what I write now."""


def many_edits() -> list[Answer]:
    """120 edits of four files, a passing test run after every fourth."""
    turns: list[Answer] = [tools(*code(), ("verify_tests", {}))]
    for n in range(30):
        edits = [write(f"part{i}.py", f"N = {n}\n") for i in range(4)]
        turns.append(tools(*edits, ("verify_tests", {})))
    return [plan(), *turns, tools(*verified("calc-t1"))]


def changing_file() -> list[Answer]:
    """One file read ten times, another content each time."""
    turns: list[Answer] = [
        tools(write("table.txt", f"{n}\n"), ("read_file", {"path": "table.txt"})) for n in range(10)
    ]
    return [plan(), *turns, tools(*code(), *verified("calc-t1"))]


def edits_and_tests() -> list[Answer]:
    """A test command that fails ten times, each time after another attempt, made by a command too."""
    attempts = [
        tools(run(f"echo 'def add(a, b): return {n} * 10' > calc.py"), run(UNITTEST)) for n in range(10)
    ]
    return [plan(), tools(code()[1]), *attempts, tools(*code(), *verified("calc-t1"))]


def quoted_phrase() -> list[Answer]:
    """The words of a model that stops, in a string, a docstring, a quotation and a report that acts."""
    wizard = f'"""Prints "{PHRASE}" at its end."""\n\nQUESTION = "{PHRASE}"\n'
    return [
        plan(),
        tools(write("wizard.py", wizard), say=QUOTED),
        text(QUOTED),
        tools(*code(), *verified("calc-t1"), say=f'The docstring says "{PHRASE}".'),
    ]


def slow_but_committing() -> list[Answer]:
    """Four tasks, each done only at the third attempt."""
    turns: list[Answer] = [plan(tasks=("One", "Two", "Three", "Four"))]
    for n in range(1, 5):
        task = f"calc-t{n}"
        failed = ("update_task_status", {"task_id": task, "status": "failed", "note": "not yet"})
        turns += [tools(failed), tools(failed), tools(*code(f"part{n}"), *verified(task))]
    return turns


def many_files(n: int) -> list[tuple[str, dict[str, object]]]:
    """Eight files written in one turn."""
    return [write(f"part{n}_{i}.py", f"N = {i}\n") for i in range(8)]


def whole_tasks_in_one_turn() -> list[Answer]:
    """Two tasks, each written, tested and completed in one turn."""
    return [
        plan(tasks=("One", "Two")),
        *(tools(*many_files(n), *code(f"part{n}"), *verified(f"calc-t{n}")) for n in (1, 2)),
    ]


def same_reading_in_each_attempt() -> list[Answer]:
    """Three attempts at a task, each of which begins by reading what it was not shown."""
    reading = ("read_file", {"path": "README.md"})
    failed = ("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "not yet"})
    return [
        plan(),
        tools(reading, failed),
        tools(reading, failed),
        tools(reading, *code(), *verified("calc-t1")),
    ]


@dataclass(frozen=True)
class Innocent:
    """A script, the guardrail lines it may bring (guard and verdict), and the commits it ends with."""

    name: str
    script: Callable[[], Sequence[Answer]]
    told: frozenset[tuple[str, str]] = frozenset()
    commits: int = 1


INNOCENT = (
    Innocent("many-edits-with-passing-tests-between", many_edits),
    Innocent("a-file-that-changed-each-time", changing_file),
    # The same test failed in ten runs: that is told, and no more.
    Innocent("tests-run-again-after-each-edit", edits_and_tests, frozenset({("circular_behaviour", "warn")})),
    # The one turn that only quotes did end without a result: it is reminded, but not of asking leave.
    Innocent("the-phrase-in-quotes-and-code", quoted_phrase, frozenset({("premature_stop", "warn")})),
    Innocent("whole-tasks-in-one-turn", whole_tasks_in_one_turn, commits=2),
    Innocent("a-file-read-in-each-attempt", same_reading_in_each_attempt, frozenset({("churn", "warn")})),
    Innocent("a-slow-but-committing-session", slow_but_committing, frozenset({("churn", "warn")}), 4),
)


@pytest.mark.parametrize("innocent", INNOCENT, ids=[i.name for i in INNOCENT])
def test_nothing_that_is_no_habit_is_blocked(innocent: Innocent, make_project: MakeProject) -> None:
    project = make_project(list(innocent.script()))
    project.specify()

    ran = project.lopen("approve", "calc", "--yes", "--run", "--json")

    told = ran.named("guardrail")
    assert {(e["guard"], e["verdict"]) for e in told} <= innocent.told, told
    assert not ran.named("circuit")
    assert not [e["reason"] for e in told if e["reason"].startswith("permission")]
    assert ran.code == 0, ran.out[-2000:] + ran.err
    assert len([s for s in project.subjects() if s.startswith("feat(")]) == innocent.commits


def test_edits_without_a_test_run_are_told_at_the_end_of_the_turn_and_not_to_the_next_task(
    make_project: MakeProject,
) -> None:
    script = [
        plan(tasks=("One", "Two")),
        tools(*many_files(0), code()[1]),  # the first files: there is no test yet that could be run
        tools(*many_files(1)),
        tools(*code(), *verified("calc-t1")),
        tools(*code("part2"), *verified("calc-t2")),
    ]
    project = make_project(script)
    project.specify()
    ran = project.lopen("approve", "calc", "--yes", "--run", "--json")
    assert ran.code == 0, ran.err
    assert [(e["guard"], e["verdict"]) for e in ran.named("guardrail")] == [("tool_discipline", "warn")]
    _, _, after_first, after_edits, second_task = project.requests
    assert not any(block["type"] == "text" for block in after_first["messages"][-1]["content"])
    *results, last = after_edits["messages"][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result"] * 8
    assert not any("[lopen]" in str(block) for block in results)
    assert last["text"].startswith("[lopen] You have edited 8 different files since the last test run")
    assert "Corrections" not in str(second_task["system"]) + str(second_task["messages"])


def test_a_file_that_each_prompt_carries_is_not_read_in_each_attempt(make_project: MakeProject) -> None:
    read, failed = (
        ("read_file", {"path": "calc.py"}),
        ("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "not yet"}),
    )
    project = make_project(
        [
            plan(),
            tools(*code(), read, failed),
            tools(read, failed),
            tools(read, ("read_file", {"path": "tests/test_calc.py"})),
            tools(*verified("calc-t1")),
        ]
    )
    project.specify()

    ran = project.lopen("approve", "calc", "--yes", "--run", "--json")

    assert ran.code == 0, ran.err
    told = [e["reason"] for e in ran.named("guardrail") if e["guard"] == "circular_behaviour"]
    assert len(told) == 1
    assert "calc.py" in told[0]
    assert "3 times" in told[0]


def test_what_was_told_in_a_failed_attempt_and_holds_no_more_is_not_in_the_next_prompt(
    make_project: MakeProject,
) -> None:
    failed = ("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "not yet"})
    script = [
        plan(),
        tools(*many_files(1)),
        tools(("verify_tests", {}), failed),  # it fails: there is no test, but it ran
        tools(*many_files(2)),
        tools(failed),
        tools(*code(), *verified("calc-t1")),
    ]
    project = make_project(script)
    project.specify()
    assert project.lopen("approve", "calc", "--yes", "--run").code == 0
    prompts = [str(r["system"]) + str(r["messages"][0]) for r in project.requests[1:]]
    told = ["different files since the last test run" in prompt for prompt in prompts]
    assert told == [False, False, False, False, True]
