import unittest
from decimal import Decimal

from tariff.money import ZERO, Money


class TestAmounts(unittest.TestCase):
    def test_ten_times_ten_pence_is_one_pound(self):
        self.assertEqual(sum([Money.of("0.10")] * 10, ZERO), Money.of("1.00"))

    def test_a_price_times_a_quantity_keeps_every_decimal(self):
        self.assertEqual(Money.of("0.14255") * Decimal("1.25"), Money.of("0.1781875"))

    def test_text_whole_numbers_and_decimals_are_amounts(self):
        self.assertEqual(Money.of("3"), Money.of(3))
        self.assertEqual(Money.of(3), Money.of(Decimal("3.00")))

    def test_a_float_is_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "float"):
            Money.of(0.1)

    def test_true_is_no_amount(self):
        with self.assertRaises(TypeError):
            Money.of(True)

    def test_text_that_is_no_number_is_refused(self):
        for text in ("", "ten", "1,50", "nan", "inf"):
            with self.subTest(text), self.assertRaisesRegex(ValueError, "no amount"):
                Money.of(text)
