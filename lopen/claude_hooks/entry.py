"""`lopen hook EVENT`: an event's JSON on standard input, the answer as JSON on standard output.

A failure of the guard itself allows the call, is logged and is told to the person; but a call that lopen cannot
read in time is refused, for the model chose it. An event that lopen does not know is allowed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import BinaryIO, TextIO

from lopen.claude_hooks.answers import EVENTS, Answer, written
from lopen.claude_hooks.event import LARGEST, MARK, HookEvent, Malformed, parse
from lopen.claude_hooks.guard import SessionGuard
from lopen.claude_hooks.protect import forbidden
from lopen.claude_hooks.settings import HookSettings
from lopen.core.errors import LopenError, StoreUnreachable
from lopen.core.files import locked_folder
from lopen.core.person import cache_folder
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore, Rows
from lopen.store.database import Database, ForeignDatabase, UnreadableDatabase
from lopen.store.folder import quarantine_file

SESSIONS_REMEMBERED = 500  # whose lines are known as said
UNREAD_CALL = (
    "lopen cannot tell in time what this call does, and so not whether it changes a protected place.\n"
    "Give it in shorter parts, or ask the person to give it."
)


class HookTimedOut(BaseException):
    """The hook took too long. No `except Exception` in between may swallow it."""


def main(argv: Sequence[str], stdin: BinaryIO, stdout: TextIO, stderr: TextIO) -> int:
    """Answer the event that `argv` names; return the exit code."""
    if len(argv) != 1 or argv[0] not in EVENTS:
        given = " ".join(argv)[:100]
        stderr.write(f"lopen hook: not an event of lopen's: {given}; known: {', '.join(EVENTS)}\n")
        return 0
    name, session = argv[0], ""
    faults: tuple[str, ...] = ()
    root = ""
    try:
        root = project_root(os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
        settings = HookSettings(root)
        faults = settings.faults
        with _time_limit(settings["hooks"]["timeout_s"]):
            event = parse(stdin.read(LARGEST + 1), name)
            session = event.session
            answer = answered(name, event, root, settings)
    except HookTimedOut:
        answer = Answer(log=("the hook took too long; nothing is held back",))
    except (Malformed, LopenError) as error:
        answer = Answer(log=(f"{error}; nothing is held back",))
    except Exception as error:  # noqa: BLE001 - a fault of the guard itself must not stop anyone's work
        answer = Answer(log=(f"{type(error).__name__}: {error}; nothing is held back",))
    news = _news((*faults, *answer.log), root, session)
    _log(news, root, stderr)
    told = tuple(f"lopen: {line}" for line in news)
    stdout.write(written(name, replace(answer, tell=(*answer.tell, *told))))
    if name == "session-start" and session:
        stdout.flush()
        _clean(root)
    return 0


def answered(name: str, event: HookEvent, root: str, settings: HookSettings) -> Answer:
    """Return the answer to an event, with its effects on the session stored."""
    if name == "pre-tool-use":
        try:
            reason = forbidden(event.call.tool, event.call.arguments, event.cwd or root)
        except (HookTimedOut, RecursionError, MemoryError):
            reason = UNREAD_CALL
        if reason:
            return Answer(reason)
    now = datetime.now(UTC)
    nested_in = os.environ.get(MARK)
    os.environ[MARK] = nested_in or event.session  # for processes that this hook starts

    def work(rows: Rows) -> Answer:
        return SessionGuard(rows, event, settings, now, root, nested_in).run(name)

    if not os.path.isdir(os.path.join(root, ".lopen")):
        raise StoreUnreachable(f"{root} has no .lopen folder (lopen init makes one)")
    path = Path(root, ".lopen", "state.db")
    database, notes = open_database(path, settings["hooks"]["timeout_s"] / 2)
    with closing(database), closing(_store(database, settings, root)) as store:
        answer = store.atomically(work)
    return replace(answer, log=(*notes, *answer.log))


def _store(database: Database, settings: HookSettings, root: str) -> LimitsStore:
    if settings["budget"]["store"] == "sqlite":
        return SqliteStore(database, evidence_max=settings["memory"]["evidence_max"])
    from lopen.limits.opening import open_limits
    from lopen.settings.sources import load

    return open_limits(load(Path(root)).settings, database)


def open_database(path: Path, timeout_s: float) -> tuple[Database, tuple[str, ...]]:
    """Open the database; set one aside that is damaged or came with the repository. Return also what to say."""
    try:
        return Database(path, timeout_s=timeout_s), ()
    except (UnreadableDatabase, ForeignDatabase):
        pass
    with locked_folder(path.parent):
        try:
            return Database(path, timeout_s=timeout_s), ()  # another hook was quicker
        except (UnreadableDatabase, ForeignDatabase) as error:
            kept = quarantine_file(path, path.parent)
            said = f"{error.message}: it is kept as {kept}, and counting begins anew"
            return Database(path, timeout_s=timeout_s), (said,)


def project_root(start: str) -> str:
    """Return the nearest folder upwards with .lopen or .git that belongs to the user; else `start`."""
    here = Path(os.path.realpath(start))
    for folder in (here, *here.parents):
        for name in (".lopen", ".git"):
            with suppress(OSError):
                if (folder / name).lstat().st_uid == os.getuid():
                    return str(folder)
    return str(here)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `HookTimedOut` after so long."""

    def late(number: int, frame: FrameType | None) -> None:
        raise HookTimedOut

    before: Callable[[int, FrameType | None], object] | int | None = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _clean(root: str) -> None:
    """Clean the project's state, as the start of one of lopen's own sessions does, as far as the time allows."""
    from lopen.claude_hooks.upkeep import clean  # slow to load, and seldom wanted

    with suppress(HookTimedOut), _time_limit(HookSettings(root)["hooks"]["timeout_s"]):
        clean(root)


def _news(lines: Sequence[str], root: str, session: str) -> list[str]:
    """Return the lines that the person has not been told in this session; remember them as told."""
    name = blake2b(f"{root}\0{session}".encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    folder = Path(cache_folder() or os.devnull, "hooks", "said")
    news = list(lines)
    if not lines:
        return news
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)[:-SESSIONS_REMEMBERED]:
            old.unlink(missing_ok=True)
        with (folder / name).open("a+", encoding="utf-8", errors="surrogateescape") as file:
            file.seek(0)
            known = set(file.read().splitlines())
            news = [line for line in lines if line.splitlines()[0] not in known]
            file.writelines(f"{line.splitlines()[0]}\n" for line in news)
    return news


def _log(lines: Sequence[str], root: str, stderr: TextIO) -> None:
    """Write to standard error, and to the project's log if there is one."""
    for line in lines:
        stderr.write(f"lopen hook: {line}\n")
    if lines and os.path.isdir(os.path.join(root, ".lopen")):
        from lopen.claude_hooks.upkeep import logged  # slow to load, and seldom wanted

        logged(lines, root)
