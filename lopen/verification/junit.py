"""JUnit XML as a test command writes it: where the command says it goes, and the counts in it, read safely.

The file comes out of a sandboxed command, so it is hostile until read: its size is bounded, no tree is built, and
a document type declaration, through which entities expand without bound or read other files, is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat  # fed bounded data, with document types refused below

from lopen.core.shell import simple_commands

MAX_BYTES = 8_000_000
_OPTION = re.compile(r"^--junit-?xml(?:=(?P<path>.+))?$")
_INI_OPTION = re.compile(r"^--(?:reporter-)?output(?:File|-file)(?:\.junit)?=(?P<path>.+\.xml)$")


class UnreadableReport(Exception):
    """The report is no JUnit XML that can be read safely; the text says why."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Test cases in a report. `tests` counts every case; the others are parts of it.

    `ran` are the class and the name of each case that was not skipped, `failed` those of them that failed.
    """

    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    ran: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    failed: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def passed(self) -> int:
        """Cases that ran and succeeded."""
        return max(0, self.tests - self.failures - self.errors - self.skipped)


def report_path(command: str) -> str | None:
    """The path to which `command` writes JUnit XML, as the command says it; None where it names none."""
    words = [word for simple in simple_commands(command) for word in simple.words]
    for index, word in enumerate(words):
        found = _OPTION.match(word)
        if found and found["path"]:
            return found["path"]
        if found and index + 1 < len(words):
            return words[index + 1]
        if found := _INI_OPTION.match(word):
            return found["path"]
    return None


def read_counts(data: bytes, *, limit: int = MAX_BYTES) -> Counts:
    """The counts of a JUnit XML document; `UnreadableReport` where it is too big, malformed or has a DTD.

    Cases are counted one by one: the totals that a document claims for itself are often of one suite only.
    """
    if len(data) > limit:
        raise UnreadableReport(f"the report is larger than {limit} bytes")
    found = {"testcase": 0, "failure": 0, "error": 0, "skipped": 0}
    open_elements: list[str] = []
    ran: list[tuple[str, str]] = []
    skipped: set[int] = set()
    failed: dict[int, tuple[str, str]] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        parent = open_elements[-1] if open_elements else ""
        if name == "testcase" or (parent == "testcase" and name in found):
            found[name] += 1
        if name == "testcase":
            ran.append((attributes.get("classname", ""), attributes.get("name", "")))
        elif (parent, name) == ("testcase", "skipped"):
            skipped.add(len(ran) - 1)
        elif parent == "testcase" and name in ("failure", "error"):
            failed[len(ran) - 1] = ran[-1]
        open_elements.append(name)

    def end(_: str) -> None:
        open_elements.pop()

    root: list[str] = []

    def first(name: str, attributes: dict[str, str]) -> None:
        root.append(name)
        parser.StartElementHandler = start
        start(name, attributes)

    def refuse(*_: object) -> None:
        raise UnreadableReport("the report has a document type declaration, which is refused")

    parser = expat.ParserCreate()
    parser.StartElementHandler = first
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UnreadableReport(f"the report is not well-formed XML: {error}") from error
    if root[0] not in {"testsuites", "testsuite"}:
        raise UnreadableReport(f"the report's root is not a test suite: {root[0][:80]}")
    ran = [each for at, each in enumerate(ran) if at not in skipped]
    return Counts(
        found["testcase"],
        found["failure"],
        found["error"],
        found["skipped"],
        tuple(ran),
        tuple(failed.values()),
    )
