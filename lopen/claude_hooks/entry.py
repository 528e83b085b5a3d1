"""`lopen hook EVENT`: an event's JSON on standard input, the answer as JSON on standard output.

Whatever fails in the guard itself allows the call, is logged and is said to the person; but a call that lopen cannot
read in time is refused, for the model chose it. An event that lopen does not know is allowed. Loaded before anything
heavy: only the standard library, and no more of it than is used.
"""

from __future__ import annotations

import os
import sys

from lopen.claude_hooks import config, pending_usage
from lopen.claude_hooks.event import LARGEST, MARK, READ_TOOLS, HookEvent, Malformed, nested_in, parse
from lopen.claude_hooks.guard import SessionGuard
from lopen.claude_hooks.hook_output import ALLOWED, EVENTS, Answer, written
from lopen.claude_hooks.session import HookSession
from lopen.claude_hooks.time_limit import HookTimedOut, allow, arm, nothing
from lopen.claude_hooks.verify_commands import verify_commands
from lopen.core.errors import LopenError, StoreUnreachable
from lopen.core.hashing import blake2b
from lopen.core.person import cache_folder
from lopen.core.quick_stdlib import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO, NoReturn, TextIO

    from lopen.limits.redis_store import RedisStore
    from lopen.limits.store import Rows


MOST_SAID = 500  # lines that are remembered as said
READ_WITHIN_S = 2.0  # a call; the store's time begins after it, so that no call uses it up
UNREAD_CALL = (
    "lopen cannot tell in time what this call does, and so not whether it changes a protected place.\n"
    "Give it in shorter parts, or ask the person to give it."
)


def main(
    argv: Sequence[str],
    stdin: TextIO | BinaryIO,
    stdout: TextIO,
    stderr: TextIO,
    *,
    leaving: bool = False,
) -> int:
    """Answer one event. `argv`: the event's name. Gives the exit code.

    `leaving`: the process ends right after (see `LeanDatabase.leave`).
    """
    if len(argv) != 1 or argv[0] not in EVENTS:
        stderr.write(
            f"lopen hook: not an event of lopen's: {' '.join(argv)[:100]}; known: {', '.join(EVENTS)}\n"
        )
        return ALLOWED
    root = ""
    disarm = nothing
    attempt = _Attempt()
    try:
        root = project_root(os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())
        settings, attempt.faults = config.load(root, os.environ)
        disarm = arm(settings["hooks.timeout_s"])
        answer, plain = answered(argv[0], stdin, root, settings, attempt, leaving)
    except HookTimedOut:
        answer, plain = Answer(log=("the hook took too long; nothing is held back",)), False
    except Malformed as error:
        answer, plain = Answer(log=(f"{error}; nothing is held back",)), False
    except Exception as error:  # noqa: BLE001 - a fault of the guard itself must not stop anyone's work
        answer, plain = Answer(log=(f"{type(error).__name__}: {error}; nothing is held back",)), False
    finally:
        disarm()
    lines = (*answer.log, *attempt.owe(root))
    _log(lines, root, stderr)
    told = tuple(f"lopen: {line}" for line in lines if _is_news(line, root, attempt.session))
    code, out, err = written(argv[0], answer.replace(tell=(*answer.tell, *told)), plain=plain)
    stdout.write(out)
    stderr.write(err)
    if argv[0] == "session-start" and os.path.isdir(os.path.join(root, ".lopen")):
        _tidy(root)
    return code


class _Attempt:
    """The part of an event that outlives a failure: its tokens, until a store took them."""

    def __init__(self) -> None:
        self.id = os.urandom(8).hex()
        self.session = ""
        self.event: HookEvent | None = None
        self.faults: tuple[str, ...] = ()

    def owe(self, root: str) -> tuple[str, ...]:
        """Keep the tokens of an event that came to no end; what is to be logged."""
        if self.event is None or not self.event.usage:
            return ()
        if not os.path.isdir(os.path.join(root, ".lopen")):
            return ()
        counts = self.event.usage.counts
        try:
            pending_usage.keep(
                root, pending_usage.Owed(self.id, self.event.session, self.event.model, counts)
            )
        except OSError as error:
            return (f"the tokens of this event are lost: {error.strerror or error}",)
        return ("the tokens of this event are counted with the next event or command",)


def answered(
    name: str,
    stdin: TextIO | BinaryIO,
    root: str,
    settings: dict[str, Any],
    attempt: _Attempt,
    leaving: bool = False,
) -> tuple[Answer, bool]:
    """The answer, and whether it is wanted in the plain shape."""
    raw = getattr(stdin, "buffer", stdin).read(LARGEST + 1)
    event = parse(raw.encode() if isinstance(raw, str) else raw, name)
    attempt.session = event.session
    if name == "pre-tool-use" and event.tool not in READ_TOOLS:
        reason = _forbidden(event, root)
        if reason:
            return Answer(reason), event.plain
        allow(settings["hooks.timeout_s"])
    attempt.event = event
    try:
        return _guarded(name, event, settings, attempt, root, leaving), event.plain
    except LopenError as error:
        return Answer(log=(f"{error.message}; nothing is held back",)), event.plain


def _forbidden(event: HookEvent, root: str) -> str:
    """Why the call may not be made; empty where it may."""
    from lopen.claude_hooks import protect

    allow(READ_WITHIN_S)
    try:
        return protect.forbidden(event.tool, event.arguments, event.cwd or root, root)
    except (HookTimedOut, RecursionError, MemoryError):
        return UNREAD_CALL


def _guarded(
    name: str, event: HookEvent, settings: dict[str, Any], attempt: _Attempt, root: str, leaving: bool
) -> Answer:
    now = datetime.now(UTC)
    nested = nested_in(os.environ)
    os.environ[MARK] = nested or event.session  # for what this hook starts
    waits = pending_usage.waiting(root)
    verifiable = next(verify_commands(root), None) is not None

    def work(rows: Rows) -> Answer:
        alerts = pending_usage.count(rows, waits, settings, now)
        session = HookSession(rows, event, settings, now, attempt.id, verifiable=verifiable)
        guard = SessionGuard(session, root, attempt.faults, nested)
        return guard.run(name, alerts.get(event.session, ()))

    try:
        answer = _stored(work, settings, root, leaving=leaving)
    except Malformed:
        attempt.event = None  # nothing of it is a Claude Code session's
        raise
    attempt.event = None
    pending_usage.forget(root, waits)
    return answer


def _stored(work: Callable[[Rows], Answer], settings: dict[str, Any], root: str, *, leaving: bool) -> Answer:
    """Do the work in the store; in a new one where the present one turns out to be damaged."""
    if settings["budget.store"] != "sqlite":
        redis = _redis(settings, root)
        try:
            return redis.atomically(work)
        finally:
            redis.close()
    if not os.path.isdir(os.path.join(root, ".lopen")):
        raise StoreUnreachable(f"{root} has no .lopen folder (lopen init makes one)")
    from lopen.claude_hooks.connection import LeanDatabase, is_damage
    from lopen.limits.sqlite_store import SqliteStore

    path, notes = os.path.join(root, ".lopen", "state.db"), tuple[str, ...]()
    for last in (False, True):
        database = LeanDatabase(path, settings["hooks.timeout_s"] / 2)
        notes = (*notes, *database.notes)
        try:
            answer = SqliteStore(database, evidence_max=settings["memory.evidence_max"]).atomically(work)
            return answer.replace(log=(*notes, *answer.log))
        except StoreUnreachable as error:
            if last or not is_damage(error.__cause__):
                raise
            notes = (*notes, *database.set_aside(error.__cause__))
        finally:
            database.leave() if leaving else database.close()
    raise StoreUnreachable(path)


def _redis(settings: dict[str, Any], root: str) -> RedisStore:
    from lopen.limits.redis_store import RedisStore, project_prefix

    return RedisStore(
        settings["budget.store"],
        prefix=project_prefix(settings["budget.key_prefix"], root),
        ttl_s=settings["budget.ttl_s"],
        answer_s=max(0.5, settings["hooks.timeout_s"] / 4),
        operation_s=settings["hooks.timeout_s"],
        evidence_max=settings["memory.evidence_max"],
    )


def project_root(start: str) -> str:
    """The nearest folder upwards with .lopen or .git that belongs to the user; else `start`."""
    here = os.path.realpath(start)
    while True:
        for name in (".lopen", ".git"):
            try:
                if os.lstat(os.path.join(here, name)).st_uid == os.getuid():
                    return here
            except OSError:
                continue
        above = os.path.dirname(here)
        if above == here:
            return os.path.realpath(start)
        here = above


def _tidy(root: str) -> None:
    """A session starts: another process cleans the project's state, as at the start of one of lopen's own sessions."""
    argv = [sys.executable, "-P", "-m", "lopen.claude_hooks.upkeep", root]
    nowhere = [(os.POSIX_SPAWN_OPEN, i, os.devnull, os.O_RDWR, 0) for i in range(3)]
    try:
        os.posix_spawn(sys.executable, argv, os.environ, file_actions=nowhere, setsid=True)
    except OSError:
        return  # the next session's start takes it up


def _is_news(line: str, root: str, session: str) -> bool:
    """Tell whether the person has not been told this in this session yet."""
    here = os.path.isdir(os.path.join(root, ".lopen"))
    cache = os.path.join(root, ".lopen", "cache") if here else cache_folder()
    if not cache:
        return True
    folder = os.path.join(cache, "said")
    mark = blake2b(f"{session}\0{line}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for old in (
            () if here else os.listdir(folder)[MOST_SAID:]
        ):  # a project's cache is kept small elsewhere
            os.unlink(os.path.join(folder, old))
        os.close(os.open(os.path.join(folder, mark), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _log(lines: Sequence[str], root: str, stderr: TextIO) -> None:
    """To standard error, and to the project's log where there is one to write."""
    for line in lines:
        stderr.write(f"lopen hook: {line}\n")
    if lines and root and os.path.isdir(os.path.join(root, ".lopen")):
        from lopen.claude_hooks.upkeep import logged  # slow to load, and seldom wanted

        logged(lines, root)


def run(arguments: Sequence[str]) -> NoReturn:
    """The process's own entry: answers, then leaves without the interpreter's slow goodbye."""
    code = main(arguments, sys.stdin, sys.stdout, sys.stderr, leaving=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
