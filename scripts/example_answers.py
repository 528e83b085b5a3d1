"""What the model says in the bundled example, written by hand: turns, tool calls, and the oracle's verdicts.

The files it writes lie in `example_files/`. It makes two mistakes on purpose: a band that does not run over
midnight, which its own test finds, and a total that is rounded apart from its lines, which the oracle finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent / "example_files"
NOTHING: Mapping[str, str] = {}

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Turn:
    """One answer of the model: a few words, then tool calls."""

    say: str
    calls: Sequence[Call]


def write(path: str, source: str) -> Call:
    """Writes a file whose content lies in `example_files/`."""
    return "write_file", {"path": path, "content": (FILES / source).read_text("utf-8")}


def edit(path: str, old: str, new: str) -> Call:
    """Replaces the one place in a file that reads `old`."""
    return "edit_file", {"path": path, "old_text": old, "new_text": new}


def finish(task: str) -> tuple[Call, ...]:
    """Verifies a task and completes it."""
    return (
        ("verify_tests", {}),
        ("verify_task_completion", {"task_id": task}),
        ("update_task_status", {"task_id": task, "status": "complete"}),
    )


def verdict(
    summary: str, *findings: Mapping[str, Any], passed: bool = True, shown_by: Mapping[str, str] = NOTHING
) -> Mapping[str, Any]:
    """The judge's answer. `shown_by`: criterion that holds → what shows it."""
    criteria = [{"id": name, "holds": "yes", "evidence": shown} for name, shown in shown_by.items()]
    return {
        "passed": passed,
        "confidence": "high",
        "summary": summary,
        "findings": list(findings),
        "criteria": criteria,
    }


def component(name: str, description: str, **more: Any) -> Mapping[str, Any]:
    """A component as step 3 records it."""
    return {"name": name, "description": description, **more}


def task(name: str, description: str, section: str, *subtasks: str) -> Mapping[str, Any]:
    """A task as step 5 records it."""
    return {
        "name": name,
        "description": description,
        "spec_sections": [f"Behaviour > {section}"],
        "subtasks": list(subtasks),
    }


LOOK_AROUND = Turn(
    "I will see what exists before I plan.",
    (
        ("list_files", {}),
        ("read_file", {"path": "README.md"}),
        ("read_spec", {"section": "Interface"}),
        ("run_command", {"command": "python3 -c 'import decimal, sys; print(sys.version_info >= (3, 11))'"}),
    ),
)

PLAN = Turn(
    "The project is empty but for its papers. Three components: amounts rest on nothing, bands carry a price, "
    "bills need both. I keep a note on rounding first, because two criteria hang on it.",
    (
        (
            "log_research",
            {
                "topic": "Rounding half to even",
                "summary": "Decimal rounds half to even when it is asked to; the built-in round of a float does not.",
                "findings": (
                    "- `Decimal('0.125').quantize(Decimal('0.01'), ROUND_HALF_EVEN)` is 0.12, 0.135 becomes 0.14.\n"
                    "- `round(0.135, 2)` is 0.14 and `round(0.145, 2)` is 0.14 too: the floats lie beside the "
                    "decimals they stand for.\n"
                    "- Sums of rounded amounts and rounded sums differ: 0.045 + 0.045 is 0.08 or 0.09."
                ),
                "sources": ["https://docs.python.org/3/library/decimal.html"],
                "relevance": "MONEY-2 asks for the rule, BILL-2 for the order in which it is applied.",
            },
        ),
        (
            "record_dependencies",
            {
                "dependencies": [
                    {
                        "name": "decimal",
                        "kind": "library",
                        "reason": "exact amounts; part of the standard library",
                        "available": True,
                    }
                ]
            },
        ),
        (
            "record_components",
            {
                "components": [
                    component(
                        "amounts",
                        "Money: exact arithmetic, rounding to the penny, amounts as text.",
                        spec_sections=["Behaviour > Amounts"],
                        acceptance_criteria=["MONEY-1", "MONEY-2"],
                    ),
                    component(
                        "bands",
                        "The bands of a day, and a tariff that covers each minute exactly once.",
                        depends_on=["amounts"],
                        spec_sections=["Behaviour > Bands"],
                        acceptance_criteria=["BAND-1", "BAND-2"],
                    ),
                    component(
                        "bills",
                        "Charging readings, and the bill as text.",
                        depends_on=["amounts", "bands"],
                        spec_sections=["Behaviour > Bills", "Interface"],
                        acceptance_criteria=["BILL-1", "BILL-2", "BILL-3"],
                    ),
                ]
            },
        ),
        ("select_component", {"name": "amounts", "reason": "The others rest on it."}),
        (
            "record_tasks",
            {
                "component": "amounts",
                "tasks": [
                    task(
                        "Exact amounts",
                        "`Money`, made from text, int or Decimal and from nothing else; sums and products keep "
                        "every decimal. With tests.",
                        "Amounts",
                        "Refuse floats and text that is no number",
                        "Add, and multiply by a quantity",
                    ),
                    task(
                        "Round to the penny",
                        "`Money.rounded`, half to even, and amounts as text with two decimals and commas between "
                        "the thousands. With tests.",
                        "Amounts",
                        "Round half to even",
                        "Show as text",
                    ),
                ],
            },
        ),
    ),
)

EXACT_AMOUNTS = Turn(
    "",
    (
        write("tariff/__init__.py", "package.py"),
        write("tariff/money.py", "money.py"),
        ("write_file", {"path": "tests/__init__.py", "content": ""}),
        write("tests/test_money.py", "test_money.py"),
        *finish("tariff-t1"),
    ),
)

ROUND_AMOUNTS = Turn(
    "",
    (
        edit(
            "tariff/money.py",
            "from decimal import Decimal, InvalidOperation\n",
            'from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation\n\nPENNY = Decimal("0.01")\n',
        ),
        edit(
            "tariff/money.py",
            "        return Money(self.pounds * quantity)\n",
            "        return Money(self.pounds * quantity)\n"
            "\n"
            "    def rounded(self) -> Money:\n"
            '        """To the penny, half to even."""\n'
            "        return Money(self.pounds.quantize(PENNY, ROUND_HALF_EVEN))\n"
            "\n"
            "    def __str__(self) -> str:\n"
            '        return f"{self.rounded().pounds:,.2f}"\n',
        ),
        edit(
            "tests/test_money.py",
            '            with self.subTest(text), self.assertRaisesRegex(ValueError, "no amount"):\n'
            "                Money.of(text)\n",
            '            with self.subTest(text), self.assertRaisesRegex(ValueError, "no amount"):\n'
            "                Money.of(text)\n"
            "\n"
            "\n"
            "class TestRounding(unittest.TestCase):\n"
            "    def test_a_half_penny_goes_to_the_even_side(self):\n"
            '        for exact, rounded in (("0.125", "0.12"), ("0.135", "0.14"), ("0.145", "0.14")):\n'
            "            with self.subTest(exact):\n"
            "                self.assertEqual(Money.of(exact).rounded(), Money.of(rounded))\n"
            "\n"
            "    def test_anything_but_a_half_goes_to_the_nearer_side(self):\n"
            '        self.assertEqual(Money.of("0.1251").rounded(), Money.of("0.13"))\n'
            '        self.assertEqual(Money.of("0.1349").rounded(), Money.of("0.13"))\n'
            "\n"
            "    def test_as_text_an_amount_is_rounded_and_grouped(self):\n"
            '        self.assertEqual(str(Money.of("1234.5")), "1,234.50")\n'
            '        self.assertEqual(str(Money.of("0.125")), "0.12")\n',
        ),
        *finish("tariff-t2"),
    ),
)

PLAN_BANDS = Turn(
    "",
    (
        ("select_component", {"name": "bands", "reason": "Bills need to know which price holds when."}),
        (
            "record_tasks",
            {
                "component": "bands",
                "tasks": [
                    task(
                        "Bands of the day",
                        "`Band.parse` reads a span and refuses what is none; `Band.holds` tells whether a minute "
                        "belongs to it, also over midnight. With tests.",
                        "Bands",
                        "Read a span",
                        "Tell which minutes it holds",
                    ),
                    task(
                        "A tariff that covers the day",
                        "`Tariff` refuses gaps and overlaps, naming the first minute concerned, and finds the band "
                        "of a time of day. With tests.",
                        "Bands",
                        "Refuse gaps and overlaps",
                        "Find the band of a time",
                    ),
                ],
            },
        ),
    ),
)

BANDS = Turn(
    "",
    (
        write("tariff/bands.py", "bands.py"),
        write("tests/test_bands.py", "test_bands.py"),
        *finish("tariff-t3"),
    ),
)

BANDS_OVER_MIDNIGHT = Turn(
    "The comparison is wrong for a span whose end is not after its start. Counted from the start, around the "
    "clock, both cases are one.",
    (
        edit(
            "tariff/bands.py",
            "        return self.start <= minute < self.end\n",
            "        length = (self.end - self.start) % MINUTES_A_DAY or MINUTES_A_DAY\n"
            "        return (minute - self.start) % MINUTES_A_DAY < length\n",
        ),
        *finish("tariff-t3"),
    ),
)

TARIFF = Turn(
    "",
    (
        write("tariff/tariff.py", "tariff.py"),
        write("tests/test_tariff.py", "test_tariff.py"),
        *finish("tariff-t4"),
    ),
)

PLAN_BILLS = Turn(
    "",
    (
        ("select_component", {"name": "bills", "reason": "All that it rests on is there."}),
        (
            "record_tasks",
            {
                "component": "bills",
                "tasks": [
                    task(
                        "Charge readings",
                        "`charge` turns readings and a tariff into a bill: a line for each band used, the standing "
                        "charge, and the total. With tests.",
                        "Bills",
                        "Sum the energy of each band",
                        "Count the days",
                        "Add the lines up",
                    ),
                    task(
                        "Print the bill",
                        "`render` shows a bill in aligned columns with the total last; the package offers the names "
                        "of the interface. With tests.",
                        "Bills",
                        "Align the columns",
                        "Export the interface",
                    ),
                ],
            },
        ),
    ),
)

CHARGE = Turn(
    "",
    (
        write("tariff/bill.py", "bill.py"),
        write("tests/test_bill.py", "test_bill.py"),
        *finish("tariff-t5"),
    ),
)

CHARGE_LINE_BY_LINE = Turn(
    "The judge is right: a member adds up what is printed. Each line is rounded when it is made, and the total "
    "only adds.",
    (
        ("read_research", {"topic": "rounding-half-to-even"}),
        edit(
            "tariff/bill.py",
            '    """The bill for the readings, each charged in the band in which it begins."""\n',
            '    """The bill for the readings, each charged in the band in which it begins.\n'
            "\n"
            "    Each line is rounded by itself, so that the total is the sum of what is printed.\n"
            '    """\n',
        ),
        edit("tariff/bill.py", "band.price * used[band])", "(band.price * used[band]).rounded())"),
        edit(
            "tariff/bill.py",
            '        lines.append(Line("standing charge", Decimal(count), unit, tariff.standing_charge * count))\n',
            "        standing = (tariff.standing_charge * count).rounded()\n"
            '        lines.append(Line("standing charge", Decimal(count), unit, standing))\n',
        ),
        edit("tariff/bill.py", "total.rounded())", "total)"),
        edit(
            "tests/test_bill.py",
            "    def test_no_readings_are_a_bill_of_nothing(self):\n",
            "    def test_the_total_is_the_sum_of_the_printed_lines(self):\n"
            '        readings = [reading("2026-03-02 12:00", "0.15"), reading("2026-03-02 23:00", "0.45")]\n'
            "        bill = charge(readings, Tariff((DAY, NIGHT)))\n"
            '        self.assertEqual([str(line.amount) for line in bill.lines], ["0.04", "0.04"])  # 0.045 each\n'
            '        self.assertEqual(str(bill.total), "0.08")\n'
            "\n"
            "    def test_no_readings_are_a_bill_of_nothing(self):\n",
        ),
        *finish("tariff-t5"),
    ),
)

PRINT = Turn(
    "",
    (
        write("tariff/printing.py", "printing.py"),
        write("tests/test_printing.py", "test_printing.py"),
        write("tariff/__init__.py", "interface.py"),
        write("tests/test_interface.py", "test_interface.py"),
        *finish("tariff-t6"),
    ),
)

TURNS: tuple[Turn, ...] = (
    LOOK_AROUND,
    PLAN,
    EXACT_AMOUNTS,
    ROUND_AMOUNTS,
    PLAN_BANDS,
    BANDS,
    BANDS_OVER_MIDNIGHT,
    TARIFF,
    PLAN_BILLS,
    CHARGE,
    CHARGE_LINE_BY_LINE,
    PRINT,
)

ROUNDED_APART = {
    "severity": "error",
    "message": (
        "The total is the rounded sum of exact amounts, while each line is rounded where it is printed. Two lines "
        "of 0.045 print as 0.04 and 0.04 under a total of 0.09. Round each line when it is made, and add those."
    ),
    "path": "tariff/bill.py",
    "line": 61,
    "criterion": "BILL-2",
}

MONEY = {
    "MONEY-1": "test_ten_times_ten_pence_is_one_pound and test_a_float_is_refused_by_name",
    "MONEY-2": "test_a_half_penny_goes_to_the_even_side has 0.125 and 0.135",
}
BAND_CRITERIA = {
    "BAND-1": "test_a_band_may_run_over_midnight: 22:00-06:00 holds 23:30 and 05:59, but not 06:00",
    "BAND-2": "tests/test_tariff.py names the first minute of a gap and of an overlap",
}
BILL = {
    "BILL-1": "tests/test_bill.py charges each reading where it begins, lines in the tariff's order",
    "BILL-2": "test_the_total_is_the_sum_of_the_printed_lines: 0.045 twice is 0.08",
    "BILL-3": "test_a_bill_is_a_table_that_ends_with_its_total compares the printed table whole",
}

VERDICTS: tuple[Mapping[str, Any], ...] = (
    verdict("Amounts are exact, floats are refused by name, and the tests would fail without either."),
    verdict(
        "Rounding is half to even through Decimal, text has two decimals; nothing else rounds on the way.",
        shown_by=MONEY,
    ),
    verdict(
        "Spans are read strictly, and the same count around the clock serves bands by day and over midnight."
    ),
    verdict(
        "Gaps and overlaps are refused with their first minute, and each time of day has one band.",
        {
            "severity": "info",
            "message": "The check walks all 1,440 minutes. That is fast enough, and easy to trust.",
            "path": "tariff/tariff.py",
        },
        shown_by=BAND_CRITERIA,
    ),
    verdict(
        "Readings find their band and lines their order, but BILL-2 does not hold.",
        ROUNDED_APART,
        passed=False,
    ),
    verdict(
        "Each line is rounded once and the total adds what is printed; a test shows the case that was wrong."
    ),
    verdict(
        "All seven criteria hold, and each is checked by a test that names its case.",
        shown_by={**MONEY, **BAND_CRITERIA, **BILL},
    ),
)
