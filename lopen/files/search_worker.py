"""Search files for a regular expression in a separate process that the caller can end.

A pattern from the model may backtrack without end. Another thread cannot interrupt Python's matcher; ending the
process does. Run as `python -I -S -c … main()`: JSON on standard input, JSON on standard output. The imports are
few because every search pays for them.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lopen.files.paths import Root
from lopen.files.protection import ToolRefused

MAX_FILE_BYTES = 2_000_000
MAX_TEXT = 400
_BEFORE_MATCH = 100


def matches(raw: bytes, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield (1-based line, its text around the match) for every matching line. Binary content has no matches."""
    if b"\0" not in raw[:8_192]:
        yield from matching_lines(raw.decode("utf-8", "replace"), pattern)


def matching_lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield (1-based line, its text around the match) for every matching line."""
    for number, line in enumerate(text.split("\n"), 1):
        found = pattern.search(line.removesuffix("\r"))
        if found:
            yield number, cut(line.removesuffix("\r"), found.start())


def cut(line: str, at: int) -> str:
    """Return at most `MAX_TEXT` characters of a line, including the position `at`."""
    if len(line) <= MAX_TEXT:
        return line
    start = max(0, min(at - _BEFORE_MATCH, len(line) - MAX_TEXT + 2))
    piece = line[start : start + MAX_TEXT - 2]
    return ("…" if start else "") + piece + ("…" if start + len(piece) < len(line) else "")


def search(root: Root, files: list[str], pattern: re.Pattern[str], limit: int) -> dict[str, Any]:
    """Return at most `limit` matches in `files`, in order; skip files that are too large or missing."""
    found: list[tuple[str, int, str]] = []
    large = 0
    for path in files:
        try:
            with root.open_file(path) as (descriptor, _):
                if os.fstat(descriptor).st_size > MAX_FILE_BYTES:
                    large += 1
                    continue
                with open(descriptor, "rb", closefd=False) as file:
                    raw = file.read(MAX_FILE_BYTES + 1)
        except ToolRefused:
            continue
        for number, text in matches(raw, pattern):
            if len(found) == limit:
                return {"matches": found, "truncated": True, "large": large}
            found.append((path, number, text))
    return {"matches": found, "truncated": False, "large": large}


def search_texts(texts: dict[str, str], pattern: re.Pattern[str], limit: int) -> dict[str, Any]:
    """Return at most `limit` matches in `texts` (path → text), in order."""
    lines = ((path, *match) for path, text in texts.items() for match in matching_lines(text, pattern))
    found = list(itertools.islice(lines, limit + 1))
    return {"matches": found[:limit], "truncated": len(found) > limit, "large": 0}


def main() -> None:
    """Read the request from standard input and print the answer."""
    request = json.load(sys.stdin)
    pattern, limit = re.compile(request["pattern"]), request["limit"]
    if "texts" in request:
        answer = search_texts(request["texts"], pattern, limit)
    else:
        answer = search(Root(Path(request["root"])), request["files"], pattern, limit)
    json.dump(answer, sys.stdout)
