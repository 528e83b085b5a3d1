import unittest
from datetime import datetime
from decimal import Decimal

from tariff.bands import Band
from tariff.bill import Reading, charge
from tariff.money import Money
from tariff.printing import render
from tariff.tariff import Tariff

TARIFF = Tariff(
    (Band.parse("day", "06:00-22:00", "0.3149"), Band.parse("night", "22:00-06:00", "0.1425")),
    standing_charge=Money.of("0.4725"),
)


class TestPrinting(unittest.TestCase):
    def test_a_bill_is_a_table_that_ends_with_its_total(self):
        readings = [
            Reading(datetime(2026, 3, 2, 12, 0), Decimal("4210.5")),
            Reading(datetime(2026, 3, 2, 23, 30), Decimal("1.25")),
        ]
        self.assertEqual(
            render(charge(readings, TARIFF)),
            "day              4210.5 kWh  1,325.89\n"
            "night              1.25 kWh      0.18\n"
            "standing charge       1 day      0.47\n"
            "-------------------------------------\n"
            "total                        1,326.54\n",
        )

    def test_all_lines_have_the_same_width(self):
        readings = [Reading(datetime(2026, 3, day, 12, 0), Decimal("0.875")) for day in range(1, 29)]
        widths = {len(line) for line in render(charge(readings, TARIFF)).splitlines()}
        self.assertEqual(len(widths), 1)

    def test_a_bill_of_nothing_is_its_total(self):
        self.assertEqual(render(charge([], TARIFF)), "-------------\ntotal    0.00\n")
