"""Orders 210 and 400: wasteful habits, found in the log of calls (docs/reference/guardrails.md).

`find_habits` runs after each call and `untested_edits` after each turn; the notice goes to the model with the results.
The guards repeat before the next iteration the habits that still matter. They advise and never block. A habit is
reported when it reaches its limit and again at each multiple, not at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.guardrails.call_history import READS, CallEnd, CallHistory, HabitKind, WastefulHabit
from lopen.guardrails.guard import GuardFacts, GuardResult, one_line, times

if TYPE_CHECKING:
    from lopen.settings.schema import ToolDiscipline  # a hook must not load it: it takes 100 ms

CIRCULAR = "circular_behaviour"
DISCIPLINE = "tool_discipline"
LOOKS_MAX = 3  # listings and searches with one result that are too many
CORRECTIONS: Mapping[HabitKind, str] = {
    "circle": "Work from what it gave before: say what you learnt, then take an action that changes something.",
    "retry": "Stop retrying: read the error, find its cause, change that, and only then run it again.",
    "untested_edits": "Run verify_tests before you change more.",
}


def find_habits(calls: CallHistory, end: CallEnd, limits: ToolDiscipline) -> tuple[WastefulHabit, ...]:
    """Return the habits that reach a limit with the end of a call, which `calls` holds."""
    call = calls.call(end.mark)
    if call is None:
        return ()
    resource = one_line(end.resource, 120) or end.tool
    looks = limits.max_file_reads if end.tool in READS else LOOKS_MAX
    found = []
    if call.unchanged and call.unchanged % looks == 0:
        found.append(WastefulHabit("circle", resource, call.unchanged))
    if call.failures and call.failures % limits.max_command_retries == 0:
        found.append(WastefulHabit("retry", resource, call.failures))
    return tuple(found)


def notice(found: Iterable[WastefulHabit]) -> str:
    """Return the text to append to the result of the call, one line a resource; empty for no habits."""
    # Of two about one command, the later is the more exact.
    lines = {habit.resource: f"{in_words(habit)}. {CORRECTIONS[habit.kind]}" for habit in found}
    return "\n".join(f"[lopen] {text}" for text in lines.values())


def after_turn(calls: CallHistory, tests_exist: Callable[[], bool]) -> CallHistory:
    """Return the history at the end of a turn: files edited before there were tests do not count as untested."""
    if calls.tests_known or not calls.edited:
        return calls
    return replace(calls, edited=(), tests_known=tests_exist())


def untested_edits(calls: CallHistory, limits: ToolDiscipline) -> WastefulHabit | None:
    """Return the habit of editing without testing, if a turn ends with another multiple of the limit."""
    if not calls.tests_known:
        return None
    told = next((habit.count for habit in calls.habits if habit.kind == "untested_edits"), 0)
    count = len(calls.edited)
    if count // limits.max_files_edited <= told // limits.max_files_edited:
        return None
    return WastefulHabit("untested_edits", "edits", count)


def check_circles(facts: GuardFacts) -> GuardResult:
    """Warn of all circles in the last attempt."""
    return _warning(CIRCULAR, facts)


def check_discipline(facts: GuardFacts) -> GuardResult:
    """Warn of all undisciplined use of tools in the last attempt."""
    return _warning(DISCIPLINE, facts)


def _warning(guard: str, facts: GuardFacts) -> GuardResult:
    habits = [habit for habit in facts.habits if guard_of(habit) == guard]
    return GuardResult(
        guard,
        "; ".join(in_words(habit) for habit in habits[-3:]),
        "\n".join(f"In the last attempt: {in_words(habit)}. {CORRECTIONS[habit.kind]}" for habit in habits),
        action="tells the model, continues",
        announce=False,  # announced when it was found
    )


def lasting_habits(calls: CallHistory, subject: str, limits: ToolDiscipline) -> tuple[WastefulHabit, ...]:
    """Return the habits of the last attempt at `subject` that still matter to the next.

    A command's failures and untested edits do as long as the work tree is as they left it.
    """
    if calls.subject != subject:
        return ()
    failing = any(c.failures >= limits.max_command_retries and c.tree == calls.tree for c in calls.log)
    untested = len(calls.edited) >= limits.max_files_edited
    holds = {"circle": True, "retry": failing, "untested_edits": untested}
    return tuple(habit for habit in calls.habits if holds[habit.kind])


def guard_of(habit: WastefulHabit) -> str:
    """Return the name of the guard that a habit belongs to."""
    return CIRCULAR if habit.kind == "circle" else DISCIPLINE


def in_words(habit: WastefulHabit) -> str:
    """Describe a habit in one line."""
    match habit.kind:
        case "circle":
            return f"`{habit.resource}` came back the same {times(habit.count)}"
        case "retry":
            return f"`{habit.resource}` failed {times(habit.count)} with nothing changed in between"
        case "untested_edits":
            return f"{habit.count} different files were edited since the last test run"
