"""Logs of JSON lines that any number of processes append to, rotated without losing a line.

Whoever writes or rotates holds a lock on the open file, and looks again whether the file is still the one
of that name: so no line reaches a file that was rotated away. A rotation renames the file first
(`<name>.<timestamp>.jsonl`), then writes `<name>.<timestamp>.jsonl.gz` durably, then deletes the first.
What a process leaves that dies in between, the next one finishes.
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

from lopen.base.atomic_files import refuse_link, store_bytes
from lopen.base.errors import LopenError
from lopen.base.events import Recorded
from lopen.retention.policy import LogLimits

LIVE = ".jsonl"
_STAMP = re.compile(r"^(?P<name>.+)\.(?P<stamp>\d{8}T\d{12}Z)\.jsonl(?P<packed>\.gz)?$")
_STAMP_FORMAT = "%Y%m%dT%H%M%S%fZ"
_TRIES = 100  # each means that somebody rotated the file at that very moment


@dataclass(slots=True)
class _Known:
    """What was measured of a file, so that only what others added is read again."""

    inode: int = 0
    size: int = 0
    lines: int = 0
    began: datetime | None = None


class LogFile:
    """One log. Every call is safe beside other processes'."""

    def __init__(self, path: Path, limits: LogLimits) -> None:
        self.path = path
        self._limits = limits
        self._known = _Known()

    def write(self, line: str, now: datetime) -> bool:
        """Append one line (without its end); True where the log was rotated for it. OSError as it comes."""
        data = line.encode("utf-8", "replace") + b"\n"
        rotated = False
        with self._locked() as file:
            known = self._measured(file)
            if known.size and self._over(known, known.size + len(data), known.lines + 1, now):
                rotated = self._set_aside(now)
            else:
                self._append(file, known, data)
        if rotated:
            with self._locked() as file:
                self._append(file, self._measured(file), data)
            self.finish()
        return rotated

    def _append(self, file: int, known: _Known, data: bytes) -> None:
        """Write behind what is there; a line that a dying process left half is ended first."""
        torn = known.size and os.pread(file, 1, known.size - 1) != b"\n"
        data = b"\n" + data if torn else data
        while data:
            data = data[os.write(file, data) :]

    def rotate_if_due(self, now: datetime) -> bool:
        """Rotate where size, lines or age ask for it; what a dead process began is finished."""
        rotated = False
        if self.path.exists():
            with self._locked() as file:
                known = self._measured(file)
                if known.size and self._over(known, known.size, known.lines, now):
                    rotated = self._set_aside(now)
        self.finish()
        return rotated

    def measured(self) -> tuple[int, int]:
        """Bytes and lines at present; zeros where there is no log."""
        if not self.path.exists():
            return 0, 0
        with self._locked() as file:
            known = self._measured(file)
            return known.size, known.lines

    def rotations(self) -> list[Path]:
        """The compressed rotations, oldest first."""
        return sorted(path for path, packed in self._rotated() if packed)

    def finish(self) -> None:
        """Compress what was set aside, and delete rotations beyond those that are kept."""
        for path, packed in self._rotated():
            if not packed:
                _compress(path)
        for old in self.rotations()[: -self._limits.keep]:
            old.unlink(missing_ok=True)

    def _rotated(self) -> list[tuple[Path, bool]]:
        name = self.path.name.removesuffix(LIVE)
        found = []
        for path in self.path.parent.glob(f"{name}.*"):
            match = _STAMP.match(path.name)
            if match is not None and match["name"] == name:
                found.append((path, bool(match["packed"])))
        return sorted(found)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The log open and locked, certainly the file of that name."""
        for _ in range(_TRIES):
            file = self._opened()
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _is_named(file, self.path):
                    yield file
                    return
            finally:
                os.close(file)
        raise OSError(f"{self.path} is rotated over and over")

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        refuse_link(self.path.parent)
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def _measured(self, file: int) -> _Known:
        status = os.fstat(file)
        known = self._known
        if known.inode != status.st_ino or known.size > status.st_size:
            known = self._known = _Known(status.st_ino)
        while known.size < status.st_size:
            piece = os.pread(file, min(1 << 20, status.st_size - known.size), known.size)
            if not piece:
                break
            if known.size == 0:
                known.began = _began(piece, status.st_mtime)
            known.size += len(piece)
            known.lines += piece.count(b"\n")
        return known

    def _over(self, known: _Known, size: int, lines: int, now: datetime) -> bool:
        age = (now - known.began).total_seconds() if known.began else 0.0
        own = self._limits
        return size > own.most_bytes or lines > own.most_lines or age > own.most_age_s

    def _set_aside(self, now: datetime) -> bool:
        """Rename the locked log; its timestamp comes after every earlier one's, whatever the clock says."""
        name = self.path.name.removesuffix(LIVE)
        stamps = [m["stamp"] for path, _ in self._rotated() if (m := _STAMP.match(path.name))]
        stamp = now.astimezone(UTC)
        if stamps:
            newest = datetime.strptime(max(stamps), _STAMP_FORMAT).replace(tzinfo=UTC)
            stamp = max(stamp, newest + timedelta(microseconds=1))
        os.rename(self.path, self.path.with_name(f"{name}.{stamp.strftime(_STAMP_FORMAT)}{LIVE}"))
        return True


def log_names(folder: Path) -> list[str]:
    """Every log below `folder` by its file name, those included of which only rotations are left."""
    names = set()
    for path in folder.glob(f"*{LIVE}*"):
        match = _STAMP.match(path.name)
        if match is not None:
            names.add(match["name"] + LIVE)
        elif path.name.endswith(LIVE) and not path.name.startswith("."):
            names.add(path.name)
    return sorted(names)


def _is_named(file: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(file)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _began(start: bytes, otherwise: float) -> datetime:
    """When the log began: its first line's `ts`, else when it was last written."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        began = datetime.fromisoformat(json.loads(start.split(b"\n", 1)[0])["ts"])
        return began if began.tzinfo else began.replace(tzinfo=UTC)
    return datetime.fromtimestamp(otherwise, UTC)


def _compress(path: Path) -> None:
    """`path` as `path`.gz, durably, then gone. Another process that is at it is left to it."""
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


NAME = "lopen.jsonl"


class StructuredLog:
    """Subscribes to a journal. What only passes by (streamed text) stays out; secrets are taken out.

    A log that cannot be written stops nobody's work: it is said once.
    """

    def __init__(
        self,
        folder: Path,
        limits: LogLimits,
        *,
        redact: Callable[[str], str],
        warn: Callable[[str], None],
    ) -> None:
        self._file = LogFile(folder / NAME, limits)
        self._redact = redact
        self._warn = warn
        self._said = False

    def __call__(self, record: Recorded) -> None:
        """Write the event down."""
        if not record.event.durable:
            return
        try:
            line = record.to_json()
            self._file.write(line if record.body else self._redact(line), record.ts)
        except (OSError, LopenError) as error:
            if not self._said:
                self._said = True
                self._warn(
                    f"the log {self._file.path} cannot be written ({error}); the work goes on without it"
                )
