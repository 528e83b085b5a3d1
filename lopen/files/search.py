"""Search files or texts for a regular expression within a time limit.

A pattern from the model may backtrack without end. Another thread cannot interrupt Python's matcher; ending the
process does. So `main` runs in a process of its own: JSON on standard input, JSON on standard output.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from lopen.files.paths import Root
from lopen.files.protection import ToolRefused

MAX_MATCHES = 200
MAX_PATTERN = 1_000
MAX_FILE_BYTES = 2_000_000
MAX_TEXT = 400
_BEFORE_MATCH = 100
_BINARY_PROBE = 8_192
TIMEOUT_S = 10.0
_PACKAGE_FOLDER = Path(__file__).parents[2]
_WORKER = "import sys; sys.path.insert(0, sys.argv[1]); from lopen.files.search import main; main()"


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line; of a long line, `text` is the part around the match."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matches of a search. `note` names the omitted matches and how to see them."""

    matches: tuple[Match, ...]
    truncated: bool
    note: str = ""

    @property
    def text(self) -> str:
        """Return the matches for a model: the path of each file, then its lines as `number: text`."""
        lines = []
        for path, found in itertools.groupby(self.matches, key=attrgetter("path")):
            lines += [path if path.isprintable() else repr(path), *(f"{m.line}: {m.text}" for m in found)]
        return "\n".join(lines)


def check_pattern(pattern: str) -> None:
    """Raise ToolRefused with the position of the error unless `pattern` is a Python regular expression."""
    if not pattern:
        raise ToolRefused("the pattern is empty")
    if len(pattern) > MAX_PATTERN:
        raise ToolRefused(f"the pattern is longer than {MAX_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody reads a warning about the model's pattern
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolRefused(
            f"the pattern is not a Python regular expression: {error}",
            "escape literal characters with a backslash",
        ) from None


def run_search(
    root: Path, files: Sequence[str], pattern: str, *, limit: int = MAX_MATCHES, timeout_s: float = TIMEOUT_S
) -> SearchResult:
    """Return the lines of `files` (relative to `root`, read without leaving it) that match `pattern`."""
    return _run({"root": str(root), "files": list(files)}, pattern, limit, timeout_s)


def search_texts(texts: Mapping[str, str], pattern: str, *, limit: int = MAX_MATCHES) -> SearchResult:
    """Return the lines of `texts` (path → text) that match `pattern`."""
    return _run({"texts": dict(texts)}, pattern, limit, TIMEOUT_S)


def _run(where: Mapping[str, Any], pattern: str, limit: int, timeout_s: float) -> SearchResult:
    check_pattern(pattern)
    request = json.dumps({**where, "pattern": pattern, "limit": limit})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _WORKER, str(_PACKAGE_FOLDER)],
            input=request,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout_s,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolRefused(
            f"the search took longer than {timeout_s:g} s; lopen stopped it",
            "use a simpler pattern (no nested repetition), or narrow it with path or glob",
        ) from None
    if done.returncode != 0:
        raise ToolRefused(f"the search failed: {done.stderr.strip().splitlines()[-1:]}")
    matches, large = json.loads(done.stdout)
    notes = []
    if truncated := len(matches) > limit:
        notes.append(f"Only the first {limit} matches; narrow the search with path or glob.")
    if large:
        notes.append(f"The search skipped {large} files over {MAX_FILE_BYTES // 1_000_000} MB.")
    return SearchResult(tuple(Match(*match) for match in matches[:limit]), truncated, " ".join(notes))


# In the process of its own


def main() -> None:
    """Read the request from standard input and print the matches, one more than wanted, and the number of large files."""
    request = json.load(sys.stdin)
    large: list[str] = []
    texts = request["texts"].items() if "texts" in request else _texts(request, large)
    pattern = re.compile(request["pattern"])
    found = ((path, *match) for path, text in texts for match in _matches(text, pattern))
    json.dump([list(itertools.islice(found, request["limit"] + 1)), len(large)], sys.stdout)


def _texts(request: Mapping[str, Any], large: list[str]) -> Iterator[tuple[str, str]]:
    """Yield path and text of the request's files; leave out binary and missing ones, and note those that are `large`."""
    root = Root(Path(request["root"]))
    for path in request["files"]:
        try:
            with root.open_file(path) as (descriptor, _), open(descriptor, "rb", closefd=False) as file:
                if os.fstat(descriptor).st_size > MAX_FILE_BYTES:
                    large.append(path)
                    continue
                raw = file.read()
        except ToolRefused:
            continue
        if b"\0" not in raw[:_BINARY_PROBE]:
            yield path, raw.decode("utf-8", "replace")


def _matches(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield (1-based line, its text around the match) for every matching line."""
    for number, line in enumerate(text.split("\n"), 1):
        found = pattern.search(line.removesuffix("\r"))
        if found:
            yield number, _cut(line.removesuffix("\r"), found.start())


def _cut(line: str, at: int) -> str:
    """Return at most `MAX_TEXT` characters of a line, including the position `at`."""
    if len(line) <= MAX_TEXT:
        return line
    start = max(0, min(at - _BEFORE_MATCH, len(line) - MAX_TEXT + 2))
    piece = line[start : start + MAX_TEXT - 2]
    return ("…" if start else "") + piece + ("…" if start + len(piece) < len(line) else "")
