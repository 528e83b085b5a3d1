"""What holds for any change: no error, no finding where nothing changed, bounded work."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lopen.test_integrity import FileChange, find_tampering
from lopen.test_integrity.detect import MAX_FINDINGS
from tests.test_integrity.test_corpus import ENTRIES

CHANGES = [change for entry in ENTRIES for change in entry.changes]
changes = st.sampled_from(CHANGES)


@pytest.mark.parametrize("path", sorted({change.path for change in CHANGES}))
def test_a_file_that_did_not_change_has_no_findings(path: str) -> None:
    same = [
        FileChange(path, text, text)
        for change in CHANGES
        if change.path == path
        for text in (change.before, change.after)
        if text is not None
    ]

    assert [find_tampering([change]) for change in same] == [()] * len(same)


@pytest.mark.parametrize("path", sorted({change.path for change in CHANGES}))
def test_blank_lines_and_line_ends_are_no_change(path: str) -> None:
    for change in CHANGES:
        text = change.after
        if change.path == path and text is not None and "\0" not in text:
            assert find_tampering([FileChange(path, text, text + "\n\n")]) == ()


@settings(max_examples=150)
@given(changes, st.data())
def test_text_cut_anywhere_is_read_as_far_as_it_can_be(change: FileChange, data: st.DataObject) -> None:
    text = change.after or change.before or ""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))

    find_tampering([FileChange(change.path, text, text[:start] + text[end:])])
    find_tampering([FileChange(change.path, text[start:end], text)])


@settings(max_examples=150)
@given(changes, st.text(), st.text())
def test_any_text_is_read_without_error(change: FileChange, before: str, after: str) -> None:
    find_tampering([FileChange(change.path, before, after)])


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("tests/test_a.py", "("),
        ("a.test.ts", "it("),
        ("a.test.ts", "it('a', () => {"),
        ("a.test.ts", "`${"),
        ("a_test.go", "func TestA(t *testing.T) {\n"),
        ("src/a.rs", "#[test]\nfn a() {"),
        ("src/a.rs", "/*"),
        ("src/test/java/ATest.java", "@Test void a() {"),
        ("src/test/java/ATest.java", "@A("),
        ("src/main/java/A.java", " \n"),
        ("tests/test_a.py", "class A(A, B):\n    def setUp(self):\n        self.skipTest()\n"),
        ("a.test.ts", "const it = ("),
        ("a.test.ts", "beforeEach(() => {this.skip();"),
        ("a.test.ts", "{process.exit(0)"),
        ("a_test.go", "func TestMain(m *testing.M) {\n"),
        ("src/a.rs", "#[test]\nfn a() { process::exit(0)"),
        ("src/test/java/ATest.java", "@BeforeEach void a() { assumeTrue("),
        ("src/test/java/ATest.java", "static {"),
        ("pom.xml", "test {"),
        ("Makefile", "cargo x "),
    ],
)
def test_hostile_nesting_and_repetition_end(path: str, unit: str) -> None:
    text = unit * (20_000 // len(unit))

    find_tampering([FileChange(path, text, text + " ")])


def test_a_flood_of_findings_is_bounded_and_keeps_the_worst() -> None:
    before = "".join(f"def test_{i}():\n    assert f({i}) == {i}\n\n" for i in range(200))
    after = before.replace("== ", ">= ")

    weakened = [FileChange(f"tests/test_{n}.py", before, after) for n in range(2)]
    found = find_tampering([*weakened, FileChange("tests/test_z.py", before, None)])

    assert len(found) == MAX_FINDINGS
    assert found[0].severity == "error"
    assert "200 tests" in found[0].message
