"""Logs of JSON lines that any number of processes append to, rotated without losing a line.

A process that writes or rotates holds a lock on the folder. A rotation writes `<name>.<timestamp>.jsonl.gz` durably, then
deletes the log. A process that dies in between leaves the lines in both.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lopen.core.errors import LopenError
from lopen.core.events import Recorded
from lopen.core.files import locked_folder, refuse_link, store_bytes

SUFFIX = ".jsonl"
EVENT_LOG, HOOK_LOG = "lopen.jsonl", "hooks.jsonl"
LOGS = (EVENT_LOG, HOOK_LOG)
SECONDS_PER_DAY = 86_400.0
_STAMP_FORMAT = "%Y%m%dT%H%M%S%fZ"


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits that rotate a log, and the number of rotations to keep. Sizes in bytes, ages in seconds."""

    max_bytes: int = 50 * 1024
    max_lines: int = 1_000
    max_age_s: float = 7 * SECONDS_PER_DAY
    keep: int = 5


class LogFile:
    """One log. Several processes may use it at the same time."""

    def __init__(self, path: Path, limits: LogLimits) -> None:
        self.path = path
        self._limits = limits

    def write(self, line: str, now: datetime) -> bool:
        """Append one line (without its newline); return True if this rotated the log.

        Raises:
            OSError: the log cannot be written.
        """
        data = line.encode("utf-8", "replace") + b"\n"
        with self._locked():
            rotated = self._rotate_if_due(now, data)
            text = self._text()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(self.path, flags, 0o600), "ab") as file:
                file.write(data if not text or text.endswith(b"\n") else b"\n" + data)
            return rotated

    def rotate_if_due(self, now: datetime) -> bool:
        """Rotate the log if it exceeds a limit."""
        with self._locked():
            return self._rotate_if_due(now)

    def measure(self) -> tuple[int, int]:
        """Return the bytes and lines of the log; zeros if it does not exist."""
        text = self._text()
        return len(text), text.count(b"\n")

    def rotations(self) -> list[Path]:
        """Return the compressed rotations, oldest first."""
        name = self.path.name.removesuffix(SUFFIX)
        return sorted(self.path.parent.glob(f"{name}.*{SUFFIX}.gz"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.path.parent
        refuse_link(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked_folder(folder):
            yield

    def _text(self) -> bytes:
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _rotate_if_due(self, now: datetime, more: bytes = b"") -> bool:
        """Rotate the log if it exceeds a limit with the lines `more`."""
        text, limits = self._text(), self._limits
        due = bool(text) and (
            len(text) + len(more) > limits.max_bytes
            or text.count(b"\n") + more.count(b"\n") > limits.max_lines
            or (now - _start_time(text, now)).total_seconds() > limits.max_age_s
        )
        if due:
            store_bytes(self._new_name(now), gzip.compress(text, mtime=0))
            self.path.unlink()
        for old in self.rotations()[: -limits.keep]:
            old.unlink(missing_ok=True)
        return due

    def _new_name(self, now: datetime) -> Path:
        """Return the name of a rotation, which follows every earlier one: `now` may be older than the last writer's."""
        name, stamp = self.path.name.removesuffix(SUFFIX), now.astimezone(UTC)
        for newest in self.rotations()[-1:]:
            with suppress(ValueError):  # another program named it
                last = datetime.strptime(newest.name, f"{name}.{_STAMP_FORMAT}{SUFFIX}.gz").replace(
                    tzinfo=UTC
                )
                stamp = max(stamp, last + timedelta(microseconds=1))
        return self.path.with_name(f"{name}.{stamp.strftime(_STAMP_FORMAT)}{SUFFIX}.gz")


def _start_time(text: bytes, now: datetime) -> datetime:
    """Return the `ts` of the log's first line; `now` if it has none."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        started = datetime.fromisoformat(json.loads(text.split(b"\n", 1)[0])["ts"])
        return started if started.tzinfo else started.replace(tzinfo=UTC)
    return now


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
        self._file = LogFile(folder / EVENT_LOG, limits)
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
