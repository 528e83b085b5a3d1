"""Order 400: wasteful use of tools. Soft corrections that say what to do instead; never a block.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

from lopen.guardrails.calls import READS, RUN, HabitLimits, Streaks, ToolFact, due, short_key
from lopen.guardrails.guard import GuardFacts, GuardResult, GuardVerdict, WastefulHabit, passing
from lopen.guardrails.shell_text import normal_command
from lopen.guardrails.wording import listing, one_line, times

NAME = "tool_discipline"
SOFT = "Go on as you were if you have a good reason, and say which."


def count_read(reads: Streaks, call: ToolFact, limits: HabitLimits) -> tuple[Streaks, WastefulHabit | None]:
    """The reads of unchanged files with this call, and a finding where one was read too often."""
    if call.tool not in READS or call.content_hash is None:
        return reads, None
    reads, row = reads.seen(short_key(call.tool, call.resource, call.part), call.content_hash)
    if not due(row, limits.file_reads):
        return reads, None
    shown = one_line(call.resource, 120) or call.tool
    return reads, WastefulHabit(
        "reread",
        short_key(shown),
        row,
        f"You have read `{shown}` {times(row)} and it has not changed. Work from what you have already read of it.",
    )


def count_failure(
    failures: Streaks, call: ToolFact, tree: tuple[int, int], limits: HabitLimits
) -> tuple[Streaks, WastefulHabit | None]:
    """The failing runs with this call. Each command has a row of its own, so taking turns between two hides none.

    A success of the command, or a change to the work tree, ends its row: after an edit, running it again is
    right. `tree` is the work tree's state before and after the call: what the failing command itself left
    behind is no such change.
    """
    if not call.is_run:
        return failures, None
    key = failure_key(call.tool, call.resource)
    if not call.failed:
        return failures.without(key), None
    failures, row = failures.seen(key, str(tree[0]), str(tree[1]))
    if not due(row, limits.command_retries):
        return failures, None
    shown = one_line(normal_command(call.resource) if call.tool == RUN else call.tool, 120)
    return failures, WastefulHabit(
        "retry",
        short_key(shown),
        row,
        f"`{shown}` has failed {times(row)} and nothing was changed in between. Stop retrying: read the error, "
        "find its cause, change that, and only then run it again.",
    )


def failure_key(tool: str, command: str) -> str:
    """What a row of failures is kept under."""
    return short_key(tool, normal_command(command) if tool == RUN else tool)


def count_edits(
    edited: tuple[str, ...], call: ToolFact, limits: HabitLimits, keep: int
) -> tuple[tuple[str, ...], WastefulHabit | None]:
    """The different files edited since the last test run; beyond `keep` of them no further ones are counted."""
    if call.tested:
        return (), None
    before = len(edited)
    for path in map(short_key, call.edited):
        if path not in edited and len(edited) < keep:
            edited = (*edited, path)
    if len(edited) // limits.files_edited == before // limits.files_edited:
        return edited, None
    return edited, WastefulHabit(
        "untested_edits",
        "edits",
        len(edited),
        f"You have edited {len(edited)} different files since the last test run ({listing(edited)}). "
        "Run verify_tests before you change more.",
    )


def check(facts: GuardFacts) -> GuardResult:
    """A warning with everything found; never a block."""
    if not facts.discipline:
        return passing(NAME)
    return GuardResult(
        NAME,
        GuardVerdict.WARN,
        "; ".join(in_words(f) for f in facts.discipline[-3:]),
        "\n".join([*(f.correction for f in facts.discipline), SOFT]),
        action="tells the model, continues",
        announce=False,  # people were told when it was seen
    )


def in_words(finding: WastefulHabit) -> str:
    """A finding in one line for people."""
    resource = one_line(finding.resource, 80)
    match finding.kind:
        case "reread":
            return f"{resource} was read {times(finding.count)} unchanged"
        case "retry":
            return f"{resource} failed {times(finding.count)} with nothing changed in between"
        case "untested_edits":
            return f"{finding.count} files were edited since the last test run"
        case "circle":
            return f"{resource} came back the same {times(finding.count)}"
