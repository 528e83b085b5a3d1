"""The bands of the day: which price holds at which minute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time

from tariff.money import Money

MINUTES_A_DAY = 24 * 60

_SPAN = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)


def minute_of(moment: time) -> int:
    """Minutes since midnight, seconds left out."""
    return moment.hour * 60 + moment.minute


@dataclass(frozen=True)
class Band:
    """A span of the day with its price for each kilowatt-hour. Start and end are minutes since midnight."""

    name: str
    start: int
    end: int
    price: Money

    @classmethod
    def parse(cls, name: str, span: str, price: str) -> Band:
        """The band whose span is written `HH:MM-HH:MM`; ValueError, quoting the span, where it is none."""
        written = _SPAN.fullmatch(span)
        if written is None:
            raise ValueError(f"{name}: {span!r} is no span; write HH:MM-HH:MM")
        start_hour, start_minute, end_hour, end_minute = map(int, written.groups())
        start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
        if max(start_minute, end_minute) > 59 or start >= MINUTES_A_DAY or end > MINUTES_A_DAY:
            raise ValueError(f"{name}: {span!r} leaves the day")
        if start == end:
            raise ValueError(f"{name}: {span!r} starts where it ends; the whole day is 00:00-24:00")
        return cls(name, start, end, Money.of(price))

    def holds(self, minute: int) -> bool:
        """Whether the band's price holds in this minute of the day."""
        return self.start <= minute < self.end
