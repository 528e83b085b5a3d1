"""Who works on what: a lock a module (and a checkout), naming its holder. The only importer of `filelock`.

The operating system lets go of the lock when its holder dies, so a dead one's lock is simply there to take.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lopen.base.atomic_files import store_text
from lopen.base.errors import LopenError, StorageError
from lopen.base.owner_seal import holds, sealed
from lopen.base.process_identity import lives, start_time
from lopen.settings.files import read_foreign
from lopen.storage.folder import state_folder

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Locked(LopenError):
    """Another process works there."""


def holder(folder: Path, name: str) -> dict[str, object]:
    """Who holds (or last held) the lock: `pid`, `host` and when it `started`; empty if nobody ever did.

    Only what this person's lopen wrote since the machine was started counts: a file that came with a repository
    could name any process.
    """
    try:
        found = json.loads(read_foreign(folder / f"{name}.holder") or "{}")
    except (LopenError, ValueError, RecursionError):
        return {}
    seal = found.pop("seal", "") if isinstance(found, dict) else ""
    return found if seal and holds(seal, *_sealed_parts(name, found)) else {}


def at_work(who: Mapping[str, object]) -> bool:
    """Whether a lock's `holder` still lives."""
    pid, started = who.get("pid"), who.get("started")
    return isinstance(pid, int) and lives(pid, started if isinstance(started, int) else None)


def _sealed_parts(name: str, who: dict[str, object]) -> tuple[str, ...]:
    return "lock holder", name, _boot(), json.dumps(who, sort_keys=True)


def _boot() -> str:
    """Which start of the machine this is; start times of processes count from there. "" where that is not told."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return ""


@contextmanager
def held(folder: Path, name: str, what: str, *, wait_s: float = 0) -> Iterator[None]:
    """Hold the lock `name` in `folder`; `Locked` names the other holder's pid and host if taken (after `wait_s`)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{name}.lock", timeout=wait_s)
        lock.acquire()
    except Timeout as error:
        who = holder(folder, name)
        raise Locked(
            f"{what} is being worked on by process {who.get('pid', '?')} on {who.get('host', '?')}",
            hint="wait until it ends, or stop that process",
        ) from error
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror or error}", hint="make the folder writable") from error
    try:
        me: dict[str, object] = {
            "pid": os.getpid(),
            "started": start_time(os.getpid()),
            "host": socket.gethostname(),
        }
        seal = sealed(*_sealed_parts(name, me))
        store_text(folder / f"{name}.holder", json.dumps(me | {"seal": seal}))
        yield
    finally:
        lock.release()


@contextmanager
def alone(root: Path, module: str, *, checkout: bool = False) -> Iterator[None]:
    """Nobody else works on the module meanwhile (nor, with `checkout`, in these files); `Locked` where one does."""
    locks = state_folder(root) / "locks"
    with ExitStack() as stack:
        stack.enter_context(held(locks, f"module-{module}", f"module {module}"))
        if checkout:
            stack.enter_context(held(locks, "checkout", "this checkout"))
        yield
