"""Asks a person before verify-setup reaches the machine's loopback with files that the model changed.

Only where the sandbox has no network without the loopback. The files that decide what it installs are approved as they
are before anything is built; each later state waits for `lopen confirm`. docs/reference/sandbox.md
"""

from __future__ import annotations

from lopen.sandbox.command import Sandbox
from lopen.storage.journal import Journal
from lopen.tools.clean_room import CleanRoom
from lopen.workflow.pauses import confirmation_pause
from lopen.workflow.session import Pause

SETUP = "setup:"  # the hash of the files that decide follows
NEEDED = "verify-setup waits until a person has confirmed the changed dependency files"
_REASON = (
    "verify-setup would run with files that changed since the specification was approved, and here it reaches services "
    "on this machine; look at the dependency files and build scripts, then confirm"
)


class SetupApproval:
    """The approved states of one session's dependency files. Without a sandbox every state is approved."""

    def __init__(self, journal: Journal, room: CleanRoom, sandbox: Sandbox | None) -> None:
        self._journal = journal
        self._room = room
        self._sandbox = sandbox
        self.pause: Pause | None = None  # for what the last set-up waits

    def approve(self, tree: str, command: str | None) -> None:
        """Approve the state of `tree` if nothing is built yet."""
        session = self._journal.session
        if command is not None and self._asks and not any(True for _ in session.tree.tasks):
            subject = SETUP + self._room.setup_key(tree, command)
            if subject not in session.confirmed:
                self._journal.change(confirmed={**session.confirmed, subject: 1})

    @property
    def _asks(self) -> bool:
        return self._sandbox is not None and self._sandbox.install_network == "host"

    def holds(self, tree: str, command: str) -> bool:
        """Return True, with the reason in `pause`, if a person has to look at the state of `tree` first."""
        self.pause = None
        session = self._journal.session
        if self._asks:
            subject = SETUP + self._room.setup_key(tree, command)
            if subject not in session.confirmed:
                self.pause = confirmation_pause(session, subject, 1, _REASON)
        return self.pause is not None
