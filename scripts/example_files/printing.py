"""A bill as text, in columns that line up."""

from __future__ import annotations

from tariff.bill import Bill

GAP = "  "


def render(bill: Bill) -> str:
    """The bill as a table: a line for each charge, a rule, and the total last."""
    rows = [(line.label, f"{line.quantity:f} {line.unit}", str(line.amount)) for line in bill.lines]
    rows.append(("total", "", str(bill.total)))
    labels, quantities, amounts = (max(map(len, column)) for column in zip(*rows, strict=True))
    printed = [
        GAP.join((label.ljust(labels), quantity.rjust(quantities), amount.rjust(amounts)))
        for label, quantity, amount in rows
    ]
    rule = "-" * len(printed[0])
    return "\n".join([*printed[:-1], rule, printed[-1]]) + "\n"
