"""`python -m bench [NAME ...]`: every measurement, or those named. Ratios stand against floors of the same run."""

from __future__ import annotations

import sys
from importlib import import_module

from bench.rows import printed

TABLES = ("startup", "turns", "limits", "day", "sandbox", "cleanroom", "verification", "queue")


def main(wanted: list[str]) -> int:
    """Measure and print; 1 where a target is missed, 2 for a name that is none."""
    unknown = sorted(set(wanted) - set(TABLES))
    if unknown:
        print(f"no measurement is called {', '.join(unknown)}; there are: {', '.join(TABLES)}")
        return 2
    measured = [import_module(f"bench.{name}").rows for name in TABLES if not wanted or name in wanted]
    met = [printed(rows()) for rows in measured]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
