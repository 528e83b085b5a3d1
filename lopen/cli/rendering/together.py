"""The terminal while several modules are built: a line a module, one module's own view, plain lines, or JSON lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lopen.application.command_context import CommandContext, ResumeOptions, RunOptions
from lopen.application.estimate import expected
from lopen.application.event_lines import rows, step_words
from lopen.application.open_store import looked_up, open_store
from lopen.cli.rendering.views import mode_for, safe_json, shown_when_quiet
from lopen.core.errors import ExitCode
from lopen.core.events import Event, Notice, Recorded
from lopen.core.money import cost_text
from lopen.limits.budget import BudgetState
from lopen.queue.builds import Listed
from lopen.queue.together import BuildsView, chosen
from lopen.store.sessions import SessionStore, newest_event
from lopen.workflow.next_step import displayed_step
from lopen.workflow.session import Session
from lopen.workflow.task_tree import progress

if TYPE_CHECKING:
    from lopen.cli.rendering.live import Snapshot, ViewKey

STYLES = {"complete": "green", "waits": "bold yellow", "failed": "bold red", "not started": "dim"}


def preview_together(context: CommandContext, modules: Sequence[str], options: RunOptions) -> ExitCode:
    """Tell for each of these modules, or all, whether it would be built, after which others, and at which cost."""
    store, settings = open_store(context), context.load(options.flags()).settings
    selection = chosen(context, store, modules, options)
    budgets = looked_up(context, store.database).budgets
    for module, spec in selection.specs.items():
        after = ", ".join(name for name in spec.after if name not in selection.complete)
        waits = module in selection.unapproved
        cost = expected(store, budgets, spec, settings, options.model).words
        command = f"lopen approve {module}" if waits else f"lopen run {module}"
        unapproved = f"; it waits for your approval: {command}" if waits else ""
        context.say(f"{module}{f', after {after}' if after else ''}: {cost}{unapproved}")
        context.emit("dry_run", module=module, after=spec.after, waits_for_approval=waits, command=command)
    for ending in selection.endings.values():
        context.say(
            f"{ending.module}: not built: {ending.reason}{f'; next: {ending.command}' if ending.command else ''}"
        )
    context.say(
        f"{len(selection.specs)} of {len(selection.specs) + len(selection.endings)} would be built; nothing was sent"
    )
    return ExitCode.OK


@contextmanager
def watching(context: CommandContext, options: ResumeOptions) -> Iterator[BuildsView]:
    """Yield the function that shows what has happened since it was called last."""
    store = open_store(context, new=True)
    mode = mode_for(sys.stdout, json=context.json, quiet=options.quiet)
    try:
        if mode == "live":
            overview = Overview(context, store, color=not options.no_color and not os.environ.get("NO_COLOR"))
            try:
                yield overview
            finally:
                overview.view.close()
        else:
            yield EventLines(context, store, mode)
    finally:
        store.database.close()


class EventLines:
    """Writes the events that other processes record."""

    def __init__(self, context: CommandContext, store: SessionStore, mode: str) -> None:
        self._context = context
        self._mode = mode
        self._news = NewEvents(store)

    def __call__(self, listed: Listed, running: Sequence[str]) -> None:
        """Show the new events of the modules that run or have ended."""
        for module in dict.fromkeys((*running, *listed.endings)):
            for record in self._news.of(module):
                for line in self._lines(module, record):
                    sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Print a line, but for a program."""
        if self._mode != "json":
            sys.stdout.write(f"{text}\n")

    def close(self, endings: Sequence[Mapping[str, Any]]) -> None:
        """Print the table."""
        _show_endings(self._context, endings)

    def _lines(self, module: str, record: Recorded) -> list[str]:
        if self._mode == "json":
            return [safe_json(record)]
        if (self._mode == "quiet" and not shown_when_quiet(record.event)) or self._news.repeats(
            module, record.event
        ):
            return []
        return [f"{module}: {row}" for row in rows(record, verbose=self._context.verbose)]


def _show_endings(context: CommandContext, endings: Sequence[Mapping[str, Any]]) -> None:
    """Print the table of all builds; its last line names the command that a person enters next, if one is needed."""
    heads = ("module", "result", "tasks", "cost", "time", "next")
    table = [heads]
    for row in endings:
        minutes, seconds = divmod(round(row["seconds"]), 60)
        time = f"{minutes}:{seconds:02}" if row["seconds"] else ""
        table.append((row["module"], row["result"], row["tasks"], row["cost"], time, row["command"]))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells, ending in zip(table, [{}, *endings], strict=True):
        context.say("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
        if ending.get("reason"):
            context.say(f"    {ending['reason']}")
    needed = [row["command"] for row in endings if row["result"] == "waits"]
    if needed:
        context.say(f"next: {_all_at_once(needed)}")


def _all_at_once(commands: Sequence[str]) -> str:
    """Return one command in the place of several of the same kind, else the first."""
    if all(command.startswith("lopen approve ") for command in commands):
        return f"lopen approve {' '.join(command.split()[2] for command in commands)}"
    if all(command.startswith("lopen resume ") for command in commands):
        return "lopen resume --all"
    return commands[0]


class NewEvents:
    """The events of modules' newest sessions since they were asked for last."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._first = newest_event(store)
        self._last: dict[str, int] = {}  # session → number of the last event that was given
        self._warned: dict[str, str] = {}  # warning → the module that told it first

    def of(self, module: str) -> Iterator[Recorded]:
        """Yield the new events of a module."""
        for session in self._store.ids(module=module)[:1]:
            for record in self._store.events(session, after=self._last.get(session, self._first)):
                self._last[session] = record.seq
                yield record

    def repeats(self, module: str, event: Event) -> bool:
        """Return True for a warning that another module has told before, such as of a missing sandbox."""
        if not isinstance(event, Notice) or event.level != "warning":
            return False
        return self._warned.setdefault(event.message, module) != module


@dataclass(frozen=True, slots=True)
class ModuleLine:
    """A module in the overview: its newest session, and what it does in a few words."""

    module: str
    text: str
    style: str
    session: Session | None = None


class Overview:
    """A line a module; Enter opens one in the view that a single run has, with its keys."""

    def __init__(self, context: CommandContext, store: SessionStore, *, color: bool) -> None:
        from lopen.cli.rendering.live import DOWN, ENTER, UP, LiveView, ViewKey
        from lopen.cli.terminal import view_keys

        self._context = context
        self._store = store
        self._news = NewEvents(store)
        self._lines: list[ModuleLine] = []
        self._budgets: dict[str, BudgetState] = {}
        self._chosen, self._started = 0, False
        self._wanted = self._opened = ""  # the module that Enter opened, and the one that the view shows
        keys: dict[str, ViewKey] = {
            UP: ViewKey("", lambda: self._move(-1)),
            DOWN: ViewKey("", lambda: self._move(1)),
            ENTER: ViewKey("open or close", self._enter),
            **view_keys(context, self._session),
        }
        self.view = LiveView(
            sys.stdout, snapshot=self._snapshot, color=color, keys=keys, overview=self._overview
        )

    def __call__(self, listed: Listed, running: Sequence[str]) -> None:
        """Bring the picture up to date; the reader's thread draws it."""
        self._budgets = {b.budget_id: b for b in looked_up(self._context, self._store.database).budgets}
        self._lines = [self._line(listed, module, running) for module in listed.builds]
        if not self._started or self._wanted != self._opened:
            self._started, self._opened = True, self._wanted
            session = self._session_of(self._opened) if self._opened else None
            self.view.open(self._store.events(session.id) if session else (), self._opened)
        for module in dict.fromkeys((*running, *listed.endings)):
            for record in self._news.of(module):
                if module == self._opened:
                    self.view(record)
                elif shown_when_quiet(record.event) and not self._news.repeats(module, record.event):
                    for row in rows(record):
                        self.view.shows(f"{module}: {row}")

    def say(self, text: str) -> None:
        """Print a line above the picture."""
        self.view.shows(text)

    def close(self, endings: Sequence[Mapping[str, Any]]) -> None:
        """Restore the terminal, and print the table."""
        self.view.close()
        _show_endings(self._context, endings)

    def _line(self, listed: Listed, module: str, running: Sequence[str]) -> ModuleLine:
        session = self._session_of(module)
        ending = listed.endings.get(module)
        parts: list[str] = []
        if session is not None:
            done = progress(session.tree)
            task = session.task
            parts += [f"{done.tasks_done}/{done.tasks} tasks"] if done.tasks else []
            if budget := self._budgets.get(f"session:{session.id}"):
                parts.append(cost_text(budget.cost_usd, budget.unpriced_tokens))
            if ending is None and module in running:
                parts.insert(0, task.name if task else step_words(displayed_step(session)))
            if ending is not None and session.pause is not None:
                parts.append(session.pause.message)
        if ending is not None:
            parts = [ending.result, *parts, ending.reason]
        elif module not in running:
            waits = listed.waits_for(module)
            parts.insert(0, f"comes after {', '.join(waits)}" if waits else "waits for a free place")
        style = STYLES[ending.result] if ending else "" if module in running else "dim"
        return ModuleLine(module, " · ".join(filter(None, parts)), style, session)

    def _session_of(self, module: str) -> Session | None:
        return self._store.latest(module=module)

    def _overview(self) -> list[tuple[str, str]]:
        """Return the lines of the picture; none while a module is open."""
        lines = self._lines
        if self._opened or not lines:
            return []
        width = max(len(line.module) for line in lines)
        return [
            (f"{'>' if at == self._chosen else ' '} {line.module.ljust(width)}  {line.text}", line.style)
            for at, line in enumerate(lines)
        ]

    def _move(self, by: int) -> str:
        self._chosen = max(0, min(len(self._lines) - 1, self._chosen + by))
        return ""

    def _enter(self) -> str:
        self._wanted = "" if self._wanted else self._lines[self._chosen].module
        return ""

    def _session(self) -> Session:
        """Return the session that the keys act on: of the line that is chosen, or of the module that is open."""
        from lopen.core.errors import LopenError

        found = self._lines[self._chosen].session
        if found is None:
            raise LopenError(f"{self._lines[self._chosen].module} has not begun yet")
        return found

    def _snapshot(self) -> Snapshot:
        from lopen.cli.rendering.live import Snapshot, snapshot_of

        session = self._session_of(self._opened) if self._opened else None
        if session is None:
            return Snapshot()
        own = self._budgets.get(f"session:{session.id}")
        return snapshot_of(session.tree, [own] if own else [], session.limits.max_cost_usd or 0.0)
