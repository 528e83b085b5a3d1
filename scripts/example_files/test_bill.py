import unittest
from datetime import datetime
from decimal import Decimal

from tariff.bands import Band
from tariff.bill import Reading, charge
from tariff.money import ZERO, Money
from tariff.tariff import Tariff

DAY = Band.parse("day", "06:00-22:00", "0.30")
NIGHT = Band.parse("night", "22:00-06:00", "0.10")
TARIFF = Tariff((DAY, NIGHT), standing_charge=Money.of("0.50"))


def reading(start, energy):
    return Reading(datetime.fromisoformat(start), Decimal(energy))


class TestCharging(unittest.TestCase):
    def test_a_reading_is_charged_in_the_band_in_which_it_begins(self):
        bill = charge([reading("2026-03-02 21:45", "2"), reading("2026-03-02 22:00", "3")], TARIFF)
        amounts = {line.label: line.amount for line in bill.lines}
        self.assertEqual(amounts["day"], Money.of("0.60"))
        self.assertEqual(amounts["night"], Money.of("0.30"))

    def test_readings_of_one_band_share_a_line_in_the_order_of_the_tariff(self):
        nights_first = [reading(f"2026-03-02 {clock}", "1") for clock in ("22:00", "23:30", "12:00", "12:30")]
        bill = charge(nights_first, TARIFF)
        self.assertEqual([line.label for line in bill.lines], ["day", "night", "standing charge"])
        self.assertEqual([line.quantity for line in bill.lines], [2, 2, 1])

    def test_a_band_that_was_not_used_has_no_line(self):
        bill = charge([reading("2026-03-02 12:00", "1")], TARIFF)
        self.assertNotIn("night", [line.label for line in bill.lines])

    def test_the_standing_charge_counts_days_with_a_reading(self):
        bill = charge([reading(f"2026-03-{day} 12:00", "1") for day in ("02", "02", "05")], TARIFF)
        self.assertEqual((bill.lines[-1].quantity, bill.lines[-1].unit), (2, "days"))
        self.assertEqual(bill.lines[-1].amount, Money.of("1.00"))

    def test_without_a_standing_charge_there_is_no_line_for_it(self):
        bill = charge([reading("2026-03-02 12:00", "1")], Tariff((DAY, NIGHT)))
        self.assertEqual([line.label for line in bill.lines], ["day"])

    def test_the_total_adds_the_lines_up(self):
        bill = charge([reading("2026-03-02 12:00", "10"), reading("2026-03-02 23:00", "5")], TARIFF)
        self.assertEqual(bill.total, Money.of("4.00"))

    def test_no_readings_are_a_bill_of_nothing(self):
        self.assertEqual(charge([], TARIFF).lines, ())
        self.assertEqual(charge([], TARIFF).total, ZERO)

    def test_energy_below_zero_is_refused_with_its_time(self):
        with self.assertRaisesRegex(ValueError, "2026-03-02 12:00"):
            reading("2026-03-02 12:00", "-0.1")
