"""`python -m bench [NAME ...]`: every measurement, or those named. Ratios stand against floors of the same run.

`NAME.PART` is one function of a table alone: `python -m bench queue.waiting`.
"""

from __future__ import annotations

import sys
from importlib import import_module

from bench.rows import printed

TABLES = ("startup", "turns", "limits", "day", "sandbox", "cleanroom", "verification", "queue")


def main(wanted: list[str]) -> int:
    """Measure and print; 1 where a target is missed, 2 for a name that is none."""
    unknown = sorted({name.partition(".")[0] for name in wanted} - set(TABLES))
    if unknown:
        print(f"no measurement is called {', '.join(unknown)}; there are: {', '.join(TABLES)}")
        return 2
    parts = [name.partition(".")[::2] for name in wanted or TABLES]
    measured = [getattr(import_module(f"bench.{table}"), part or "rows") for table, part in parts]
    met = [printed(rows()) for rows in measured]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
