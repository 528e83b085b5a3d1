"""A tariff: bands that cover each minute of the day exactly once, and what a day costs by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

from tariff.bands import MINUTES_A_DAY, Band, minute_of
from tariff.money import ZERO, Money


@dataclass(frozen=True)
class Tariff:
    """Bands in the order in which a bill names them, and the standing charge for each day.

    Raises ValueError, naming the first minute concerned, where the bands leave a gap or overlap.
    """

    bands: tuple[Band, ...]
    standing_charge: Money = ZERO

    def __post_init__(self) -> None:
        for minute in range(MINUTES_A_DAY):
            holding = [band.name for band in self.bands if band.holds(minute)]
            if not holding:
                raise ValueError(f"no band holds {_clock(minute)}")
            if len(holding) > 1:
                raise ValueError(f"{' and '.join(holding)} overlap at {_clock(minute)}")

    def band_at(self, moment: time) -> Band:
        """The one band that holds at this time of day."""
        minute = minute_of(moment)
        return next(band for band in self.bands if band.holds(minute))


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
