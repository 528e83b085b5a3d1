"""The structured log: one JSON object a line for everything that happened, in `.lopen/logs/lopen.jsonl`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lopen.errors import LopenError
from lopen.events import Recorded
from lopen.retention.policy import LogLimits
from lopen.retention.rotation import LogFile

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
