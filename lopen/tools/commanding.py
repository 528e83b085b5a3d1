"""Running commands beside what they may not touch: compared before and after, put back, and said.

A sandbox that makes protected paths read-only needs none of this; without one, and under Landlock, it is what
holds them (contract §13).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.errors import LopenError
from lopen.events import AlertRaised, Event
from lopen.git.checkout import Checkout
from lopen.git.protection import NOTHING
from lopen.journal import Journal
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.sandbox.protected import ProtectedLost, ProtectedPaths
from lopen.storage.folder import DATABASE, require_plain
from lopen.tools.records import Records


class ObjectsVanished(LopenError):
    """A command destroyed part of the repository's history: nothing goes on over that."""


@dataclass
class Commands:
    """The commands of one session."""

    sandbox: Sandbox
    repository: Checkout
    protected: ProtectedPaths
    journal: Journal
    restored: tuple[str, ...] = ()  # by the last command
    watched: tuple[
        Path, ...
    ] = ()  # lopen's files that no command has a reason to change, and that are only told

    def __post_init__(self) -> None:
        session = self.journal.session
        self._database = self.protected.state / DATABASE
        self._records = Records(self.journal.database, session.id, session.module)

    def run(self, command: Command) -> CommandResult:
        """Run it; what it changed of protected paths is put back, told, and kept in `restored`."""
        self.restored = ()
        files = self.protected.take()
        # Where the sandbox keeps .git from being written, only a new specification can appear.
        held = self.sandbox.name == "bwrap"
        state = None if held and not self.repository.scattered() else self.repository.protected_state()
        if exposed := self.repository.exposed():
            command = replace(command, guarded=exposed)
        database, watched = _identity(self._database), [*map(_identity, self.watched)]
        if not held:
            self._records.hold()
        try:
            return self.sandbox.run(command)
        finally:
            tampering = self.repository.put_back(state) if state is not None else NOTHING
            self.restored = (*self.protected.restore(files), *tampering.restored)
            if not held:  # before anything is written there again
                require_plain(self.protected.state)
                if _identity(self._database) != database:
                    raise ProtectedLost(
                        f"a command moved or replaced {self._database}",
                        hint="put it back if it still lies somewhere, then: lopen resume",
                    )
                if forged := self._records.check():
                    listed = ", ".join(forged)
                    self.journal.tell(self._alert(f"a command wrote to lopen's database; put back: {listed}"))
                    self.restored = (*self.restored, f".lopen/{DATABASE} ({listed})")
            if self.restored:
                listed = ", ".join(self.restored)
                self.journal.tell(self._alert(f"a command changed protected paths; put back: {listed}"))
            if lost := [str(p) for p, was in zip(self.watched, watched, strict=True) if _identity(p) != was]:
                listed = ", ".join(lost)
                self.journal.tell(self._alert(f"a command moved or replaced lopen's files: {listed}"))
            if tampering.objects_vanished:
                raise ObjectsVanished(
                    "a command deleted objects of the git repository",
                    hint="git fsck shows what is missing; fetch it from another clone before going on",
                )

    def close(self) -> None:
        """After the last command."""
        self._records.close()

    def _alert(self, said: str) -> Event:
        return AlertRaised("protected_path", f"session:{self.journal.session.id}", said)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies there; None for none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
