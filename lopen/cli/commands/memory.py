"""`lopen memory`: show what lopen keeps on disk against its limits, and what the last cleanup freed."""

from __future__ import annotations

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.core.errors import ExitCode


@command
def memory(context: CommandContext) -> ExitCode:
    """Show disk usage against its limits, and what the last cleanup freed. lopen cleans by itself."""
    from lopen.application.open_store import open_store
    from lopen.store.archives import archived_sessions
    from lopen.store.caps import dropped_entries
    from lopen.store.upkeep import STATE_BYTES, UNCOUNTED, counted, footprint, last_cleanup, memory_line

    store, folder = open_store(context), context.root / ".lopen"
    parts, last = footprint(folder), last_cleanup(store)
    kept, archived = len(store.ids()), len(archived_sessions(store.database))
    dropped = dropped_entries(store.database)
    context.emit(
        "memory",
        parts=parts,
        counted=counted(parts),
        limit=STATE_BYTES,
        sessions=kept,
        archived=archived,
        dropped=dropped,
        last=last,
    )
    context.say(memory_line(folder))
    for name, size in parts.items():
        context.say(f"  {name:<18}{size / 1024:>8,.0f} KB{' (not counted)' if name in UNCOUNTED else ''}")
    context.say(f"Sessions: {kept} kept, {archived} archived")
    for entry in dropped:
        context.say(f"Dropped {entry['list']}: {entry['count']:,}, {entry['measure']} {entry['mean']:.2f}")
    if last is None:
        context.say("Last cleanup: none was needed yet")
    else:
        freed = ", ".join(
            f"{name.replace('_', ' ')}: {count:,}" for name, count in last.items() if name != "at"
        )
        context.say(f"Last cleanup: {last['at'][:19]}Z: {freed}")
    return ExitCode.OK
