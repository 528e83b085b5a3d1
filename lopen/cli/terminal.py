"""The person at the terminal: questions answered, a specification approved, where somebody is there to do it."""

from __future__ import annotations

import sys

from lopen.application.command_context import CommandContext, View
from lopen.base.escape import inert
from lopen.documents.spec import Specification
from lopen.loop.context import Approver, NoApprover
from lopen.sandbox.ancestry import under_session
from lopen.settings.schema import Settings
from lopen.storage.sessions import SessionStore
from lopen.tools.workbench import Nobody, Person


def at_terminal() -> bool:
    """Somebody sits there: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def yes(question: str) -> bool:
    """A yes or no; anything but yes is no."""
    sys.stdout.write(f"{inert(question)} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


class TerminalPerson:
    """Asks on the terminal, with the view out of the way."""

    def __init__(self, view: View) -> None:
        self._view = view

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        """Their answer; an empty line takes the default, the end of input answers nothing."""
        with self._view.suspended():
            sys.stdout.write(f"\n{inert(question, lines=True)}\n")
            for number, option in enumerate(options, 1):
                sys.stdout.write(f"  {number}. {inert(option)}\n")
            sys.stdout.write(f"[{inert(default)}] > ")
            sys.stdout.flush()
            line = sys.stdin.readline()
        if not line:
            return None
        said = line.strip()
        if said.isdigit() and 1 <= int(said) <= len(options):
            return options[int(said) - 1]
        return said or default


class TerminalApprover:
    """Shows what an approval stands for and asks for it."""

    def __init__(self, context: CommandContext, store: SessionStore, view: View) -> None:
        self._context = context
        self._store = store
        self._view = view

    def approve(self, spec: Specification) -> bool:
        """True only where the person said yes to this specification, here and now."""
        from lopen.application.approval import record, show

        if under_session() is not None:
            return False
        with self._view.suspended():
            show(self._context, spec)
            if not yes(f"approve {spec.module} and build it?"):
                return False
        record(self._store, spec, "approved at the terminal")
        return True


def person_for(context: CommandContext, settings: Settings, view: View) -> Person:
    """Whoever sits here and may be asked; nobody where the run is unattended or there is no terminal."""
    if settings.workflow.unattended or context.json or not at_terminal():
        return Nobody()
    return TerminalPerson(view)


def approver_for(context: CommandContext, settings: Settings, store: SessionStore, view: View) -> Approver:
    """Whoever sits here and may open the gate."""
    if settings.workflow.unattended or context.json or not at_terminal():
        return NoApprover()
    return TerminalApprover(context, store, view)
