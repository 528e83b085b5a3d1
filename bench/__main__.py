"""`python -m bench [NAME ...]`: every measurement, or those named. Ratios stand against floors of the same run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from bench.rows import Row, printed

TABLES = (
    "turns",
    "requests",
    "memory",
    "saving",
    "documents",
    "guardrails",
    "limits",
    "day",
    "sandbox",
    "resume",
)


def tables() -> Mapping[str, Callable[[], Iterator[Row]]]:
    """The measurements there are, in order."""
    found: dict[str, Callable[[], Iterator[Row]]] = {}
    for name in TABLES:
        try:
            found[name] = import_module(f"bench.{name}").rows
        except (ImportError, AttributeError) as error:
            print(f"     {name}: not measured ({error})")
    return found


def main(wanted: list[str]) -> int:
    """Measure and print; 1 where a target is missed."""
    met = True
    for name, rows in tables().items():
        if not wanted or name in wanted:
            met = printed(rows()) and met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
