"""JUnit XML as a build tool writes it: the counts in it, read safely.

The file comes out of a sandboxed command, so it is hostile until read. Its size is bounded and no tree is built. A
document type declaration is refused, because its entities can expand without bound or read other files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat  # fed bounded data, with document types refused below

MAX_BYTES = 8_000_000


class UnreadableReport(Exception):
    """The report is no JUnit XML that can be read safely; the text says why."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Test cases in a report. `tests` counts every case; the others are parts of it.

    `ran` are the class and the name of each case that was not skipped, `failed` the failed ones among them,
    `left_out` the skipped cases.
    """

    tests: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    ran: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    failed: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    left_out: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def passed(self) -> int:
        """Cases that ran and succeeded."""
        return max(0, self.tests - self.failures - self.errors - self.skipped)


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
    left_out = tuple(ran[at] for at in sorted(skipped))
    ran = [each for at, each in enumerate(ran) if at not in skipped]
    return Counts(
        found["testcase"],
        found["failure"],
        found["error"],
        found["skipped"],
        tuple(ran),
        tuple(failed.values()),
        left_out,
    )
