"""What came of the attempts, by class and mode: tried, held, out. `python -m tests.sandbox.table` runs them all."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from lopen.sandbox.choice import probe
from tests.sandbox.escapes import ALL, CLASSES
from tests.sandbox.world import a_world

Outcome = Literal["held", "out", "not tried"]
Key = tuple[str, str]  # class and mode

KINDS = {attempt.name: kind for kind, attempts in CLASSES.items() for attempt in attempts}


def drawn(outcomes: Iterable[tuple[str, str, Outcome]]) -> list[str]:
    """The lines of the table, from (name of the attempt, mode, what came of it)."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for name, mode, outcome in outcomes:
        counts[KINDS[name], mode, outcome] += 1
    head = f"{'':32}" + "".join(f"{mode:>22}" for mode in ALL)
    unit = f"{'tried / held / out':32}" + "".join(f"{'tried':>10}{'held':>6}{'out':>6}" for _ in ALL)
    total: Counter[tuple[str, str]] = Counter()
    lines = [head, unit]
    for kind in CLASSES:
        lines.append(f"{kind:32}" + "".join(_cells(counts, kind, mode, total) for mode in ALL))
    cells = (
        f"{total[m, 'held'] + total[m, 'out']:>10}{total[m, 'held']:>6}{total[m, 'out']:>6}" for m in ALL
    )
    return [*lines, f"{'all':32}" + "".join(cells)]


def _cells(
    counts: Mapping[tuple[str, str, str], int], kind: str, mode: str, total: Counter[tuple[str, str]]
) -> str:
    held, out = counts[kind, mode, "held"], counts[kind, mode, "out"]
    total[mode, "held"] += held
    total[mode, "out"] += out
    return f"{held + out:>10}{held:>6}{out:>6}" if held + out else f"{'-':>10}{'-':>6}{'-':>6}"


def main() -> int:
    """Run every attempt in every mode that works here; 1 where one was not withstood."""
    outcomes: list[tuple[str, str, Outcome]] = []
    told: list[str] = []
    with a_world() as world:
        for attempt in (attempt for attempts in CLASSES.values() for attempt in attempts):
            for mode in attempt.modes:
                if not probe(mode).works:
                    outcomes.append((attempt.name, mode, "not tried"))
                    continue
                world.renew()
                achieved = world.attempt(mode, attempt.line)
                outcomes.append((attempt.name, mode, "out" if achieved else "held"))
                told += [f"{mode}: {attempt.name}: {', '.join(achieved)}"] if achieved else []
    sys.stdout.write("\n".join([*drawn(outcomes), *told, ""]))
    return 1 if told else 0


if __name__ == "__main__":
    os.environ.pop("PYTHONSTARTUP", None)
    sys.exit(main())
