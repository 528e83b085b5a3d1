"""Orders 210 and 400: wasteful habits, found in the history of calls (docs/reference/guardrails.md).

`find_habits` runs after each call and `untested_edits` after each turn; the notice goes to the model with the results.
The guards repeat before the next iteration the findings that still hold. They advise and never block. A habit is
reported when it reaches its limit and again at each multiple, not at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lopen.guardrails.call_history import READS, RUN, CallEnd, CallHistory, WastefulHabit
from lopen.guardrails.guard import GuardFacts, GuardResult, GuardVerdict, listing, one_line, passing, times
from lopen.settings.schema import ToolDiscipline

CIRCULAR = "circular_behaviour"
DISCIPLINE = "tool_discipline"
CIRCLES = frozenset({"circle", "same_failures"})


@dataclass(frozen=True, slots=True)
class HabitLimits:
    """The counts that are too many, all at least 1; the last three are the `tool_discipline.*` settings."""

    looks: int = 3
    test_runs: int = 8
    file_reads: int = 3
    command_retries: int = 3
    files_edited: int = 5

    @classmethod
    def of(cls, discipline: ToolDiscipline) -> HabitLimits:
        """Return the limits of the settings."""
        return cls(
            file_reads=discipline.max_file_reads,
            command_retries=discipline.max_command_retries,
            files_edited=discipline.max_files_edited,
        )


def find_habits(
    before: CallHistory, after: CallHistory, end: CallEnd, limits: HabitLimits
) -> tuple[WastefulHabit, ...]:
    """Return the habits that reach a limit with this call. `before` and `after`: the history around it."""
    found = (
        _circle(after, end, limits) if after.unchanged is not before.unchanged else None,
        _reread(after, end, limits) if after.unchanged is not before.unchanged else None,
        _same_failures(after, end, limits),
        _retry(after, end, limits),
    )
    return tuple(habit for habit in found if habit is not None)


def notice(found: Iterable[WastefulHabit]) -> str:
    """Return the text to append to the result of the call, one line a resource; empty for no habits."""
    lines = {habit.resource: habit.correction for habit in found}  # of two, the later is the more exact
    return "\n".join(f"[lopen] {text}" for text in lines.values())


def _due(count: int, limit: int) -> bool:
    """Tell whether a count is to be reported: at the limit and at each multiple."""
    return count > 0 and count % limit == 0


def _circle(calls: CallHistory, end: CallEnd, limits: HabitLimits) -> WastefulHabit | None:
    row = calls.unchanged_in_row(end.signature)
    if not _due(row, limits.looks):
        return None
    shown = _shown(end)
    verb = "run" if end.tool == RUN else "searched" if end.tool == "search_files" else "read"
    return WastefulHabit(
        "circle",
        shown,
        row,
        f"`{shown}` has been {verb} {times(row)} without any change in what came back: this is going in circles. "
        "Say what you learnt from it, then take an action that changes something.",
    )


def _reread(calls: CallHistory, end: CallEnd, limits: HabitLimits) -> WastefulHabit | None:
    row = calls.unchanged_in_row(end.signature)
    if end.tool not in READS or not _due(row, limits.file_reads):
        return None
    shown = _shown(end)
    return WastefulHabit(
        "reread",
        shown,
        row,
        f"You have read `{shown}` {times(row)} and it has not changed. Work from what you have already read of it.",
    )


def _same_failures(calls: CallHistory, end: CallEnd, limits: HabitLimits) -> WastefulHabit | None:
    if not (end.tested and end.failed):
        return None
    worst = max(calls.failing_tests.values(), default=0)
    if not _due(worst, limits.test_runs):
        return None
    names = listing(tuple(name for name, runs in calls.failing_tests.items() if runs == worst), 3)
    return WastefulHabit(
        "same_failures",
        names,
        worst,
        f"{names} failed in {worst} test runs in a row, whatever you changed. Stop editing: find the cause first. Read the "
        "code that the test reaches, print what it gets, and look for what all attempts have in common.",
    )


def _retry(calls: CallHistory, end: CallEnd, limits: HabitLimits) -> WastefulHabit | None:
    row = calls.failures_in_row(end.signature)
    if not end.is_run or not _due(row, limits.command_retries):
        return None
    shown = _shown(end)
    return WastefulHabit(
        "retry",
        shown,
        row,
        f"`{shown}` has failed {times(row)} and nothing was changed in between. Stop retrying: read the error, "
        "find its cause, change that, and only then run it again.",
    )


def after_turn(calls: CallHistory, tests_exist: Callable[[], bool]) -> CallHistory:
    """Return the history at the end of a turn: files edited before there were tests do not count as untested."""
    if calls.tests_known or not calls.edited:
        return calls
    return replace(calls, edited=(), tests_known=tests_exist())


def untested_edits(calls: CallHistory, limits: HabitLimits) -> WastefulHabit | None:
    """Return the habit of editing without testing, if a turn ends with another multiple of the limit."""
    if not calls.tests_known:
        return None
    told = next((f.count for f in calls.findings if f.kind == "untested_edits"), 0)
    count = len(calls.edited)
    return _untested(calls) if count // limits.files_edited > told // limits.files_edited else None


def _untested(calls: CallHistory) -> WastefulHabit:
    count = len(calls.edited)
    return WastefulHabit(
        "untested_edits",
        "edits",
        count,
        f"You have edited {count} different files since the last test run ({listing(calls.edited)}). "
        "Run verify_tests before you change more.",
    )


def _shown(end: CallEnd) -> str:
    """Return the subject of the call, on one line."""
    return one_line(end.resource, 120) or end.tool


def check_circles(facts: GuardFacts) -> GuardResult:
    """Warn of all circles in the conversation."""
    if not facts.circular:
        return passing(CIRCULAR)
    worst = max(facts.circular, key=lambda habit: habit.count)
    more = f" and {len(facts.circular) - 1} more" if len(facts.circular) > 1 else ""
    return GuardResult(
        CIRCULAR,
        GuardVerdict.WARN,
        f"{in_words(worst)}{more}",
        "\n".join(habit.correction for habit in facts.circular),
        action="tells the model, continues",
        announce=False,  # announced when it was found
    )


def check_discipline(facts: GuardFacts) -> GuardResult:
    """Warn of all undisciplined use of tools in the conversation."""
    if not facts.discipline:
        return passing(DISCIPLINE)
    return GuardResult(
        DISCIPLINE,
        GuardVerdict.WARN,
        "; ".join(in_words(habit) for habit in facts.discipline[-3:]),
        "\n".join(habit.correction for habit in facts.discipline),
        action="tells the model, continues",
        announce=False,  # announced when it was found
    )


def circles(calls: CallHistory, subject: str) -> tuple[WastefulHabit, ...]:
    """Return the circles of the last attempt at `subject` that matter to the next one, which was shown nothing of it."""
    if calls.subject != subject:
        return ()
    found = []
    for habit in calls.findings:
        if habit.kind == "circle":
            said = f"The last attempt looked at `{habit.resource}` {times(habit.count)} without any change in what came back."
            found.append(replace(habit, correction=f"{said} Look at it once, then change something."))
        elif habit.kind == "same_failures" and calls.failing_tests:  # the tests have not passed since
            found.append(habit)
    return tuple(found)


def undisciplined(calls: CallHistory, subject: str, limits: HabitLimits) -> tuple[WastefulHabit, ...]:
    """Return the undisciplined use of tools that still matters to the next attempt at `subject`.

    A command's failures and untested edits do as long as the work tree is as they left it; a file that was read
    too often does where it is not a circle already.
    """
    if calls.subject != subject:
        return ()
    circled = {habit.resource for habit in circles(calls, subject)}
    failing = any(
        row >= limits.command_retries and tree == calls.tree for tree, row in calls.failing.values()
    )
    found = []
    for habit in calls.findings:
        if habit.kind == "reread" and habit.resource not in circled:
            said = f"The last attempt read `{habit.resource}` {times(habit.count)} unchanged. Read it once."
            found.append(replace(habit, correction=said))
        elif habit.kind == "retry" and failing:
            found.append(habit)
        elif habit.kind == "untested_edits" and len(calls.edited) >= limits.files_edited:
            found.append(_untested(calls))
    return tuple(found)


def guard_of(habit: WastefulHabit) -> str:
    """Return the name of the guard that a habit belongs to."""
    return CIRCULAR if habit.kind in CIRCLES else DISCIPLINE


def in_words(habit: WastefulHabit) -> str:
    """Describe a habit in one line for people."""
    resource = one_line(habit.resource, 80)
    match habit.kind:
        case "reread":
            return f"{resource} was read {times(habit.count)} unchanged"
        case "retry":
            return f"{resource} failed {times(habit.count)} with nothing changed in between"
        case "untested_edits":
            return f"{habit.count} files were edited since the last test run"
        case "same_failures":
            return f"{resource} failed in {habit.count} test runs in a row"
        case "circle":
            return f"{resource} came back the same {times(habit.count)}"
