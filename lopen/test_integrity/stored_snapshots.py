"""Stored snapshots (jest, vitest, insta, syrupy): what a test expects, written by a run of the code itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_STORED = re.compile(r"\.(?:snap|ambr)$")
_ENTRY = re.compile(r"^exports\[`(?P<name>.*)`\] = `", re.MULTILINE)
_SECTION = re.compile(r"^# name: (?P<name>.*)$", re.MULTILINE)
_HEADER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_SHOWN = 4


def snapshot_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for each file whose stored snapshots expect another output, or are gone while their tests stay."""
    stored = [change for change in changes if _STORED.search(change.path)]
    written = {text.strip() for change in stored for text in _entries(change.after).values()}
    tests = {change.path.rpartition("/")[2] for change in changes if not _STORED.search(change.path)}
    for change in stored:
        before, after = _entries(change.before), _entries(change.after)
        other = [name for name, text in before.items() if name in after and after[name] != text]
        if other:
            message = f"stored snapshots expect another output: {_listed(other)}; the code wrote it, see that it is right"
            yield Finding("warning", message, change.path)
        gone = [n for n, text in before.items() if n not in after and text.strip() not in written]
        if (
            gone
            and change.path.rpartition("/")[2].removesuffix(".snap") not in tests
            and not _is_insta(change)
        ):
            message = f"stored snapshots are gone, and the next run writes what it finds: {_listed(gone)}"
            yield Finding("warning", message, change.path)


def _is_insta(change: FileChange) -> bool:
    """Return True if a file holds one snapshot; insta fails a test without it."""
    return "exports[" not in (change.before or "")


def _entries(text: str | None) -> Mapping[str, str]:
    """The snapshots in a file by name; a file without names is one."""
    if not text:
        return {}
    text = "\n".join(text.splitlines())
    marks = [*_ENTRY.finditer(text)] or [*_SECTION.finditer(text)]
    if not marks:
        return {"the whole file": _HEADER.sub("", text).strip()}
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {mark["name"]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(name[:80] for name in names[:_SHOWN]) + more
