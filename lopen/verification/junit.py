"""JUnit XML as a build tool writes it: the test cases in it, read safely.

The file comes out of a sandboxed command, so it is hostile until read. Its size is bounded and no tree is built. A
document type declaration is refused, because its entities can expand without bound or read other files.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.parsers import expat  # fed bounded data, with document types refused below

MAX_BYTES = 8_000_000


class UnreadableReport(Exception):
    """The report is no JUnit XML that can be read safely; the text says why."""


Case = tuple[str, str]  # its class and its name


@dataclass(frozen=True, slots=True)
class Report:
    """The test cases of a report: those that ran, those of them that failed, and the skipped ones."""

    ran: tuple[Case, ...]
    failed: tuple[Case, ...] = ()
    skipped: tuple[Case, ...] = ()


def read_report(data: bytes, *, limit: int = MAX_BYTES) -> Report:
    """The cases of a JUnit XML document; `UnreadableReport` where it is too big, malformed or has a DTD.

    Cases are read one by one: the totals that a document claims for itself are often of one suite only.
    """
    if len(data) > limit:
        raise UnreadableReport(f"the report is larger than {limit} bytes")
    cases: list[Case] = []
    outcomes: dict[int, set[str]] = {}  # by the case's place
    open_elements: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if not open_elements and name not in {"testsuites", "testsuite"}:
            raise UnreadableReport(f"the report's root is not a test suite: {name[:80]}")
        if name == "testcase":
            outcomes[len(cases)] = set()
            cases.append((attributes.get("classname", ""), attributes.get("name", "")))
        elif open_elements and open_elements[-1] == "testcase":
            outcomes[len(cases) - 1].add(name)
        open_elements.append(name)

    def end(_: str) -> None:
        open_elements.pop()

    def refuse(*_: object) -> None:
        raise UnreadableReport("the report has a document type declaration, which is refused")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UnreadableReport(f"the report is not well-formed XML: {error}") from error
    return Report(
        tuple(case for at, case in enumerate(cases) if "skipped" not in outcomes[at]),
        tuple(case for at, case in enumerate(cases) if outcomes[at] & {"failure", "error"}),
        tuple(case for at, case in enumerate(cases) if "skipped" in outcomes[at]),
    )
