"""Facts and calls that the tests of this room start from."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lopen.guardrails.call_history import Habits
from lopen.guardrails.calls import ToolFact
from lopen.guardrails.guard import GuardFacts
from lopen.workflow.steps import Step

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def facts(**changes: Any) -> GuardFacts:
    """Facts that every guard passes (step 2: no scope is wanted yet), with changes."""
    quiet = GuardFacts("auth", "auth-20260301-1", Step.DETERMINE_DEPENDENCIES, NOW)
    return replace(quiet, **changes)


def read(path: str = "src/a.py", content: str | None = "h1", **changes: Any) -> ToolFact:
    """A file read."""
    return ToolFact("read_file", path, content_hash=content, **changes)


def ran(command: str, exit_code: int | None = 0, output: str | None = "o1", **changes: Any) -> ToolFact:
    """A command that ran."""
    return ToolFact("run_command", command, exit_code=exit_code, content_hash=output, **changes)


def edit(path: str) -> ToolFact:
    """A file edited."""
    return ToolFact("edit_file", path, edited=(path,), tree_changed=True)


def verified(exit_code: int = 0) -> ToolFact:
    """The specification's tests ran."""
    return ToolFact("verify_tests", exit_code=exit_code)


def fed(*calls: ToolFact, start: Habits | None = None) -> Habits:
    """Habits after the calls, in order."""
    habits = start or Habits()
    for call in calls:
        habits = habits.after(call)
    return habits


def notices(*calls: ToolFact, start: Habits | None = None) -> list[str | None]:
    """What was said after each call."""
    habits = start or Habits()
    said: list[str | None] = []
    for call in calls:
        habits = habits.after(call)
        said.append(habits.notice)
    return said
