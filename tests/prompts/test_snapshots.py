"""What each step's prompt says, word for word: a change of words is seen in review.

The texts lie in `snapshots/`. `UPDATE_SNAPSHOTS=1 pytest tests/prompts` writes them anew; read the difference
before it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lopen.prompts.prompt import Prompt
from lopen.prompts.templates import template
from lopen.workflow.steps import PLANNING_STEPS, Step
from lopen.workflow.task_tree import State
from tests.prompts.examples import around, planned, prompt
from tests.workflow.examples import APPROVAL, session

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("UPDATE_SNAPSHOTS") == "1"


def interrupted() -> Prompt:
    """Step 6 after a crash in the second attempt at a task, with all that may be told."""
    work = planned().tree.components[0].tasks
    again = replace(work[0], failures=1, note="two tests failed")
    return prompt(
        planned(
            again,
            work[1],
            corrections=("The file calc.py was read 3 times unchanged.",),
            notes=("The last run was interrupted.",),
        ),
        surroundings=around(
            conventions=(("AGENTS.md", "Use tabs.\n"),),
            research=(("rounding", "IEEE 754 rounds half to even."),),
            work_in_progress="diff --git a/calc.py b/calc.py\n+def add(a, b):\n",
        ),
        request="Mind the docstrings.",
    )


def planning(step: Step) -> Callable[[], Prompt]:
    return lambda: prompt(session(step=step, approval=APPROVAL))


CASES: dict[str, Callable[[], Prompt]] = {
    "draft_specification": lambda: prompt(
        session(), None, request="A module that adds and divides.", surroundings=around(commands=())
    ),
    "draft_specification_refined": lambda: prompt(session(), request="Say what divide(1, 0) does."),
    **{step.value: planning(step) for step in sorted(PLANNING_STEPS)},
    "iterate_through_tasks": lambda: prompt(planned()),
    "iterate_through_tasks_interrupted": interrupted,
}


def written(wanted: Prompt) -> str:
    """A prompt as its snapshot."""
    blocks = [
        f"<!-- system block {n}{', cached' if block.cached else ''} -->\n{block.text}"
        for n, block in enumerate(wanted.system, 1)
    ]
    return "\n\n".join([*blocks, f"<!-- the first message -->\n{wanted.opening}"]) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_the_prompt_is_the_recorded_one(name: str) -> None:
    path, text = FOLDER / f"{name}.md", written(CASES[name]())
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), "UPDATE_SNAPSHOTS=1 records it anew"


def test_no_snapshot_is_left_over() -> None:
    assert {p.stem for p in FOLDER.glob("*.md")} == set(CASES)


def test_every_step_that_asks_a_model_has_one() -> None:
    asking = set(Step) - {Step.REPEAT, Step.COMPLETE}
    assert {s.value for s in asking} <= set(CASES)


def test_planning_is_invited_to_one_turn_and_to_size_the_plan() -> None:
    text = written(CASES["determine_dependencies"]())
    assert "record all of them in a single turn" in text
    assert "A small module is one component with one or two tasks." in text


def test_building_is_invited_to_one_turn_and_told_its_task_with_the_checklist() -> None:
    text = written(CASES["iterate_through_tasks"]())
    assert "best in a single turn" in text
    assert "id: calc-t1" in text
    assert "1. [x] write the test\n2. [ ] write the function" in text
    assert State.IN_PROGRESS.value in text


def test_the_researcher_is_told_to_change_nothing() -> None:
    assert "You change nothing." in template("research")
