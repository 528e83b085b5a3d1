"""`make crash`: kill a whole build at its system calls, resume it, and see that nothing is lost or done twice.

    python -m tests.crash.sweep [--points FROM:TO] [--workers N] [--modes all,lopen,twice]

A point is one build of a small module of two tasks, killed just before one system call that leaves something
behind, and resumed. The modes: `all` kills every process at once, as a power cut does, at each call of any of
them; `lopen` kills lopen alone at each of its own calls, and what it had started runs on; `twice` kills the resume
too.

Points come in an order in which any beginning is spread evenly over the build, so that a part tells of the whole;
`--points` goes on where an earlier run stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from queue import Queue
from typing import Literal

from tests.crash.building import Site, Standard, answer, endpoint, lost
from tests.endpoint import Turn
from tests.preloaded import watched
from tests.preloaded.runs import Fate, Hung, Outcome, Preloaded

Mode = Literal["all", "lopen", "twice"]
WORDS: Mapping[Mode, str] = {
    "all": "every process at once, at any call of any of them",
    "lopen": "lopen alone, at its own calls",
    "twice": "the build, and then the resume too",
}
MODES: Sequence[Mode] = tuple(WORDS)
SHARE = 12  # one call in so many is killed twice
MEMORY = Path("/dev/shm")  # a killed process loses nothing that a file system in memory keeps


@dataclass(frozen=True)
class Point:
    """Where a build is killed: the `at`-th call (of lopen's own, for `lopen`)."""

    mode: Mode
    at: int

    def __str__(self) -> str:
        return f"{self.mode} #{self.at}"


@dataclass
class Tried:
    """What became of a point. `kind` is the call it was killed at, empty where the build ended before it."""

    point: Point
    kind: str
    wrong: list[str] = field(default_factory=list)


def points(calls: Sequence[tuple[str, bool]], modes: Sequence[str] = MODES) -> list[Point]:
    """Every point of a build with these calls, each mode spread evenly and the modes taking turns."""
    own = sum(lopens for _, lopens in calls)
    every: dict[str, list[Point]] = {
        "all": [Point("all", n) for n in spread(len(calls))],
        "lopen": [Point("lopen", n) for n in spread(own)],
        "twice": [Point("twice", n) for n in spread(len(calls))[::SHARE]],
    }
    turns = zip_longest(*(every[mode] for mode in modes))
    return [point for point in chain.from_iterable(turns) if point is not None]


def spread(count: int) -> list[int]:
    """1 to `count`, in an order whose every beginning is spread evenly (the digits of the binary number reversed)."""
    return sorted(range(1, count + 1), key=lambda n: int(f"{n:020b}"[::-1], 2))


class Killer:
    """Lets calls go on until the chosen one."""

    def __init__(self, at: int, fate: Fate, *, own: bool) -> None:
        self._left = at
        self._fate = fate
        self._own = own
        self.kind = ""

    def __call__(self, call: watched.Call, own: bool) -> Fate:
        if self._own and not own:
            return "go on"
        self._left -= 1
        if self._left:
            return "go on"
        self.kind = call.name
        return self._fate


def tried(site: Site, standard: Standard, point: Point) -> Tried:
    """Build, kill, resume, and compare."""
    with site.project() as root:
        try:
            kind, killed = _killed(site, root, point)
            before = site.found(root)
            resumed = _resumed(site, root, point, standard)
        except Hung as hung:
            return Tried(point, "?", [f"hung: {hung}"])
        kills = 1 + (point.mode == "twice")
        wrong = lost(standard, before, site.found(root), resumed, site.asked, kills)
        if not killed.killed and killed.code not in (0, -signal.SIGKILL):
            wrong.append(f"the build ended with {killed.code} by itself")
        return Tried(point, kind, wrong)


def _killed(site: Site, root: Path, point: Point) -> tuple[str, Outcome]:
    alone = point.mode == "lopen"
    killer = Killer(point.at, "kill lopen" if alone else "kill all", own=alone)
    outcome = site.lopen(root, "run", "calc", decide=killer, orphans="waited for" if alone else "ended")
    return killer.kind, outcome


def _resumed(site: Site, root: Path, point: Point, standard: Standard) -> Outcome:
    if point.mode == "twice":
        again = 1 + point.at * 7919 % len(standard.calls)
        site.resume(root, decide=Killer(again, "kill all", own=False))
    return site.resume(root)


@contextmanager
def sites(workers: int, model: Turn = answer) -> Iterator[list[Site]]:
    """Places to build in side by side, each with its own preloaded lopen and endpoint."""
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lopen-crash-", dir=where)))
        preloaded = [stack.enter_context(Preloaded()) for _ in range(workers)]
        made = []
        for n, each in enumerate(preloaded):
            own = folder / str(n)
            own.mkdir()
            made.append(Site(own, each, stack.enter_context(endpoint(model))))
        yield made


def sweep(places: Sequence[Site], standard: Standard, chosen: Sequence[Point]) -> Iterator[Tried]:
    """Try the points side by side, each as soon as a place is free."""
    free = Queue[Site]()
    for site in places:
        free.put(site)

    def one(point: Point) -> Tried:
        site = free.get()
        try:
            return tried(site, standard, point)
        finally:
            free.put(site)

    pool = ThreadPoolExecutor(len(places))
    try:
        for done in as_completed([pool.submit(one, point) for point in chosen]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C ends it after the points under way


def table(results: Sequence[Tried]) -> str:
    """Return how many points were tried, survived and lost, as the table of docs/recovery.md."""
    lines = ["| killed | tried | survived | lost |", "|---|---|---|---|"]
    for mode, words in WORDS.items():
        lines.append(_row(words, [r for r in results if r.point.mode == mode]))
    return "\n".join([*lines, _row("**all**", results)])


def _row(words: str, results: Sequence[Tried]) -> str:
    bad = sum(bool(r.wrong) for r in results)
    return f"| {words} | {len(results)} | {len(results) - bad} | {bad} |"


def say(line: str) -> None:
    """A line for whoever waits."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Sweep and print; 1 where something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.sweep")
    parser.add_argument("--points", default=":", metavar="FROM:TO", help="which points, counted from 0")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--modes", default=",".join(MODES))
    options = parser.parse_args(arguments)
    if why := watched.available():
        say(f"nothing was swept: {why}")
        return 1
    first, _, last = options.points.partition(":")
    began = time.monotonic()
    results: list[Tried] = []
    with sites(options.workers) as places:
        standard = places[0].standard()
        every = points(standard.calls, options.modes.split(","))
        chosen = every[int(first or 0) : int(last) if last else None]
        say(
            f"a build makes {len(standard.calls)} calls that leave something; {len(chosen)} of {len(every)} points"
        )
        for result in sweep(places, standard, chosen):
            results.append(result)
            for line in result.wrong:
                say(f"LOST at {result.point} ({result.kind}): {line}")
            if len(results) % 50 == 0:
                spent = time.monotonic() - began
                say(f"{len(results)} of {len(chosen)} points, {spent / len(results):.2f} s each")
    say(table(results))
    return int(any(r.wrong for r in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
