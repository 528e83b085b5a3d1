"""Test cases in JUnit XML, read from hostile files."""

from __future__ import annotations

import pytest

from lopen.verification.junit import Report, UnreadableReport, read_report

REPORT = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites>
  <testsuite name="pytest" errors="0" failures="9" skipped="9" tests="99">
    <testcase classname="a" name="passes"/>
    <testcase classname="a" name="fails"><failure message="x">trace</failure></testcase>
    <testcase classname="a" name="breaks"><error message="x"/></testcase>
    <testcase classname="a" name="later"><skipped message="x"/></testcase>
  </testsuite>
  <testsuite><testsuite><testcase name="deep"><system-out><failure/></system-out></testcase></testsuite></testsuite>
</testsuites>
"""


def test_cases_are_read_one_by_one() -> None:
    ran = (("a", "passes"), ("a", "fails"), ("a", "breaks"), ("", "deep"))

    assert read_report(REPORT) == Report(ran, ran[1:3], (("a", "later"),))


def test_a_report_without_cases_has_none() -> None:
    assert read_report(b"<testsuite tests='3'/>") == Report(())


LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""
FILE = b"""<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuite>&f;</testsuite>"""


@pytest.mark.parametrize("document", [LAUGHS, FILE, b"<!DOCTYPE testsuite><testsuite/>"])
def test_a_document_type_is_refused(document: bytes) -> None:
    with pytest.raises(UnreadableReport, match="document type"):
        read_report(document)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "not well-formed"),
        (b"<testsuite>", "not well-formed"),
        (b"no xml", "not well-formed"),
        (b"<html/>", "not a test suite"),
        (b"<testsuite>" + b" " * 200 + b"</testsuite>", "larger than 100"),
    ],
)
def test_what_is_no_report_is_refused(document: bytes, why: str) -> None:
    with pytest.raises(UnreadableReport, match=why):
        read_report(document, limit=100)
