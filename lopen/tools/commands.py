"""Run commands, and restore and report what they change in protected places.

A sandbox with read-only protected paths needs none of this. Without a sandbox and under Landlock it is the protection
(docs/reference/sandbox.md).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lopen.core.errors import LopenError
from lopen.core.events import AlertRaised, Event
from lopen.core.stat_cache import signature_at
from lopen.git.checkout import Checkout
from lopen.git.errors import GitTimedOut
from lopen.git.protection import NO_TAMPERING, ProtectedState, Tampering
from lopen.git.stored_objects import as_of
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.sandbox.protected import ProtectedPaths, RestoreFailed
from lopen.store.folder import DATABASE, require_plain
from lopen.store.journal import Journal
from lopen.tools.forged_records import Records
from lopen.tools.left_files import LeftFiles, clear_left_files

_SAME_SPAN_NS = 20_000_000
_TICK_NS = 50_000_000  # of the clocks of files

Runs = Callable[[Command], CommandResult]


class ObjectsVanished(LopenError):
    """A command deleted part of the repository's history, so lopen cannot continue."""


@dataclass
class Commands:
    """Runs the commands of one session."""

    sandbox: Sandbox
    repository: Checkout
    protected: ProtectedPaths
    journal: Journal
    restored: tuple[str, ...] = ()  # by the last command
    watched: tuple[Path, ...] = ()  # lopen's files whose changes by commands are only reported
    carried: tuple[
        Path, ...
    ] = ()  # the person's files that verify commands are shown: no command changes them
    unchecked: Path | None = None  # a file that says since when git's objects are not checked

    def __post_init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        self._earlier_spans: list[tuple[int, int]] = []  # whose left files are cleared
        session = self.journal.session
        self._database = self.protected.state / DATABASE
        self._records = Records(self.journal.database, session.id, session.module)

    def run(self, command: Command) -> CommandResult:
        """Run a command; restore and report the protected paths that it changed, and list them in `restored`."""
        with self.guarded() as run:
            return run(command)

    @contextmanager
    def guarded(self, *, confined: bool = True) -> Iterator[Runs]:
        """Yield what runs commands, also side by side; at its end do for all of them what `run` does for one.

        `confined`: nothing else but commands in the sandbox changes files meanwhile.
        """
        self.restored = ()
        started = time.time_ns()
        files = self.protected.snapshot()
        # Under bubblewrap .git is read-only, and a command can only add a specification.
        protects_git = confined and self.sandbox.name == "bwrap"
        state = (
            None
            if protects_git and not self.repository.has_several_git_folders()
            else self.repository.protected_state()
        )
        exposed = (*self.repository.read_only_paths(), *map(str, self.carried))
        database, watched = _identity(self._database), [*map(_identity, self.watched)]
        if not protects_git:
            self._records.begin()
        if state is not None and self.unchecked is not None:
            self.unchecked.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            digests = {name: entry.digest for name, entry in files.items()}
            self.unchecked.write_text(json.dumps({"since": started, "files": digests}))
        try:
            yield lambda command: self.sandbox.run(replace(command, guarded=exposed) if exposed else command)
        finally:
            self.note_change(started)
            tampering, failure = NO_TAMPERING, None
            try:
                tampering = self._put_back(state) if state is not None else NO_TAMPERING
            except LopenError as error:  # raised once the specifications are put back and reported
                failure = error
            self.restored = (*self.protected.restore(files), *tampering.restored)
            if not protects_git:  # before lopen writes there again
                require_plain(self.protected.state)
                if _identity(self._database) != database:
                    raise RestoreFailed(
                        f"a command moved or replaced {self._database}",
                        hint="move it back if it still exists, then: lopen resume",
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
            if failure is not None:
                raise failure
            _require_objects(tampering)

    def _put_back(self, state: ProtectedState, *, settled: bool = True) -> Tampering:
        found = self.repository.restore_protected(state)
        if settled and self.unchecked is not None:
            self.unchecked.unlink(missing_ok=True)
        return found

    def changed_since_killed(self) -> tuple[str, ...]:
        """Return the protected files that changed since a run was killed in the middle of a command."""
        before = self._killed().get("files", {})
        now = {name: entry.digest for name, entry in self.protected.snapshot().items()} if before else {}
        return tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))

    def _killed(self) -> dict[str, Any]:
        """Return what the last command of a killed run began with, {} if none was running."""
        if self.unchecked is None or not self.unchecked.is_file():
            return {}
        try:
            return dict(json.loads(self.unchecked.read_text("utf-8")))
        except ValueError:  # killed while it wrote this
            return {"since": 0}

    def check_killed(self, *, settled: bool) -> None:
        """Check the objects that commands of a killed run stored in git, if it was killed before it could do that.

        `settled`: what changed since is known to the person, or is nothing; else the next run asks again.
        """
        killed = self._killed()
        if self.unchecked is None or not killed:
            return
        now, since = self.repository.protected_state(), int(killed["since"])
        objects, shadow = (found and as_of(found, since) for found in (now.objects, now.shadow))
        try:
            tampering = self._put_back(replace(now, objects=objects, shadow=shadow), settled=settled)
        except GitTimedOut as error:  # what lopen decides by is also checked when it is read
            self.journal.tell(
                self._alert(f"what a killed run's commands stored in git is not checked: {error}")
            )
            if settled:
                self.unchecked.unlink(missing_ok=True)
            return
        if tampering.restored:
            listed = ", ".join(tampering.restored)
            self.journal.tell(
                self._alert(f"a killed run's command stored untrue objects; put back: {listed}")
            )
        _require_objects(tampering)

    def note_change(self, since_ns: int) -> None:
        """Note that files were changed from then until now by a command or a tool."""
        now = time.time_ns()
        if self._spans and since_ns - self._spans[-1][1] < _SAME_SPAN_NS:
            since_ns = self._spans.pop()[0]
        self._spans.append((since_ns, now))

    def changing_at(self, at: float) -> bool:
        """Return True if a command or a tool of this process was changing files at `at`, in seconds since 1970."""
        spans = (*self._earlier_spans, *self._spans)
        return any(since - _TICK_NS <= at * 1e9 <= until + _TICK_NS for since, until in spans)

    def clear_left_files(self) -> LeftFiles:
        """Find what commands left where no commit shows it; remove what runs by itself."""
        spans, self._spans = tuple(self._spans), []
        self._earlier_spans += spans
        kept = self.repository.configured_paths()
        return clear_left_files(self.repository.root, self.repository, spans, kept=kept)

    def close(self) -> None:
        """Close the database after the last command."""
        self._records.close()

    def _alert(self, message: str) -> Event:
        return AlertRaised("protected_path", f"session:{self.journal.session.id}", message)


def _require_objects(tampering: Tampering) -> None:
    if tampering.objects_vanished:
        raise ObjectsVanished(
            "a command deleted objects of the git repository",
            hint="git fsck shows the missing objects; fetch them from another clone, then: lopen resume",
        )


def _identity(path: Path) -> tuple[int, ...]:
    """Return the device and inode of the file, () if there is none."""
    return signature_at(path)[:2]
