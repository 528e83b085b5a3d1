"""Logs of JSON lines that any number of processes append to, rotated without losing a line.

A process that writes or rotates locks the open file, then checks that the name still refers to it: so it writes
no line to a rotated file. A rotation renames the file to `<name>.<timestamp>.jsonl`, writes
`<name>.<timestamp>.jsonl.gz` durably, then deletes the first. If the process dies in between, the next one
finishes the rotation.
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
from lopen.store.policy import LogLimits

SUFFIX = ".jsonl"
_STAMP = re.compile(r"^(?P<name>.+)\.(?P<stamp>\d{8}T\d{12}Z)\.jsonl(?P<packed>\.gz)?$")
_STAMP_FORMAT = "%Y%m%dT%H%M%S%fZ"
_ATTEMPTS = 100  # each means that another process rotated the file at that moment


@dataclass(slots=True)
class _Measurement:
    """The measured part of a file, so that only new lines of other processes are read."""

    inode: int = 0
    size: int = 0
    lines: int = 0
    started: datetime | None = None


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
        rotated = False
        with self._locked() as file:
            known = self._measured(file)
            if known.size and self._over(known, known.size + len(data), known.lines + 1, now):
                rotated = self._rename(now)
            else:
                self._append(file, known, data)
        if rotated:
            with self._locked() as file:
                self._append(file, self._measured(file), data)
            self.finish()
        return rotated

    def _append(self, file: int, known: _Measurement, data: bytes) -> None:
        """Append `data`, after a newline if a killed process left an incomplete line."""
        incomplete = known.size and os.pread(file, 1, known.size - 1) != b"\n"
        data = b"\n" + data if incomplete else data
        while data:
            data = data[os.write(file, data) :]

    def rotate_if_due(self, now: datetime) -> bool:
        """Rotate the log if it exceeds a limit; finish the rotation of a killed process."""
        rotated = False
        if self.path.exists():
            with self._locked() as file:
                known = self._measured(file)
                if known.size and self._over(known, known.size, known.lines, now):
                    rotated = self._rename(now)
        self.finish()
        return rotated

    def measure(self) -> tuple[int, int]:
        """Return the bytes and lines of the log; zeros if it does not exist."""
        if not self.path.exists():
            return 0, 0
        with self._locked() as file:
            known = self._measured(file)
            return known.size, known.lines

    def rotations(self) -> list[Path]:
        """Return the compressed rotations, oldest first."""
        return sorted(path for path, packed in self._rotated() if packed)

    def finish(self) -> None:
        """Compress renamed logs, and delete the oldest rotations beyond the limit."""
        for path, packed in self._rotated():
            if not packed:
                _compress(path)
        for old in self.rotations()[: -self._limits.keep]:
            old.unlink(missing_ok=True)

    def _rotated(self) -> list[tuple[Path, bool]]:
        name = self.path.name.removesuffix(SUFFIX)
        found = []
        for path in self.path.parent.glob(f"{name}.*"):
            match = _STAMP.match(path.name)
            if match is not None and match["name"] == name:
                found.append((path, bool(match["packed"])))
        return sorted(found)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open and lock the file that currently has the log's name."""
        for _ in range(_ATTEMPTS):
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _is_named(file, self.path):
                    yield file
                    return
            finally:
                os.close(file)
        raise OSError(f"cannot lock {self.path}: other processes rotate it again and again")

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        refuse_link(self.path.parent)
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def _measured(self, file: int) -> _Measurement:
        status = os.fstat(file)
        known = self._known
        if known.inode != status.st_ino or known.size > status.st_size:
            known = self._known = _Measurement(status.st_ino)
        while known.size < status.st_size:
            piece = os.pread(file, min(1 << 20, status.st_size - known.size), known.size)
            if not piece:
                break
            if known.size == 0:
                known.started = _start_time(piece, status.st_mtime)
            known.size += len(piece)
            known.lines += piece.count(b"\n")
        return known

    def _over(self, known: _Measurement, size: int, lines: int, now: datetime) -> bool:
        age = (now - known.started).total_seconds() if known.started else 0.0
        limits = self._limits
        return size > limits.max_bytes or lines > limits.max_lines or age > limits.max_age_s

    def _rename(self, now: datetime) -> bool:
        """Rename the locked log; its timestamp follows every earlier one, even if the clock went back."""
        name = self.path.name.removesuffix(SUFFIX)
        stamp = max(
            (now.astimezone(UTC), *filter(None, (_moment_after(path) for path, _ in self._rotated())))
        )
        os.rename(self.path, self.path.with_name(f"{name}.{stamp.strftime(_STAMP_FORMAT)}{SUFFIX}"))
        return True


def log_names(folder: Path) -> list[str]:
    """Return the file names of all logs in `folder`, including those with only rotations."""
    names = set()
    for path in folder.glob(f"*{SUFFIX}*"):
        match = _STAMP.match(path.name)
        if match is not None:
            names.add(match["name"] + SUFFIX)
        elif path.name.endswith(SUFFIX) and not path.name.startswith("."):
            names.add(path.name)
    return sorted(names)


def _moment_after(rotation: Path) -> datetime | None:
    """Return the moment after a rotation's timestamp; None for a time that does not exist, since names are untrusted."""
    match = _STAMP.match(rotation.name)
    try:
        rotated = datetime.strptime(match["stamp"], _STAMP_FORMAT) if match else None
        return rotated and rotated.replace(tzinfo=UTC) + timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _is_named(file: int, path: Path) -> bool:
    """Return True if `path` still refers to the open file."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(file)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _start_time(start: bytes, modified: float) -> datetime:
    """Return the `ts` of the log's first line, or else the time of its last modification."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        started = datetime.fromisoformat(json.loads(start.split(b"\n", 1)[0])["ts"])
        return started if started.tzinfo else started.replace(tzinfo=UTC)
    return datetime.fromtimestamp(modified, UTC)


def _compress(path: Path) -> None:
    """Write `path`.gz durably, then delete `path`. Do nothing if another process does so."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(file, path):
                with open(file, "rb", closefd=False) as content:
                    packed = gzip.compress(content.read(), mtime=0)
                store_bytes(path.with_name(path.name + ".gz"), packed)
                path.unlink()
    finally:
        os.close(file)


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
