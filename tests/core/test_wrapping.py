"""Lines break between words, below their own indent; a command stays whole."""

from __future__ import annotations

from lopen.core.wrapping import wrapped

BROKEN = {
    "15:30:05 verdict on task tariff-t5: BILL-2 does not hold": [
        "15:30:05 verdict on task",
        "         tariff-t5: BILL-2 does",
        "         not hold",
    ],
    "         | tariff/bill.py:61: rounded twice": [
        "         | tariff/bill.py:61:",
        "         | rounded twice",
    ],
    "  MONEY-1 holds: ten times 0.10 is 1.00": ["  MONEY-1 holds: ten times 0.10", "    is 1.00"],
    "it is not approved; to do so: lopen approve calc --yes": [
        "it is not approved; to do so:",
        "  lopen approve calc --yes",
    ],
    "      lopen merge tariff  (merges it if it can)": [
        "      lopen merge tariff",
        "        (merges it if it can)",
    ],
    "next: lopen resume calc-20261124-1 --max-cost 12": [
        "next:",
        "  lopen resume calc-20261124-1 --max-cost 12",
    ],
}


def test_a_line_breaks_between_words_and_a_command_never() -> None:
    for line, shown in BROKEN.items():
        assert wrapped(line, 32).split("\n") == shown
        assert wrapped(line, 0) == line, "no terminal"
