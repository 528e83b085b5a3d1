import unittest
from datetime import time

from tariff.bands import Band
from tariff.tariff import Tariff

DAY = Band.parse("day", "06:00-22:00", "0.3149")
NIGHT = Band.parse("night", "22:00-06:00", "0.1425")


class TestTariff(unittest.TestCase):
    def test_each_time_of_day_has_its_band(self):
        tariff = Tariff((DAY, NIGHT))
        self.assertIs(tariff.band_at(time(6, 0)), DAY)
        self.assertIs(tariff.band_at(time(21, 59, 59)), DAY)
        self.assertIs(tariff.band_at(time(22, 0)), NIGHT)
        self.assertIs(tariff.band_at(time(0, 0)), NIGHT)

    def test_a_gap_is_refused_with_its_first_minute(self):
        with self.assertRaisesRegex(ValueError, "no band holds 06:00"):
            Tariff((NIGHT, Band.parse("day", "06:30-22:00", "0.3149")))

    def test_an_overlap_is_refused_with_its_first_minute_and_the_names(self):
        with self.assertRaisesRegex(ValueError, "day and night overlap at 21:00"):
            Tariff((DAY, Band.parse("night", "21:00-06:00", "0.1425")))

    def test_no_band_at_all_is_a_gap_from_midnight(self):
        with self.assertRaisesRegex(ValueError, "no band holds 00:00"):
            Tariff(())
