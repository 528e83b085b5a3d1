"""What every event is, and how it is recorded and told. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `name` is its public word; the fields are JSON-able."""

    name: ClassVar[str] = "event"
    durable: ClassVar[bool] = True  # kept in the session's history, not only shown


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with when and whose: what subscribers get. `seq` orders a session's history (0: not kept)."""

    ts: datetime
    session: str
    event: Event
    seq: int = 0

    def to_json(self) -> str:
        """One JSON object on one line: `ts`, `event`, `session`, then the event's own fields."""
        head: dict[str, Any] = {
            "ts": self.ts.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "event": self.event.name,
            "session": self.session,
        }
        return json.dumps(head | asdict(self.event), ensure_ascii=False, default=str)


Subscriber = Callable[[Recorded], None]
