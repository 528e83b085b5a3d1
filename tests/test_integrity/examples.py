"""The shape of a row: a change, what it is called, and what must be found in it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from lopen.oracle.verdict import Severity
from lopen.test_integrity import FileChange


@dataclass(frozen=True)
class Example:
    """`worst` is the severity of the worst finding (None: there must be none at all); `says` stands in a message."""

    title: str
    changes: tuple[FileChange, ...]
    worst: Severity | None
    says: str = ""


def change(path: str, before: str | None, after: str | None) -> FileChange:
    """A changed file from indented literals."""
    return FileChange(path, _text(before), _text(after))


def swap(text: str, old: str, new: str) -> tuple[str, str]:
    """The text, and the text with the first `old` replaced."""
    assert old in text
    return text, text.replace(old, new, 1)


def _text(literal: str | None) -> str | None:
    return None if literal is None else dedent(literal).lstrip("\n")


def tampered(title: str, says: str, *changes: FileChange, worst: Severity = "error") -> Example:
    """A row in which something must be found."""
    return Example(title, changes, worst, says)


def innocent(title: str, *changes: FileChange) -> Example:
    """A row in which nothing may be found."""
    return Example(title, changes, None)
