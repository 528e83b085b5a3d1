"""`.lopen/`: the folder for lopen's state in a project, its `.gitignore`, quarantine for damaged files, and locks.

A module has a lock, with a file that names its holder; the operating system releases a lock when its holder dies.

See docs/reference/storage.md.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from lopen.core.errors import LopenError, StorageError
from lopen.core.files import private_folder, read_foreign, store_text
from lopen.core.person import holds, sealed
from lopen.core.process_identity import lives, start_time

DATABASE = "state.db"
ARCHIVES_FOLDER = "session_archives"
GITIGNORE = "# written by lopen: everything but the configuration stays out of git\n*\n!config.toml\n"


def state_folder(root: Path) -> Path:
    """Return `.lopen/`, closed to other users; create it with its `.gitignore` if it does not exist.

    A `.gitignore` that is missing beside a database was removed by a switch of branches. It is not written
    again then, because an untracked file would block switching back and merging.

    Raises:
        LopenError: the folder is a symbolic link or holds one.
        StorageError: the folder is not writable.
    """
    folder = root / ".lopen"
    require_plain(folder)
    if not (folder / DATABASE).exists():
        try:
            ignore_state(root)
        except StorageError as error:
            reason = getattr(error.__cause__, "strerror", None) or error.message
            raise StorageError(
                f"cannot write in {folder}: {reason}",
                hint=f"lopen keeps its state there: make {root} writable, or work on a copy",
            ) from error
    with suppress(OSError):  # of another user, who decides about it; what lies in it is closed with it
        folder.chmod(0o700)
    return folder


def require_plain(folder: Path) -> None:
    """Require that `.lopen/` is a folder that holds only regular files and folders.

    A symbolic link from a cloned repository could make lopen read and write anywhere.

    Raises:
        LopenError: it is not such a folder.
    """
    if folder.is_symlink():
        raise LopenError(
            f"{folder} is a symbolic link", hint="remove it: lopen keeps its state in a folder of the project"
        )
    entries = _entries(folder)
    if not entries and folder.exists() and not folder.is_dir():
        raise LopenError(
            f"{folder} is not a folder",
            hint="rename or remove it: lopen keeps its state in a folder of that name",
        )
    for entry in entries:
        _require_plain_entry(entry)
        if entry.is_dir():
            for inner in _entries(entry.path):
                _require_plain_entry(inner)


def _require_plain_entry(entry: os.DirEntry[str]) -> None:
    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
        problem = "a symbolic link" if entry.is_symlink() else "not a regular file"
        raise LopenError(
            f"{entry.path} is {problem}",
            hint="remove it: lopen keeps its state in regular files of the project",
        )


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; an empty list if it does not exist."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise LopenError(f"{folder}: {error.strerror or error}", hint="make it readable") from error


def ignore_state(root: Path) -> None:
    """Write `.lopen/.gitignore` if it does not exist."""
    ignore = root / ".lopen" / ".gitignore"
    if not ignore.exists():
        store_text(ignore, GITIGNORE)


def quarantine_file(path: Path, state: Path) -> Path:
    """Move a damaged or foreign file, with the WAL files of a database, to `corrupted/` in `state`; return its new path."""
    folder = state / "corrupted"
    private_folder(folder)
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    moved = folder / f"{stamp}-{path.name}"
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(folder / f"{stamp}-{path.name}{suffix}")
    return moved


_LOCK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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


def held_out_of_sight(folder: Path, name: str) -> bool:
    """Return True if a process holds the lock that this one cannot see: one of them is in a process namespace of its own."""
    return not is_running(lock_holder(folder, name)) and _is_held(folder / f"{name}.lock")


def is_locked(root: Path) -> bool:
    """Return True if any process of any user holds the lock of a module of this project."""
    return any(_is_held(path) for path in (root / ".lopen" / "locks").glob("module-*.lock"))


def _is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, _LOCK | os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


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
def exclusive_lock(folder: Path, name: str, what: str) -> Iterator[None]:
    """Hold the lock `name` in `folder` within the context.

    Raises:
        Locked: another process holds it; the message names its pid and host, and `what` it works on.
        StorageError: the folder is not writable.
    """
    try:
        private_folder(folder)
        lock = os.open(folder / f"{name}.lock", _LOCK | os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror or error}", hint="make the folder writable") from error
    try:
        _lock_at_once(lock, folder, name, what)
        me: dict[str, object] = {
            "pid": os.getpid(),
            "started": start_time(os.getpid()),
            "host": os.uname().nodename,
        }
        _record(folder, name, me)
        try:
            yield
        finally:
            with suppress(StorageError):
                # A process that lives on, such as a server, does not hold it any more.
                _record(folder, name, me | {"released": True})
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # a child process may have the descriptor too
        os.close(lock)


def _lock_at_once(lock: int, folder: Path, name: str, what: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = lock_holder(folder, name)
        raise Locked(
            _works_on(holder, what),
            hint="wait until it ends, or stop that process",
        ) from error
    except OSError as error:
        raise StorageError(
            f"{folder}: its file system has no locks ({error.strerror or error})", hint="work on a local disk"
        ) from error


def _record(folder: Path, name: str, holder: Mapping[str, object]) -> None:
    seal = sealed(*_sealed_parts(name, holder))
    store_text(folder / f"{name}.holder", json.dumps({**holder, "seal": seal}))


@contextmanager
def module_lock(root: Path, module: str) -> Iterator[None]:
    """Hold the lock of a module; raises `Locked` like `exclusive_lock`, with what a person can do about the run."""
    with ExitStack() as stack:
        try:
            folder = state_folder(root) / "locks"
            stack.enter_context(exclusive_lock(folder, f"module-{module}", f"module {module}"))
        except Locked as error:
            raise _beside_run(error.message, module) from error
        yield


def require_free(root: Path, module: str) -> None:
    """Raise `Locked` if a process drives the module now; nothing is made for that."""
    if is_worked_on(root, module):
        raise _beside_run(_works_on(module_holder(root, module), f"module {module}"), module)


def _beside_run(message: str, module: str) -> Locked:
    return Locked(message, hint=f"to follow it: lopen attach {module}; to stop it: lopen pause {module}")


def _works_on(holder: Mapping[str, object], what: str) -> str:
    return f"process {holder.get('pid', '?')} on {holder.get('host', '?')} is working on {what}"
