"""Locks on modules and checkouts, each with a file that names its holder. The only importer of `filelock`.

The operating system releases a lock when its holder dies.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lopen.base.errors import LopenError, StorageError
from lopen.base.files import private_folder, read_foreign, store_text
from lopen.base.owner_seal import holds, sealed
from lopen.base.process_identity import lives, start_time
from lopen.storage.folder import state_folder

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Locked(LopenError):
    """Another process holds the lock."""


def lock_holder(folder: Path, name: str) -> dict[str, object]:
    """Return `pid`, `host` and `started` time of the current or last holder, and `released`; empty if there was none.

    Only a record that this user's lopen wrote since the machine booted counts: a file from a cloned repository
    could name any process.
    """
    try:
        found = json.loads(read_foreign(folder / f"{name}.holder") or "{}")
    except (LopenError, ValueError, RecursionError):
        return {}
    seal = found.pop("seal", "") if isinstance(found, dict) else ""
    return found if seal and holds(seal, *_sealed_parts(name, found)) else {}


def is_running(holder: Mapping[str, object]) -> bool:
    """Return True if the process of a `lock_holder` record still runs and has not released the lock."""
    pid, started = holder.get("pid"), holder.get("started")
    if holder.get("released") or not isinstance(pid, int):
        return False
    return lives(pid, started if isinstance(started, int) else None)


def module_holder(root: Path, module: str) -> dict[str, object]:
    """Return the `lock_holder` of a module."""
    return lock_holder(root / ".lopen" / "locks", f"module-{module}")


def is_worked_on(root: Path, module: str) -> bool:
    """Return True if a process drives the module now."""
    return is_running(module_holder(root, module))


def _sealed_parts(name: str, holder: Mapping[str, object]) -> tuple[str, ...]:
    return "lock holder", name, _boot_id(), json.dumps(holder, sort_keys=True)


def _boot_id() -> str:
    """Return the id of the machine's current boot (process start times count from there); "" if unknown."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


@contextmanager
def exclusive_lock(folder: Path, name: str, what: str, *, wait_s: float = 0) -> Iterator[None]:
    """Hold the lock `name` in `folder` within the context; wait up to `wait_s` seconds for it.

    Raises:
        Locked: another process holds it; the message names its pid and host, and `what` it works on.
        StorageError: the folder is not writable.
    """
    from filelock import FileLock, Timeout  # here: who holds a lock is asked by every `lopen status`

    try:
        private_folder(folder)
        lock = FileLock(folder / f"{name}.lock", timeout=wait_s, mode=0o600)
        lock.acquire()
    except Timeout as error:
        holder = lock_holder(folder, name)
        raise Locked(
            f"process {holder.get('pid', '?')} on {holder.get('host', '?')} is working on {what}",
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
        _record(folder, name, me)
        try:
            yield
        finally:
            with suppress(
                StorageError
            ):  # a process that lives on, such as a server, does not hold it any more
                _record(folder, name, me | {"released": True})
    finally:
        lock.release()


def _record(folder: Path, name: str, holder: Mapping[str, object]) -> None:
    seal = sealed(*_sealed_parts(name, holder))
    store_text(folder / f"{name}.holder", json.dumps({**holder, "seal": seal}))


@contextmanager
def module_lock(root: Path, module: str, *, checkout: bool = False) -> Iterator[None]:
    """Hold the lock of a module and, with `checkout`, of this work tree; raises `Locked` like `exclusive_lock`."""
    locks = state_folder(root) / "locks"
    with ExitStack() as stack:
        stack.enter_context(exclusive_lock(locks, f"module-{module}", f"module {module}"))
        if checkout:
            stack.enter_context(exclusive_lock(locks, "checkout", "this checkout"))
        yield
