"""The command line's presentation of a run: views on standard output, questions at the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lopen.application.command_context import CommandContext, View
    from lopen.application.run_options import ResumeOptions
    from lopen.loop.context import Approver, SessionContext
    from lopen.settings.schema import Settings
    from lopen.storage.sessions import SessionStore
    from lopen.tools.workbench import Person


class TerminalPresentation:
    """Shows a run on standard output and asks whoever sits at the terminal. Imports what it needs when it is used."""

    def view(
        self,
        context: CommandContext,
        options: ResumeOptions,
        redact: Callable[[str], str],
        running: list[SessionContext],
    ) -> View:
        from lopen.cli.views import view_for

        return view_for(context, options, redact, running)

    def person(self, context: CommandContext, settings: Settings, view: View) -> Person:
        from lopen.cli.terminal import person_for

        return person_for(context, settings, view)

    def approver(
        self, context: CommandContext, settings: Settings, store: SessionStore, view: View
    ) -> Approver:
        from lopen.cli.terminal import approver_for

        return approver_for(context, settings, store, view)

    def confirms(self, question: str) -> bool | None:
        from lopen.cli.terminal import at_terminal, yes

        return yes(question) if at_terminal() else None
