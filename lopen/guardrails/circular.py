"""Order 210: the same thing read or run again and again with nothing new in it.

Only content that is known counts: an unknown hash neither adds to a row nor breaks it, changed content starts
a new row. What a command prints is compared within one state of the work tree, since running it again after
a change is what one should do.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

from lopen.guardrails.calls import LOOKS, RUN, HabitLimits, Streaks, ToolFact, due, short_key
from lopen.guardrails.guard import GuardFacts, GuardResult, GuardVerdict, WastefulHabit, passing
from lopen.guardrails.shell_text import normal_command
from lopen.guardrails.wording import one_line, times

NAME = "circular_behaviour"


def count(
    looks: Streaks, call: ToolFact, tree: int, limits: HabitLimits
) -> tuple[Streaks, WastefulHabit | None]:
    """The looks with this call, and a finding where it closes a circle."""
    if call.content_hash is None or (call.tool not in LOOKS and call.tool != RUN):
        return looks, None
    run = call.tool == RUN
    resource = normal_command(call.resource) if run else call.resource
    mark = f"{tree}:{call.content_hash}" if run else call.content_hash
    looks, row = looks.seen(short_key(call.tool, resource, call.part), mark)
    return looks, _finding(call, resource, row) if due(row, limits.looks) else None


def _finding(call: ToolFact, resource: str, row: int) -> WastefulHabit:
    shown = one_line(resource, 120) or call.tool
    done = "run" if call.tool == RUN else "searched" if call.tool == "search_files" else "read"
    return WastefulHabit(
        "circle",
        short_key(shown),
        row,
        f"`{shown}` has been {done} {times(row)} without any change in what came back: this is going in circles. "
        "Say what you learnt from it, then take an action that changes something.",
    )


def check(facts: GuardFacts) -> GuardResult:
    """A warning with all circles found; never a block."""
    if not facts.circular:
        return passing(NAME)
    worst = max(facts.circular, key=lambda f: f.count)
    more = f" and {len(facts.circular) - 1} more" if len(facts.circular) > 1 else ""
    return GuardResult(
        NAME,
        GuardVerdict.WARN,
        f"{one_line(worst.resource, 80)} came back the same {times(worst.count)}{more}",
        "\n".join(f.correction for f in facts.circular),
        action="tells the model, continues",
        announce=False,  # people were told when it was seen
    )
