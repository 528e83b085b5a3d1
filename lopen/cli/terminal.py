"""The terminal: the view of a run on standard output, and the person who answers questions and approves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext, View
from lopen.application.run_options import ResumeOptions
from lopen.base.escape import inert
from lopen.cli.rendering import mode_for, subscriber
from lopen.documents.spec import Specification
from lopen.loop.context import Approver, NoApprover, SessionContext
from lopen.sandbox.ancestry import enclosing_session
from lopen.settings.schema import Settings
from lopen.storage.sessions import SessionStore
from lopen.tools.workbench import Nobody, Person

if TYPE_CHECKING:
    from lopen.cli.rendering.frame import Snapshot


def at_terminal() -> bool:
    """True if standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def yes(question: str) -> bool:
    """Ask a yes-or-no question; any other answer counts as no."""
    return answer_to(f"{question} [y/N]") in ("y", "yes")


def answer_to(question: str) -> str:
    """Ask a question and return the answer in lower case; "" at the end of input."""
    sys.stdout.write(f"{inert(question)} ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().casefold()


class TerminalPerson:
    """Asks the model's questions on the terminal while the view is suspended."""

    def __init__(self, view: View) -> None:
        self._view = view

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        """Return the answer: the default for an empty line, None at the end of input."""
        with self._view.suspended():
            sys.stdout.write(f"\n{inert(question, lines=True)}\n")
            for number, option in enumerate(options, 1):
                sys.stdout.write(f"  {number}. {inert(option)}\n")
            sys.stdout.write(f"[{inert(default)}] > ")
            sys.stdout.flush()
            line = sys.stdin.readline()
        if not line:
            return None
        answer = line.strip()
        if answer.isdigit() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1]
        return answer or default


class TerminalApprover:
    """Shows a specification and asks for its approval."""

    def __init__(self, context: CommandContext, settings: Settings, store: SessionStore, view: View) -> None:
        self._context = context
        self._settings = settings
        self._store = store
        self._view = view

    def approve(self, spec: Specification) -> bool:
        """Return True only if the person approves this specification now."""
        from lopen.application.approval import record, show
        from lopen.application.estimate import tell

        if enclosing_session() is not None:
            return False
        with self._view.suspended():
            show(self._context, spec, self._store.approval(spec.module))
            tell(self._context, spec, self._store, self._settings)
            if not yes(f"approve {spec.module} and build it?"):
                return False
        record(self._store, spec, "approved at the terminal")
        return True


def person_for(context: CommandContext, settings: Settings, view: View) -> Person:
    """Return the person at the terminal; nobody if the run is unattended or has no terminal."""
    if settings.workflow.unattended or context.json or not at_terminal():
        return Nobody()
    return TerminalPerson(view)


def approver_for(context: CommandContext, settings: Settings, store: SessionStore, view: View) -> Approver:
    """Return the person at the terminal who may approve; nobody if the run is unattended or has no terminal."""
    if settings.workflow.unattended or context.json or not at_terminal():
        return NoApprover()
    return TerminalApprover(context, settings, store, view)


def view_for(
    context: CommandContext,
    options: ResumeOptions,
    redact: Callable[[str], str],
    running: list[SessionContext],
) -> View:
    """Return the view for standard output and the options. `running` gets the session's loop once it exists."""
    mode = mode_for(sys.stdout, json=context.json, quiet=options.quiet)
    color = not options.no_color and not os.environ.get("NO_COLOR")
    return subscriber(
        mode,
        sys.stdout,
        snapshot=lambda: _snapshot(running),
        redact=redact,
        color=color,
        verbose=context.verbose,
    )


def _snapshot(running: list[SessionContext]) -> Snapshot:
    from lopen.cli.rendering.frame import Snapshot

    if not running:
        return Snapshot()
    loop = running[0]
    state = next((s for s in loop.guards.meter.states() if s.budget_type == "session"), None)
    return Snapshot(
        tree=loop.record.journal.session.tree,
        tokens=state.tokens_used if state else None,
        token_limit=state.max_tokens if state else 0,
        cost_usd=state.cost_usd if state else None,
        cost_limit_usd=loop.settings.budget.max_cost_usd,
    )
