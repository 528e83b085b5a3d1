"""Charging readings: what a member owes, line by line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from tariff.bands import Band
from tariff.money import ZERO, Money
from tariff.tariff import Tariff


@dataclass(frozen=True)
class Reading:
    """The energy used in the interval that began at `start` (local wall-clock time), in kilowatt-hours."""

    start: datetime
    energy: Decimal

    def __post_init__(self) -> None:
        if self.energy < 0:
            raise ValueError(f"the reading of {self.start:%Y-%m-%d %H:%M} is below zero: {self.energy} kWh")


@dataclass(frozen=True)
class Line:
    """One charge. `quantity` counts `unit`s: kilowatt-hours of a band, or days."""

    label: str
    quantity: Decimal
    unit: str
    amount: Money


@dataclass(frozen=True)
class Bill:
    """The lines in the order in which they are printed, and what they come to."""

    lines: tuple[Line, ...]
    total: Money


def charge(readings: Iterable[Reading], tariff: Tariff) -> Bill:
    """The bill for the readings, each charged in the band in which it begins."""
    used: dict[Band, Decimal] = {}
    days = set()
    for reading in readings:
        band = tariff.band_at(reading.start.time())
        used[band] = used.get(band, Decimal(0)) + reading.energy
        days.add(reading.start.date())
    lines = [
        Line(band.name, used[band], "kWh", band.price * used[band]) for band in tariff.bands if band in used
    ]
    if days and tariff.standing_charge != ZERO:
        count = len(days)
        unit = "day" if count == 1 else "days"
        lines.append(Line("standing charge", Decimal(count), unit, tariff.standing_charge * count))
    total = sum((line.amount for line in lines), ZERO)
    return Bill(tuple(lines), total.rounded())
