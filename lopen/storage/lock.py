"""Who works on what: a lock a module (and a checkout), naming its holder. The only importer of `filelock`.

The operating system lets go of the lock when its holder dies, so a dead one's lock is simply there to take.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lopen.errors import LopenError
from lopen.sandbox.ancestry import start_time
from lopen.storage.database import StorageError
from lopen.storage.files import write_whole


class Locked(LopenError):
    """Another process works there."""


def holder(folder: Path, name: str) -> dict[str, object]:
    """Who holds (or last held) the lock: `pid`, `host` and when it `started`; empty if nobody ever did."""
    try:
        found = json.loads((folder / f"{name}.holder").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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
        me = {"pid": os.getpid(), "started": start_time(os.getpid()), "host": socket.gethostname()}
        write_whole(folder / f"{name}.holder", json.dumps(me))
        yield
    finally:
        lock.release()
