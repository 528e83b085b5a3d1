"""The terminal: the view of a run on standard output, and the person who answers questions and approves.

Each part is imported where it is used: most commands need none of them.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext, Presentation, ResumeOptions, View
from lopen.core.errors import LopenError, WrongUsage
from lopen.core.escape import inert
from lopen.core.wrapping import width_of, wrapped

if TYPE_CHECKING:
    from lopen.cli.rendering.live import Snapshot, ViewKey
    from lopen.loop.context import Approver, SessionContext
    from lopen.settings.schema import Settings
    from lopen.specification.spec import Specification
    from lopen.store.sessions import SessionStore
    from lopen.tools.questions import Person
    from lopen.workflow.pauses import Question
    from lopen.workflow.session import Session

DIFF_LINES = 200


def at_terminal() -> bool:
    """True if standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


POLL_S = 0.3  # between two looks at what another shell answered


def yes(question: str, settled: Callable[[], bool] | None = None) -> bool:
    """Ask a yes-or-no question until the answer is one; an empty one is no, `settled` elsewhere counts as yes."""
    while (answer := answer_to(f"{question} [y/N]", settled)) not in ("y", "yes", "n", "no", ""):
        if answer is None:
            return True
        sys.stdout.write("please answer y or n: ")
    return answer in ("y", "yes")


def answer_to(question: str, settled: Callable[[], bool] | None = None) -> str | None:
    """Ask a question and return the answer in lower case; "" at the end of input, None where it is `settled` elsewhere."""
    sys.stdout.write(f"{wrapped(inert(question), width_of(sys.stdout))} ")
    sys.stdout.flush()
    line = _typed_line(settled)
    return None if line is None else line.strip().casefold()


def _typed_line(settled: Callable[[], bool] | None) -> str | None:
    """Return the line that the person types, "" at the end of input; None once it is `settled` elsewhere."""
    while settled is not None and not select.select([sys.stdin], [], [], POLL_S)[0]:
        if settled():
            sys.stdout.write("\n")
            return None
    return sys.stdin.readline()


class TerminalPerson:
    """Asks the model's questions on the terminal while the view is suspended."""

    def __init__(self, view: View) -> None:
        self._view = view

    def ask(self, question: Question, settled: Callable[[], bool]) -> str | None:
        """Return the answer: the default for an empty line, None at the end of input or where it is `settled`."""
        with self._view.suspended():
            marks = [f"{n}." if question.is_numbered else "-" for n in range(1, len(question.options) + 1)]
            options = (f"  {mark} {inert(each)}" for mark, each in zip(marks, question.options, strict=True))
            told = "\n".join(["", inert(question.text, lines=True), *options])
            while True:
                asked = f"{told}\n[{inert(question.default)}] >"
                sys.stdout.write(wrapped(asked, width_of(sys.stdout)) + " ")
                sys.stdout.flush()
                line = _typed_line(settled)
                if not line:
                    return None
                try:
                    return question.chosen(line) or question.default
                except WrongUsage as error:
                    told = inert(error.message)


class TerminalApprover:
    """Shows a specification and asks for its approval."""

    def __init__(self, context: CommandContext, settings: Settings, store: SessionStore, view: View) -> None:
        self._context = context
        self._settings = settings
        self._store = store
        self._view = view

    def approve(self, spec: Specification) -> bool:
        """Return True only if the person approves this specification now."""
        from lopen.application.decisions import checked, record, show
        from lopen.application.estimate import tell
        from lopen.sandbox.ancestry import enclosing_session
        from lopen.specification.drift import spec_hash

        if enclosing_session() is not None:
            return False
        with self._view.suspended():
            try:
                checked(spec)
            except LopenError as error:
                self._context.warn(error.message)
                return False
            show(self._context, self._store, spec)
            tell(self._context, spec, self._settings)
            digest = spec_hash(spec.outline)

            def settled() -> bool:
                newest = self._store.approval(spec.module)
                return newest is not None and newest.spec_hash == digest

            if not yes(f"approve {spec.module} and build it?", settled):
                return False
            if settled():  # in another shell
                return True
        record(self._store, spec, "approved at the terminal")
        return True


class TerminalPresentation(Presentation):
    """Shows a run on standard output, and asks the person at the terminal if there is one."""

    def __init__(self) -> None:
        self._shown: View | None = None

    def view(
        self,
        context: CommandContext,
        options: ResumeOptions,
        redact: Callable[[str], str],
        running: list[SessionContext],
    ) -> View:
        from lopen.cli.rendering.views import mode_for, subscriber

        def session() -> Session:
            if not running:
                raise LopenError("the run has not begun yet")
            return running[0].record.journal.session

        mode = mode_for(sys.stdout, json=context.json, quiet=options.quiet)
        self._shown = subscriber(
            mode,
            sys.stdout,
            snapshot=lambda: _snapshot(running),
            redact=lambda text: context.typed(redact(text)),
            color=not options.no_color,
            verbose=context.verbose,
            keys=view_keys(context, session) if mode == "live" else None,
        )
        return self._shown

    def shows(self, text: str) -> bool:
        return self._shown is not None and self._shown.shows(text)

    def person(self, context: CommandContext, settings: Settings, view: View) -> Person:
        asked = not settings.workflow.unattended and not context.json and at_terminal()
        return TerminalPerson(view) if asked else super().person(context, settings, view)

    def approver(
        self, context: CommandContext, settings: Settings, store: SessionStore, view: View
    ) -> Approver:
        if settings.workflow.unattended or context.json or not at_terminal():
            return super().approver(context, settings, store, view)
        return TerminalApprover(context, settings, store, view)

    def confirms(self, question: str) -> bool | None:
        return yes(question) if at_terminal() else None


def view_keys(context: CommandContext, session: Callable[[], Session]) -> dict[str, ViewKey]:
    """Return the keys of a live view; their actions run in its thread."""
    from lopen.cli.rendering.live import ViewKey

    return {
        "d": ViewKey("diff", lambda: _diff_text(context, session())),
        "p": ViewKey("pause", lambda: _request_pause(context, session()), "pausing"),
    }


def _diff_text(context: CommandContext, session: Session) -> str:
    """Return the session's changes so far, as far as they fit a terminal."""
    from lopen.application.reports import module_diff

    lines = module_diff(context, session).rstrip("\n").splitlines()
    more = [f"… {len(lines) - DIFF_LINES} more lines: lopen diff"] if len(lines) > DIFF_LINES else []
    return "\n".join([*lines[:DIFF_LINES], *more]) or "no changes yet"


def _request_pause(context: CommandContext, session: Session) -> str:
    """Ask the session to pause after the current turn, over a connection of the view's thread."""
    from lopen.application.decisions import ask_to_pause
    from lopen.application.open_store import open_store

    store = open_store(context)
    try:
        ask_to_pause(context, store, session.id)
    finally:
        store.database.close()
    return "pausing after the current turn"


def _snapshot(running: list[SessionContext]) -> Snapshot:
    """Return the picture's figures of the running session."""
    from lopen.cli.rendering.live import snapshot_of
    from lopen.workflow.task_tree import TaskTree

    if not running:
        return snapshot_of(TaskTree())
    loop = running[0]
    states = loop.guards.meter.states()
    limit = loop.settings.budget.max_cost_usd
    return snapshot_of(loop.record.journal.session.tree, states, limit)
