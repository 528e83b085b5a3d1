"""Bills by time of use: exact amounts, bands of the day, and the bill that follows from both."""

from tariff.bands import Band
from tariff.bill import Bill, Line, Reading, charge
from tariff.money import Money
from tariff.printing import render
from tariff.tariff import Tariff

__all__ = ["Band", "Bill", "Line", "Money", "Reading", "Tariff", "charge", "render"]
