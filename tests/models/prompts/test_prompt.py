"""The prompt of an iteration: what is stable stays so, and only what concerns the work at hand goes in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.models.prompts.examples import (
    around,
    long_specification,
    planned,
    prompt,
    stable,
    text_of,
)
from tests.sessions import changed
from tests.workflow.examples import APPROVAL, session


def second_task(first: Session) -> Session:
    """The session once its first task is complete and the second is in progress."""
    done, upcoming = first.tree.components[0].tasks
    tree = first.tree.with_task(replace(done, state=State.COMPLETE, commit="c" * 40))
    return changed(first, tree=tree.with_task(upcoming.to(State.IN_PROGRESS)), iterations=2)


def test_the_stable_part_and_the_component_s_part_are_the_same_for_every_task() -> None:
    one = prompt(planned(sections=("Behaviour",)))
    other = prompt(
        second_task(planned(sections=("Behaviour",))),
        surroundings=around(files="README.md\nsrc/calc.py\nsrc/more.py", limits="module budget 40% used"),
        request="Mind the docstrings.",
    )
    assert [b.text.encode() for b in one.system[:2]] == [b.text.encode() for b in other.system[:2]]
    assert [b.cached for b in one.system] == [True, True, False]
    assert one.system[2] != other.system[2]


def test_the_stable_part_is_the_same_at_every_size_and_whatever_was_told() -> None:
    base = stable(prompt(planned()))
    for level in range(5):
        told = planned(context_level=level, corrections=("change your way",), notes=("a note",))
        assert stable(prompt(told, context_tokens=1_000)) == base


def test_the_planning_steps_share_their_stable_part() -> None:
    texts = {stable(prompt(session(step=s, approval=APPROVAL))).text for s in PLANNING_STEPS}
    assert len(texts) == 1


def test_a_task_gets_the_sections_it_names_else_its_component_s() -> None:
    wanted = planned(sections=("Errors",))
    one, two = text_of(prompt(wanted)), text_of(prompt(second_task(wanted)))
    assert "Nothing is rounded." in one
    assert "Nothing is swallowed." not in one
    assert "Nothing is swallowed." in two
    assert "Nothing is rounded." not in two
    assert "Functions live in calc.py." not in one + two
    assert one.count("- AC-2: divide(1, 0)") == two.count("- AC-2: divide(1, 0)") == 1


def test_a_section_inside_another_one_is_given_once() -> None:
    names = ("Behaviour", "Rounding", "Behaviour > Rounding", "behaviour", "Acceptance Criteria")
    text = text_of(prompt(planned(sections=names)))
    assert text.count("Nothing is rounded.") == 1
    assert text.count("add(1, 2) is 3") == 1, "criteria are shown apart"


@pytest.mark.parametrize(
    "named", [("Part 7",), ("Part 7", "Part 8", "Part 9"), tuple(f"Part {n}" for n in range(60))]
)
def test_a_task_gets_at_most_a_quarter_of_a_long_specification(named: tuple[str, ...]) -> None:
    spec = long_specification(60, 4_000)
    assert len(spec.text) > 240_000
    work = Task("calc-t1", "Add", "Write it.", state=State.IN_PROGRESS, spec_sections=named)
    text = text_of(prompt(planned(work), spec))
    assert len(text.encode()) <= len(spec.text.encode()) / 4
    assert "## Specification: Part 7\n" in text
    if len(named) == 60:
        assert "read_spec section='Part 59'" in text, "what was cut is said"


def test_a_component_that_rests_on_everything_gives_each_task_its_own_sections() -> None:
    spec = long_specification(60, 4_000)
    work = [Task(f"calc-t{n}", f"Task {n}", "Write it.", spec_sections=(f"Part {n}",)) for n in range(60)]
    work[30] = work[30].to(State.IN_PROGRESS)
    wanted = planned(*work, sections=tuple(f"Part {n}" for n in range(60)))
    built = prompt(wanted, spec)
    assert len(text_of(built).encode()) <= len(spec.text.encode()) / 4
    assert "## Specification: Part 30\n" in built.system[2].text
    assert built.system[1].text.count("## Specification:") == 1, "the Overview"
    other = wanted.tree.with_task(replace(work[30], state=State.COMPLETE)).with_task(
        work[31].to(State.IN_PROGRESS)
    )
    assert prompt(changed(wanted, tree=other), spec).system[1] == built.system[1]


def test_planning_a_long_specification_reads_what_planning_always_needs_and_is_told_of_the_rest() -> None:
    spec = long_specification(60, 4_000)
    text = text_of(prompt(session(step=Step.IDENTIFY_COMPONENTS, approval=APPROVAL), spec))
    assert len(text.encode()) <= len(spec.text.encode()) / 4
    assert "It computes." in text
    assert "`read_spec` gives each of them" in text
    assert "- Part 59" in text


def test_each_overflow_makes_the_prompt_smaller_but_the_task_stays() -> None:
    sizes = []
    for level in range(5):
        built = prompt(
            planned(context_level=level, sections=("Behaviour", "Errors")),
            surroundings=around(files="src/file.py\n" * 900, work_in_progress="+line\n" * 900),
        )
        sizes.append(sum(len(b.text) for b in built.system[1:]))
        assert "id: calc-t1" in built.system[-1].text
        assert "- AC-1: add(1, 2) is 3" in text_of(built)
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[4] < sizes[0] / 4


def test_of_many_tasks_those_around_the_next_one_are_listed() -> None:
    work = [Task(f"calc-t{n}", f"Task {n}", state=State.COMPLETE) for n in range(5_000)]
    work += [Task(f"calc-t{n}", f"Task {n}") for n in range(5_000, 10_000)]
    work[5_000] = work[5_000].to(State.IN_PROGRESS)
    text = text_of(prompt(planned(*work)))
    assert "calc-t5000 Task 5000: in_progress" in text
    assert "(4990 earlier tasks)" in text
    assert "(4970 later tasks)" in text
    assert len(text) < 20_000


def test_an_unselected_component_s_tasks_are_not_told() -> None:
    wanted = planned()
    other = Component("extra", "Extra", tasks=(Task("calc-t9", "Something else"),))
    text = text_of(prompt(changed(wanted, tree=TaskTree((*wanted.tree.components, other)))))
    assert "- Extra (extra): pending" in text
    assert "calc-t9" not in text
