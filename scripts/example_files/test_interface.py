import unittest
from datetime import datetime
from decimal import Decimal

from tariff import Band, Money, Reading, Tariff, charge, render


class TestInterface(unittest.TestCase):
    def test_the_example_of_the_specification_runs(self):
        self.assertEqual(Money.of("0.10") + Money.of("0.20"), Money.of("0.30"))
        night = Band.parse("night", "22:00-06:00", price="0.1425")
        day = Band.parse("day", "06:00-22:00", price="0.3149")
        tariff = Tariff((day, night), standing_charge=Money.of("0.4725"))
        bill = charge([Reading(datetime(2026, 3, 2, 23, 30), Decimal("1.25"))], tariff)
        self.assertTrue(render(bill).endswith("0.65\n"))
