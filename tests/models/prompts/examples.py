"""Sessions, specifications and surroundings that prompts are built from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from lopen.models.messages import SystemBlock
from lopen.models.prompts.prompt import Prompt, Surroundings, build
from lopen.specification.spec import Specification, parse_specification
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Subtask, Task, TaskTree
from tests.workflow.examples import APPROVAL, session

CONTEXT_TOKENS = 160_000
TEXT = """\
---
name: calc
description: Arithmetic
---
# Calc

## Overview
It computes.

## Acceptance Criteria
- [ ] add(1, 2) is 3
- [ ] divide(1, 0) raises ZeroDivisionError

## Behaviour
Functions live in calc.py.

### Rounding
Nothing is rounded.

## Errors
Nothing is swallowed.

## Dependencies
None.

## Skills & Hooks
- **verify-setup**: none
- **verify-build**: none
- **verify-tests**: `pytest -q`
- **verify-lint**: `ruff check .`
- **verify-commit**: none
"""


def specification(text: str = TEXT) -> Specification:
    """A specification that passes `lopen check`."""
    spec = parse_specification(text, module="calc", path=Path("specs/calc/SPECIFICATION.md"))
    assert not spec.problems
    return spec


def long_specification(sections: int, size: int) -> Specification:
    """One with so many sections `Part 0` … of so many characters each."""
    filler = ("All of this is to be read with care. " * (size // 37 + 1))[: size - 12]
    parts = "".join(f"## Part {n}\n{filler}\n\n" for n in range(sections))
    return specification(TEXT.replace("## Behaviour", f"{parts}## Behaviour"))


def around(**changes: Any) -> Surroundings:
    """A small Python project."""
    given: dict[str, Any] = {
        "languages": ("Python: Python 3.12.3",),
        "commands": (("verify-tests", "pytest -q"), ("verify-lint", "ruff check ."), ("verify-build", None)),
        "sandbox": "Commands run under bwrap: the project is writable in step 6, everything else read-only or hidden; no network.",
        "conventions": (),
        "files": "README.md\nsrc/calc.py",
        "research": (),
        "work_in_progress": "",
        "limits": "module budget 12% used; no circuit open",
        "bounds": ("One answer holds about 80,000 characters in all its calls.",),
    }
    return Surroundings(**(given | changes))


def planned(*component_tasks: Task, sections: Sequence[str] = (), **fields: Any) -> Session:
    """An approved session in step 6 over the component `core`."""
    work = component_tasks or (
        Task(
            "calc-t1",
            "Add numbers",
            "Write add(a, b) with its tests.",
            state=State.IN_PROGRESS,
            subtasks=(Subtask("write the test", done=True), Subtask("write the function")),
            spec_sections=("Behaviour > Rounding",),
        ),
        Task("calc-t2", "Divide numbers", "Write divide(a, b) with its tests."),
    )
    core = Component(
        "core",
        "Core",
        "The functions.",
        criteria=("AC-1", "AC-2"),
        spec_sections=tuple(sections),
        tasks=work,
        broken_down=True,
    )
    given: dict[str, Any] = {
        "step": Step.ITERATE_THROUGH_TASKS,
        "approval": APPROVAL,
        "dependencies": (),
        "tree": TaskTree((core,)),
        "selected": "core",
        "original_scope": 3,
        "criteria": {"AC-1": "add(1, 2) is 3", "AC-2": "divide(1, 0) raises ZeroDivisionError"},
    }
    return session(**(given | fields))


def prompt(of: Session, spec: Specification | Literal["usual"] | None = "usual", **options: Any) -> Prompt:
    """The prompt for a session in those surroundings."""
    found = specification() if spec == "usual" else spec
    surroundings = options.pop("surroundings", around())
    options.setdefault("context_tokens", CONTEXT_TOKENS)
    return build(of, found, surroundings, **options)


def text_of(wanted: Prompt) -> str:
    """All the model is told at first."""
    return "\n".join([*(block.text for block in wanted.system), wanted.opening])


def stable(wanted: Prompt) -> SystemBlock:
    """The part that is the same between turns and tasks."""
    return wanted.system[0]
