"""The base of all events, and recorded events. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Event:
    """An event. `name` is its public name; the fields are JSON values."""

    name: ClassVar[str] = "event"
    durable: ClassVar[bool] = True  # True: stored in the session's history, not only displayed

    def body(self) -> str:
        """Return the event's own fields as one JSON object on one line."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.dumps(own, ensure_ascii=False, default=_as_json)


def _as_json(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its time and session, for subscribers. `seq` orders a session's history (0: not stored).

    `body`: the stored fields without secrets; "" if the event is not stored.
    """

    ts: datetime
    session: str
    event: Event
    seq: int = 0
    body: str = ""

    def to_json(self) -> str:
        """Return one JSON object on one line: `ts`, `event`, `session`, then the event's own fields."""
        head: dict[str, Any] = {
            "ts": self.ts.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "event": self.event.name,
            "session": self.session,
        }
        own = (self.body or self.event.body())[1:]
        return json.dumps(head, ensure_ascii=False)[:-1] + (", " if len(own) > 1 else "") + own


Subscriber = Callable[[Recorded], None]
