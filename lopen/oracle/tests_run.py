"""Which tests a run of the test command ran, as far as the runner names them, and how many.

The names come from lopen's own record of Python runs, else from what the runner printed: of single tests, of files or
of packages. docs/reference/completion.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lopen.oracle.junit import Counts
from lopen.oracle.runner_output import plain

MOST_NAMES = 5_000  # of one kind; of more, only the count is kept

_TEST, _TITLE, _FILE, _PACKAGE = "test", "title", "file", "package"
_SCRIPT = r"[\w@./-]+\.[cm]?[jt]sx?"
_NAMED = re.compile(
    rf"^[ \t]*(?:[✔✓√✖✗×❯]|PASS|FAIL) +(?:\|[^|\n]*\| +)?(?P<file>{_SCRIPT})(?=$|[ (])"
    r"|^[ \t]*(?:not )?ok \d+ - (?P<title>[^\n]*?)(?: #[^\n]*)?$"
    r"|^[ \t]*[✔✓√✖✗﹣] +(?P<spec>[^\n]*?)(?: \(?[\d.]+ ?m?s\)?)?(?: #[^\n]*)?$"
    r"|^[ \t]*--- (?:PASS|FAIL|SKIP): (?P<go>[^\s/]+)[^\n]*$"
    r"|^(?:ok|FAIL)[ \t]+(?P<package>\S+)[ \t]+(?:\(cached\)|[\d.]+s)(?![^\n]*no tests to run)"
    r"|^test (?P<cargo>\S+)(?: - [^\n]*)? \.\.\. (?:ok|FAILED|ignored)",
    re.MULTILINE,
)
_KINDS = {"file": _FILE, "package": _PACKAGE}

# The numbers of a runner's own summary, together how many tests it ran; a line with a total has that alone
_SUMMARIES: Mapping[str, str] = {
    "pytest": r"^(?:=+ )?(?=(?:\d+ \w+, ){0,9}\d+ \w+ in [\d.]+s)(?P<parts>[^\n]*)",
    "unittest": r"^Ran (?P<total>\d+) tests? in ",
    "node --test": r"^(?:#|ℹ) tests (?P<total>\d+)$",
    "jest": r"^[ \t]*Tests: [^\n]*\b(?P<total>\d+) total$",
    "vitest": r"^[ \t]*Tests +[^\n:]*\((?P<total>\d+)\)$",
    "mocha": r"^[ \t]*(?P<total>\d+) (?:passing|failing|pending)\b",
    "cargo": r"^test result: (?P<parts>[^\n]*)",
    "nextest": r"^[ \t]*Summary \[[^\n]*\b(?P<total>\d+) tests? run",
    "rspec": r"^(?P<total>\d+) examples?, \d+ failures?",
    "phpunit": r"^(?:OK \(|Tests: )(?P<total>\d+)(?: tests?,|,)",
    "dotnet": r"^[ \t]*(?:Passed|Failed)!\s+-[^\n]*Total:\s*(?P<total>\d+)",
    "deno": r"^(?:ok|FAILED) \| (?P<parts>[^\n]*)",
    "ctest": r"tests passed, \d+ tests failed out of (?P<total>\d+)",
    "maven": r"^\[(?:INFO|WARNING|ERROR)\] Tests run: (?P<total>\d+), Failures: \d+, Errors: \d+, Skipped: \d+$",
}
_COUNTS = tuple(re.compile(pattern, re.MULTILINE) for pattern in _SUMMARIES.values())
_PARTS = re.compile(r"(?<!\d)(\d{1,9}) (?:failed|passed|skipped|ignored|xfailed|xpassed|errors?)\b")


@dataclass(frozen=True)
class TestsRun:
    """The tests of one run: their number, None where no runner told it, and the names that are known, by kind.

    `test` names are `path::name`; `title` ones are a test's own name alone; `file` and `package` ones are places of
    tests that ran.
    """

    __test__ = False

    count: int | None = None
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def _known(self) -> Mapping[str, frozenset[str]]:
        return {kind: frozenset(names) for kind, names in self.names.items()}

    def ran(self, path: str, name: str) -> bool | None:
        """Return whether the test `name` of the file ran; None where the run's names do not tell."""
        folder, name = path.rpartition("/")[0], name.removesuffix(" (skipped)")
        short = re.split(r"::| > |/", name)[-1]
        if path.endswith(".py"):
            return self._any(_TEST, _suffixes(f"{path}::{name}"))
        if path.endswith("_test.go"):
            titles = self._any(_TITLE, [short, name.split("/")[0]])
            if titles is not None:
                return titles
            return None if not folder else self._package(folder)
        found = self._any(_FILE, _suffixes(path))
        return found if found is not None else self._any(_TITLE, [short])

    def _any(self, kind: str, wanted: Iterable[str]) -> bool | None:
        known = self._known.get(kind)
        return None if not known else any(name in known for name in wanted)

    def _package(self, folder: str) -> bool | None:
        known = self._known.get(_PACKAGE)
        return None if not known else any(f"/{name}".endswith(f"/{folder}") for name in known)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return {"count": self.count, "names": {kind: list(names) for kind, names in self.names.items()}}


def run_from_json(data: Mapping[str, Any]) -> TestsRun:
    """Return the run that `to_json` gave."""
    return TestsRun(data["count"], {kind: tuple(names) for kind, names in data["names"].items()})


def read_run(
    output: str,
    report: Counts | None,
    noted: tuple[int | None, tuple[str, ...]],
) -> TestsRun:
    """Return what is known of a run. `noted` is lopen's own record of it; a `report` counts more than the output."""
    text = plain(output)
    count, tests = noted
    names: dict[str, set[str]] = {_TEST: set(tests)}
    for found in _NAMED.finditer(text):
        group = found.lastgroup or ""
        names.setdefault(_KINDS.get(group, _TITLE), set()).add(
            found[group].rpartition("::")[2] if group == "cargo" else found[group]
        )
    if count is None:
        count = report.tests if report is not None else _counted(text)
    kept = {kind: tuple(sorted(each)) for kind, each in names.items() if 0 < len(each) <= MOST_NAMES}
    return TestsRun(count, kept)


def _counted(text: str) -> int | None:
    """Return the sum of the summaries in the text, None where there is none."""
    counts = [
        int(groups["total"]) if "total" in groups else sum(map(int, _PARTS.findall(groups["parts"])))
        for pattern in _COUNTS
        for found in pattern.finditer(text)
        if (groups := found.groupdict())
    ]
    return sum(counts) if counts else None


def _suffixes(path: str) -> Iterable[str]:
    """Yield the path from each of its folders on: a command may run in a folder, or name paths from one."""
    before, _, behind = path.partition("::")
    parts = before.split("/")
    rest = f"::{behind}" if behind else ""
    return ["/".join(parts[at:]) + rest for at in range(len(parts))]
