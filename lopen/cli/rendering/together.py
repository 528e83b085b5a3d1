"""The terminal while several modules are built: a line for each event behind its module's name, or JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lopen.application.command_context import CommandContext, ResumeOptions
from lopen.application.event_lines import rows
from lopen.application.open_store import open_store
from lopen.cli.rendering.views import mode_for, safe_json, shown_when_quiet
from lopen.core.events import Recorded
from lopen.queue.builds import Listed
from lopen.queue.together import Watch
from lopen.store.sessions import SessionStore, newest_event


@contextmanager
def watching(context: CommandContext, options: ResumeOptions) -> Iterator[Watch]:
    """Yield the function that shows what has happened since it was called last."""
    store = open_store(context, new=True)
    mode = mode_for(sys.stdout, json=context.json, quiet=options.quiet)
    try:
        yield EventLines(store, mode, verbose=context.verbose)
    finally:
        store.database.close()


class EventLines:
    """Writes the events that other processes record."""

    def __init__(self, store: SessionStore, mode: str, *, verbose: bool) -> None:
        self._store = store
        self._mode = mode
        self._verbose = verbose
        self._first = newest_event(store)
        self._last: dict[str, int] = {}  # session → number of the last event that was shown

    def __call__(self, listed: Listed, running: Sequence[str]) -> None:
        """Show the new events of the modules that run or have ended."""
        for module in dict.fromkeys((*running, *listed.endings)):
            for session in self._store.ids(module=module)[:1]:
                for record in self._store.events(session, after=self._last.get(session, self._first)):
                    self._last[session] = record.seq
                    for line in self._lines(module, record):
                        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def _lines(self, module: str, record: Recorded) -> list[str]:
        if self._mode == "json":
            return [safe_json(record)]
        if self._mode == "quiet" and not shown_when_quiet(record.event):
            return []
        return [f"{module}: {row}" for row in rows(record, verbose=self._verbose)]
