"""What a command gave, and the folder that every command's code comes from."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
SHELL_PYTHON = shlex.quote(sys.executable)
"""The interpreter in use, as a line for a shell names it: a folder above may have a blank in its name."""


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON lines of standard output."""
        return [json.loads(line) for line in self.out.splitlines()]

    def named(self, event: str) -> list[dict[str, Any]]:
        """The events of one name."""
        return [e for e in self.events if e["event"] == event]

    @property
    def last_line(self) -> str:
        """The last line a person reads; of JSON lines the command that the last one names."""
        lines = [line for line in (self.out + self.err).splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        return f"next: {json.loads(last).get('command')}" if last.startswith("{") else last
