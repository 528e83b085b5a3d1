"""Rust tests that stand in the file of the code: one version of a file with the tests of another one in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.suite import FileChange
from lopen.test_integrity.syntax import ParsedFile, parsed_file
from lopen.test_integrity.unread import MAX_CHARS

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TEST = re.compile(r"#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck)\b")
_BEFORE_AN_ITEM = frozenset({"attribute_item", "line_comment"})
_DEEPEST = 20  # modules in modules


def with_inline_changes(changes: Sequence[FileChange]) -> list[FileChange]:
    """Return the changed Rust files whose code holds tests that are there on both sides and differ."""
    return [
        change
        for change in changes
        if change.path.endswith(".rs")
        and change.before
        and change.after
        and max(len(change.before), len(change.after)) <= MAX_CHARS
        and with_tests_of(change.after.encode(), change.before) != change.after.encode()
    ]


def with_tests_of(source: bytes, other: str) -> bytes:
    """Return a file with each of its inline tests in the version of `other`, where that has it under the same name.

    Everything else stays, imports and functions that tests call too, so that most versions compile.
    """
    theirs, theirs_at = _tests(other)
    ours, ours_at = _tests(source.decode("utf-8", "replace"))
    text = ours.text
    for name, (start, end) in sorted(ours_at.items(), key=lambda item: -item[1][0]):
        if name in theirs_at:
            first, last = theirs_at[name]
            text = text[:start] + theirs.text[first:last] + text[end:]
    return text


def _tests(text: str) -> tuple[ParsedFile, dict[str, tuple[int, int]]]:
    """Return a parsed file, and where each of its tests stands with its attributes, by modules and name."""
    source = parsed_file(text, "rust")
    found: dict[str, tuple[int, int]] = {}
    _collect(source, source.root, "", found, 0)
    return source, found


def _collect(
    source: ParsedFile, body: Node, modules: str, found: dict[str, tuple[int, int]], depth: int
) -> None:
    start: int | None = None
    for item in body.named_children:
        start = item.start_byte if start is None else start
        if item.type in _BEFORE_AN_ITEM:
            continue
        name = f"{modules}::{source.name(item.child_by_field_name('name'))}"
        inner = item.child_by_field_name("body")
        if item.type == "mod_item" and inner is not None and depth < _DEEPEST:
            _collect(source, inner, name, found, depth + 1)
        elif item.type == "function_item" and _TEST.search(source.span(start, item.start_byte)):
            found[name] = (start, item.end_byte)
        start = None
