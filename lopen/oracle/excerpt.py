"""Cutting evidence to size: what is cut is said, and the biggest parts are cut first, so that small ones stay whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FILE = re.compile(r"^diff --git .*$", re.MULTILINE)
_OLD_PATH = re.compile(r"^--- (?:a/)?(.+?)\t?$", re.MULTILINE)
_NEW_PATH = re.compile(r"^\+\+\+ (?:b/)?(.+?)\t?$", re.MULTILINE)
_BINARY = re.compile(r"^(?:Binary files .* differ|GIT binary patch)$", re.MULTILINE)
_LOCK = re.compile(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|go\.sum|uv\.lock|gradle\.lockfile|"
    r"[\w.-]+\.lock|pnpm-lock\.yaml|bun\.lockb?)$"
)
_GENERATED = re.compile(
    r"(?:^|/)(?:dist|build|vendor|node_modules|third_party)/|\.(?:min\.js|min\.css|map|pb\.go|snap\.new)$|_pb2(?:_grpc)?\.py$"
)
_MARKER = re.compile(r"^\+.*(?:@generated|Code generated .* DO NOT EDIT)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file's part of a diff."""

    path: str
    text: str


def split_diff(diff: str) -> tuple[FileDiff, ...]:
    """The parts of a `git diff`, file by file; text without a file header is one part without a path."""
    starts = [found.start() for found in _FILE.finditer(diff)]
    if not starts:
        return (FileDiff("", diff),) if diff.strip() else ()
    ends = [*starts[1:], len(diff)]
    head = (FileDiff("", diff[: starts[0]]),) if diff[: starts[0]].strip() else ()
    return head + tuple(
        FileDiff(_path(diff[start:end]), diff[start:end]) for start, end in zip(starts, ends, strict=True)
    )


def _path(part: str) -> str:
    for pattern in (_NEW_PATH, _OLD_PATH):
        found = pattern.search(part)
        if found and found.group(1) != "/dev/null":
            return found.group(1).strip('"')
    header = part.partition("\n")[0]
    return header.rpartition(" b/")[2] or header


def summarised(part: FileDiff) -> FileDiff:
    """The part itself, or, for a lock file, a generated or a binary one, a line that says what it is."""
    if _BINARY.search(part.text):
        what = "a binary file"
    elif _LOCK.search(part.path):
        what = "a lock file"
    elif _GENERATED.search(part.path) or _MARKER.search(part.text):
        what = "a generated file"
    else:
        return part
    added = sum(1 for line in part.text.splitlines() if line.startswith("+") and not line.startswith("+++"))
    removed = sum(1 for line in part.text.splitlines() if line.startswith("-") and not line.startswith("---"))
    head = part.text.partition("\n")[0]
    return FileDiff(part.path, f"{head}\n[{what}; {added} lines added, {removed} removed, not shown]\n")


def shares(sizes: Sequence[int], limit: int) -> list[int]:
    """What each of `sizes` may keep so that together they keep at most `limit`: the small ones whole."""
    kept = [0] * len(sizes)
    left = max(0, limit)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for position, index in enumerate(order):
        kept[index] = min(sizes[index], left // (len(order) - position))
        left -= kept[index]
    return kept


def cut(text: str, limit: int, *, what: str) -> str:
    """`text` in at most `limit` characters: whole lines from its start, then a line saying how much is left out."""
    if len(text) <= limit:
        return text
    note = f"\n[cut: {len(text)} characters of {what} in all, the rest is left out]\n"
    room = limit - len(note)
    if room <= 0:
        return note.strip()[: max(0, limit)]
    head = text[:room]
    whole_lines, newline, _ = head.rpartition("\n")
    return (whole_lines if newline else head) + note


def cut_all(parts: Sequence[tuple[str, str]], limit: int) -> list[tuple[str, str]]:
    """(name, text) pairs whose texts together take at most `limit` characters."""
    kept = shares([len(text) for _, text in parts], limit)
    return [(name, cut(text, size, what=name)) for (name, text), size in zip(parts, kept, strict=True)]
