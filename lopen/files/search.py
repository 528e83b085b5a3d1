"""Search a project's files for a regular expression within a time limit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lopen.files.protection import ToolRefused
from lopen.files.search_worker import MAX_FILE_BYTES

MAX_MATCHES = 200
MAX_PATTERN = 1_000
TIMEOUT_S = 10.0
_PACKAGE_FOLDER = Path(__file__).parents[2]
_WORKER = "import sys; sys.path.insert(0, sys.argv[1]); from lopen.files.search_worker import main; main()"


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
    answer = json.loads(done.stdout)
    found = tuple(Match(*match) for match in answer["matches"])
    return SearchResult(found, answer["truncated"], _note(answer["truncated"], answer["large"], limit))


def _note(truncated: bool, large: int, limit: int) -> str:
    notes = []
    if truncated:
        notes.append(f"Only the first {limit} matches; narrow the search with path or glob.")
    if large:
        notes.append(f"The search skipped {large} files over {MAX_FILE_BYTES // 1_000_000} MB.")
    return " ".join(notes)
