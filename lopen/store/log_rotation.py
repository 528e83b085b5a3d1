"""Logs of JSON lines that any number of processes append to, rotated without losing a line.

A process that writes or rotates holds a lock on the folder. A rotation renames the file to `<name>.<timestamp>.jsonl`, writes
`<name>.<timestamp>.jsonl.gz` durably, then deletes the first. If the process dies in between, the next one finishes it.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lopen.core.errors import LopenError
from lopen.core.events import Recorded
from lopen.core.files import refuse_link, store_bytes

SUFFIX = ".jsonl"
SECONDS_PER_DAY = 86_400.0
_STAMP = re.compile(r"^(?P<name>.+)\.(?P<stamp>\d{8}T\d{12}Z)\.jsonl(?P<packed>\.gz)?$")
_STAMP_FORMAT = "%Y%m%dT%H%M%S%fZ"


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits that rotate a log, and the number of rotations to keep. Sizes in bytes, ages in seconds."""

    max_bytes: int = 50 * 1024
    max_lines: int = 1_000
    max_age_s: float = 7 * SECONDS_PER_DAY
    keep: int = 5


@dataclass(frozen=True, slots=True)
class _Measurement:
    """The size of a log in bytes and lines, and the time it was begun."""

    inode: int = 0
    size: int = 0
    lines: int = 0
    started: datetime | None = None
    complete: bool = True  # the last line has its newline


class LogFile:
    """One log. Several processes may use it at the same time."""

    def __init__(self, path: Path, limits: LogLimits) -> None:
        self.path = path
        self._limits = limits
        self._known = _Measurement()

    def write(self, line: str, now: datetime) -> bool:
        """Append one line (without its newline); return True if this rotated the log.

        Raises:
            OSError: the log cannot be written.
        """
        data = line.encode("utf-8", "replace") + b"\n"
        with self._locked():
            rotated = self._rotate(now, len(data), 1)
            known = self._measured()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(self.path, flags, 0o600), "ab") as file:
                file.write(data if known.complete else b"\n" + data)
            return rotated

    def rotate_if_due(self, now: datetime) -> bool:
        """Rotate the log if it exceeds a limit; finish the rotation of a killed process."""
        with self._locked():
            return self._rotate(now)

    def measure(self) -> tuple[int, int]:
        """Return the bytes and lines of the log; zeros if it does not exist."""
        known = self._measured()
        return known.size, known.lines

    def rotations(self) -> list[Path]:
        """Return the compressed rotations, oldest first."""
        return [path for path in self._rotated() if path.suffix == ".gz"]

    def _rotated(self) -> list[Path]:
        name = self.path.name.removesuffix(SUFFIX)
        found = ((path, _STAMP.match(path.name)) for path in self.path.parent.glob(f"{name}.*"))
        return sorted(path for path, match in found if match and match["name"] == name)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.path.parent
        refuse_link(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _measured(self) -> _Measurement:
        """Read the log, unless it is as long as it was."""
        try:
            found = os.stat(self.path, follow_symlinks=False)
            if (found.st_ino, found.st_size) != (self._known.inode, self._known.size):
                with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                    text, modified = file.read(), os.fstat(file.fileno()).st_mtime
                lines, complete = text.count(b"\n"), text.endswith(b"\n")
                self._known = _Measurement(
                    found.st_ino, len(text), lines, _start_time(text, modified), complete
                )
        except FileNotFoundError:
            self._known = _Measurement()
        return self._known

    def _rotate(self, now: datetime, size: int = 0, lines: int = 0) -> bool:
        """Rotate the log if it exceeds a limit with so many bytes and lines more, and compress the rotated file."""
        known, limits = self._measured(), self._limits
        age_s = (now - known.started).total_seconds() if known.started else 0.0
        over = (
            known.size + size > limits.max_bytes
            or known.lines + lines > limits.max_lines
            or age_s > limits.max_age_s
        )
        due = bool(known.size) and over
        if due:
            self.path.rename(self._new_name(now))
            self._known = _Measurement()
        for path in self._rotated():
            if path.suffix != ".gz":
                store_bytes(path.with_name(f"{path.name}.gz"), gzip.compress(path.read_bytes(), mtime=0))
                path.unlink()
        for old in self.rotations()[: -limits.keep]:
            old.unlink(missing_ok=True)
        return due

    def _new_name(self, now: datetime) -> Path:
        """Return the name of a rotation; it follows every earlier one, also one made with another clock."""
        stamp = now.astimezone(UTC)
        for path in self._rotated():
            match = _STAMP.match(path.name)
            with suppress(ValueError, OverflowError):  # another program named it
                earlier = datetime.strptime(match["stamp"] if match else "", _STAMP_FORMAT)
                stamp = max(stamp, earlier.replace(tzinfo=UTC) + timedelta(microseconds=1))
        name = self.path.name.removesuffix(SUFFIX)
        return self.path.with_name(f"{name}.{stamp.strftime(_STAMP_FORMAT)}{SUFFIX}")


def log_names(folder: Path) -> list[str]:
    """Return the file names of all logs in `folder`, including logs with only rotations."""
    names = set()
    for path in folder.glob(f"*{SUFFIX}*"):
        match = _STAMP.match(path.name)
        if match is not None:
            names.add(match["name"] + SUFFIX)
        elif path.name.endswith(SUFFIX) and not path.name.startswith("."):
            names.add(path.name)
    return sorted(names)


def _start_time(text: bytes, modified: float) -> datetime:
    """Return the `ts` of the log's first line, or else the time of its last modification."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        started = datetime.fromisoformat(json.loads(text.split(b"\n", 1)[0])["ts"])
        return started if started.tzinfo else started.replace(tzinfo=UTC)
    return datetime.fromtimestamp(modified, UTC)


LOG_NAME = "lopen.jsonl"


class StructuredLog:
    """A journal subscriber that logs durable events without secrets.

    If the log cannot be written, it warns once and the work continues.
    """

    def __init__(
        self,
        folder: Path,
        limits: LogLimits,
        *,
        redact: Callable[[str], str],
        warn: Callable[[str], None],
    ) -> None:
        self._file = LogFile(folder / LOG_NAME, limits)
        self._redact = redact
        self._warn = warn
        self._warned = False

    def __call__(self, record: Recorded) -> None:
        """Log the event."""
        if not record.event.durable:
            return
        try:
            line = record.to_json()
            self._file.write(line if record.body else self._redact(line), record.ts)
        except (OSError, LopenError) as error:
            if not self._warned:
                self._warned = True
                self._warn(f"cannot write the log {self._file.path} ({error}); the work continues without it")
