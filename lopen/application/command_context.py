"""The context of a command: its project, settings, options and output, and the way it shows a run and asks a person."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lopen.core.errors import WrongUsage
from lopen.core.escape import inert
from lopen.core.wrapping import width_of, wrapped

if TYPE_CHECKING:
    from lopen.core.events import Recorded
    from lopen.limits.store import LimitsStore
    from lopen.loop.context import Approver, SessionContext
    from lopen.models.retry import SharedPace
    from lopen.settings.schema import Settings
    from lopen.settings.sources import Loaded
    from lopen.store.database import Database
    from lopen.store.sessions import SessionStore
    from lopen.tools.questions import Person


@dataclass(frozen=True)
class ResumeOptions:
    """The options of a command that resumes a session."""

    prompt: str = ""
    model: str = ""
    unattended: bool = False
    max_iterations: int | None = None
    max_cost: float | None = None  # USD; 0 means no limit
    quiet: bool = False
    no_color: bool = False
    sandbox: str = ""
    allow_network: bool = False
    record: bool | None = None
    group: str = ""  # of the modules that are built together

    def flags(self) -> dict[str, Any]:
        """Return the given options as settings; raise `WrongUsage` for an unknown sandbox."""
        if self.sandbox and self.sandbox not in ("auto", "bwrap", "landlock", "none"):
            raise WrongUsage(f"--sandbox {self.sandbox}: choose auto, bwrap, landlock or none")
        given: dict[str, Any] = {
            "workflow.unattended": True if self.unattended else None,
            "workflow.max_iterations": self.max_iterations,
            "budget.max_cost_usd": self.max_cost,
            "sandbox.mode": self.sandbox or None,
            "sandbox.network": True if self.allow_network else None,
            "workflow.record": self.record,
        }
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class RunOptions(ResumeOptions):
    """The options of a command that may start a session."""

    new: bool = False


class View:
    """A subscriber that shows events on a stream until it is closed; this one shows nothing."""

    def __call__(self, recorded: Recorded) -> None:
        """Show the event."""

    def shows(self, text: str) -> bool:
        """Show other text than an event's; return False if the caller can print it."""
        return False

    def suspended(self) -> AbstractContextManager[None]:
        """Leave the terminal to a prompt for the time of the context."""
        return nullcontext()

    def close(self) -> None:
        """Restore the stream. May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Presentation:
    """A shell's way to show a run and to ask the person; this one shows nothing and asks nobody."""

    def view(
        self,
        context: CommandContext,
        options: ResumeOptions,
        redact: Callable[[str], str],
        running: list[SessionContext],
    ) -> View:
        """Return the view that shows the run. `running` gets the session's loop once there are any."""
        return View()

    def person(self, context: CommandContext, settings: Settings, view: View) -> Person:
        """Return the person who answers the model's questions."""
        from lopen.tools.questions import Nobody

        return Nobody()

    def approver(
        self, context: CommandContext, settings: Settings, store: SessionStore, view: View
    ) -> Approver:
        """Return the person who may approve a specification."""
        from lopen.loop.context import NoApprover

        return NoApprover()

    def confirms(self, question: str) -> bool | None:
        """Ask a yes-or-no question; return None if nobody can be asked."""
        return None

    def shows(self, text: str) -> bool:
        """Show text above a live view; return False if there is none, and the caller prints it."""
        return False


@dataclass(frozen=True)
class CommandContext:
    """One run of one command."""

    root: Path
    json: bool = False
    verbose: bool = False
    presentation: Presentation = field(default_factory=Presentation)
    given: str = ""  # the folder of -C, as it was typed
    program: str = "lopen"  # what starts lopen, for a shell
    limits: Callable[[Settings, Database], LimitsStore] | None = None  # None: the settings' store
    pace: SharedPace | None = None  # None: that store's

    @property
    def has_queue(self) -> bool:
        """True where builds may be in a queue that this installation can read."""
        return has_queue(self.root, self.load().settings)

    def load(self, flags: Mapping[str, Any] | None = None) -> Loaded:
        """Return the effective settings."""
        from lopen.settings.sources import load

        return load(self.root, flags=flags)

    def say(self, text: str, *, quoted: bool = False) -> None:
        """Print text for people, with control characters escaped; nothing with `--json`.

        In `quoted` text, such as a diff, no command is lopen's.
        """
        shown = inert(text, lines=True)
        shown = shown if quoted else self.typed(shown)
        if not self.json and not self.presentation.shows(shown):
            _write(sys.stdout, shown if quoted else wrapped(shown, width_of(sys.stdout)))

    def typed(self, text: str) -> str:
        """Return text whose commands of lopen can be pasted where the person is."""
        return with_project(text, self.given, self.program)

    def warn(self, text: str) -> None:
        """Print a warning: for people on standard error, for programs as an event `notice`."""
        shown = self.typed(f"warning: {inert(text, lines=True)}")
        if self.json:
            self.emit("notice", level="warning", message=text)
        elif not self.presentation.shows(shown):
            _write(sys.stderr, wrapped(shown, width_of(sys.stderr)))

    def emit(self, event: str, *, session: str = "", **fields: Any) -> None:
        """Print one line for programs if `--json` is given: `ts`, `event`, `session`, then the fields."""
        if self.json:
            _write(sys.stdout, json_line(event, session=session, **fields))


def has_queue(root: Path, settings: Settings) -> bool:
    """Return True where builds may be in a queue that this installation can read: it needs an extra."""
    used = settings.queue.url or (root / ".lopen" / "queue.db").exists()
    return bool(used) and find_spec("sqlalchemy") is not None


COMMAND = re.compile(r"(^ *|: )lopen (?=[a-z])", re.MULTILINE)


def with_project(text: str, given: str, program: str = "lopen") -> str:
    """Return text for people whose commands of lopen name the program and the project that -C gave."""
    typed = f"{program} -C {shlex.quote(given)}" if given else program
    return COMMAND.sub(lambda found: f"{found[1]}{typed} ", text) if typed != "lopen" else text


def json_line(event: str, *, session: str = "", **fields: Any) -> str:
    """The shape of every line on standard output under `--json`."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"ts": now, "event": event, "session": session} | fields, default=str)


def _write(stream: Any, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def find_root(start: Path) -> Path:
    """Return the project of `start`: the nearest folder with `.lopen/` or `.git`, else `start` itself.

    Folder and marker must belong to the user. A marker that somebody else left in a shared parent (`/tmp`) must not
    choose the configuration.
    """
    start = Path(os.path.realpath(start))
    return next((folder for folder in (start, *start.parents) if is_root(folder)), start)


def is_root(folder: Path) -> bool:
    """True for a folder of the user with `.lopen/` or `.git`."""
    return any(
        _is_own(marker) and (marker.name == ".git" or marker.is_dir()) and _is_own(folder)
        for marker in (folder / ".lopen", folder / ".git")
    )


TO_START = "to start one: lopen init MODULE"


def nothing_here(folder: Path) -> str:
    """Return why a folder has no module to build."""
    return "no modules yet" if is_root(folder) else "there is no project here"


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False
