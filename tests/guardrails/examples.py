"""Facts and calls that the tests of this room start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lopen.guardrails.call_history import CallEnd, CallHistory, LoggedCall, WastefulHabit, signature
from lopen.guardrails.guard import GuardFacts
from lopen.guardrails.habits import after_turn, find_habits, notice, untested_edits
from lopen.settings.schema import ToolDiscipline
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.sessions import changed

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LIMITS = ToolDiscipline()
TESTED = CallHistory(tests_known=True)  # of a project that has tests


TASK = Task("t1", "login")


def facts(task: Task = TASK, step: Step = Step.ITERATE_THROUGH_TASKS, **given: Any) -> GuardFacts:
    """Facts that every guard passes, in step 6 about `task`; changed by fields of them and of the session."""
    own = {name: given.pop(name) for name in GuardFacts.__dataclass_fields__ if name in given}
    plan = {"tree": TaskTree((Component("c1", "Core", tasks=(task,)),)), "selected": "c1"}
    session = Session("auth-20260301-1", "auth", NOW, step=step)
    session = changed(session, **{**plan, "criteria": {"AC-1": "x"}, "original_scope": 2, **given})
    return GuardFacts(session, NOW, **own)


def ended(tool: str, argument: str = "", **changes: Any) -> CallEnd:
    """A call that ended."""
    return replace(CallEnd(tool, signature(tool, {"argument": argument}), resource=argument), **changes)


def read(path: str = "src/a.py", content: str | None = "h1", *, part: str = "", **changes: Any) -> CallEnd:
    """A file read."""
    call = signature("read_file", {"path": path, "offset": part})
    return replace(CallEnd("read_file", call, resource=path, content_hash=content), **changes)


def ran(command: str, exit_code: int | None = 0, output: str | None = "o1", **changes: Any) -> CallEnd:
    """A command that ran."""
    call = signature("run_command", {"command": command})
    return replace(
        CallEnd("run_command", call, exit_code=exit_code, resource=command, content_hash=output), **changes
    )


def edit(path: str) -> CallEnd:
    """A file edited."""
    return ended("edit_file", path, edited=(path,))


def verified(exit_code: int = 0) -> CallEnd:
    """A run of the specification's tests."""
    return ended("verify_tests", exit_code=exit_code)


def count(
    calls: CallHistory, end: CallEnd, limits: ToolDiscipline = LIMITS
) -> tuple[CallHistory, tuple[WastefulHabit, ...]]:
    """Count one call that is a turn of its own, and return the history and the habits found."""
    return turn(calls, (end,), limits)


def turn(
    calls: CallHistory, ends: Sequence[CallEnd], limits: ToolDiscipline = LIMITS
) -> tuple[CallHistory, tuple[WastefulHabit, ...]]:
    """Count the calls of one turn and its end, and return the history and the habits found."""
    told: list[WastefulHabit] = []
    for end in ends:
        calls = calls.announced(LoggedCall(end.mark, end.signature)).ended(end)
        found = find_habits(calls, end, limits)
        calls = calls.found(found)
        told += found
    calls = after_turn(calls, lambda: True)
    habit = untested_edits(calls, limits)
    ending = () if habit is None else (habit,)
    return calls.found(ending), (*told, *ending)


def unchanged_in_row(calls: CallHistory, signature: str) -> int:
    """Return how often in a row the call gave the same content in this conversation."""
    return next((c.unchanged for c in reversed(calls.log) if c.signature == signature and c.content), 0)


def fed(*ends: CallEnd, start: CallHistory | None = None, limits: ToolDiscipline = LIMITS) -> CallHistory:
    """Return the history after the calls, in order."""
    calls = start or TESTED
    for end in ends:
        calls, _ = count(calls, end, limits)
    return calls


def notices(*ends: CallEnd, start: CallHistory | None = None) -> list[str]:
    """Return the notice after each call."""
    calls = start or TESTED
    texts: list[str] = []
    for end in ends:
        calls, found = count(calls, end)
        texts.append(notice(found))
    return texts
