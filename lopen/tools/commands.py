"""Run a session's commands, and put back what they changed in places of the person's (docs/reference/sandbox.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lopen.core.events import AlertRaised
from lopen.files.workplace import Workplace
from lopen.git.repository import Repository
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.store.journal import Journal

Runs = Callable[[Command], CommandResult]


@dataclass
class Commands:
    """Runs the commands of one session."""

    sandbox: Sandbox
    place: Workplace
    journal: Journal
    restored: tuple[str, ...] = ()  # by the last command

    @property
    def repository(self) -> Repository:
        """lopen's clone."""
        return self.place.repository

    def run(self, command: Command) -> CommandResult:
        """Run a command; put back and report the protected paths that it changed, and list them in `restored`."""
        if command.room is not None:
            return self.sandbox.run(command)
        self.restored = ()
        try:
            return self.sandbox.run(command)
        finally:
            self.restored = self.place.put_back(self.journal.session.module)
            if self.restored:
                message = f"a command changed protected paths; put back: {', '.join(self.restored)}"
                self.journal.tell(
                    AlertRaised("protected_path", f"session:{self.journal.session.id}", message)
                )
