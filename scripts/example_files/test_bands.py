import unittest
from datetime import time

from tariff.bands import Band, minute_of
from tariff.money import Money


def at(text):
    return minute_of(time.fromisoformat(text))


class TestBands(unittest.TestCase):
    def test_the_start_belongs_to_a_band_and_its_end_does_not(self):
        day = Band.parse("day", "06:00-22:00", "0.3149")
        self.assertTrue(day.holds(at("06:00")))
        self.assertTrue(day.holds(at("21:59")))
        self.assertFalse(day.holds(at("22:00")))
        self.assertFalse(day.holds(at("05:59")))

    def test_a_band_may_run_over_midnight(self):
        night = Band.parse("night", "22:00-06:00", "0.1425")
        for moment in ("22:00", "23:30", "00:00", "05:59"):
            with self.subTest(moment):
                self.assertTrue(night.holds(at(moment)))
        for moment in ("06:00", "12:00", "21:59"):
            with self.subTest(moment):
                self.assertFalse(night.holds(at(moment)))

    def test_a_band_may_be_the_whole_day(self):
        always = Band.parse("always", "00:00-24:00", "0.30")
        self.assertTrue(all(always.holds(minute) for minute in range(24 * 60)))

    def test_a_band_carries_its_price(self):
        self.assertEqual(Band.parse("day", "06:00-22:00", "0.3149").price, Money.of("0.3149"))

    def test_what_is_no_span_is_refused_in_its_own_words(self):
        for span in ("", "6:00-22:00", "06:00", "06:60-22:00", "06:00-24:01", "24:00-06:00"):
            with self.subTest(span), self.assertRaisesRegex(ValueError, f"day: '{span}'"):
                Band.parse("day", span, "0.30")

    def test_a_span_that_starts_where_it_ends_says_how_to_write_the_whole_day(self):
        with self.assertRaisesRegex(ValueError, "00:00-24:00"):
            Band.parse("day", "06:00-06:00", "0.30")
