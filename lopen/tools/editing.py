"""Replacing a passage of text by another, and helping where the passage is not there. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from lopen.tools.refusal import ToolRefused

MAX_CANDIDATES = 3
MAX_LISTED = 10
_SEARCHED_LINES = 5_000
_COMPARED_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Replacement:
    """The new text, how many passages were replaced, and the first lines (1-based, new text) where."""

    text: str
    count: int
    lines: tuple[int, ...]


def replace_passage(text: str, old: str, new: str, *, everywhere: bool, path: str) -> Replacement:
    """`text` with `old` replaced by `new`.

    In a file whose lines all end in CRLF, both passages are taken to mean those. Refused: an empty or
    unchanged passage, one that is not there (with the nearest candidates), one that is there more than once
    without `everywhere` (with the lines).
    """
    if not old:
        raise ToolRefused("old_text is empty", "quote the passage to replace, or use write_file")
    if old == new:
        raise ToolRefused("old_text and new_text are the same: nothing would change")
    newlines = text.count("\n")
    if newlines and newlines == text.count("\r\n"):
        old, new = _with_crlf(old), _with_crlf(new)
    places = list(_places(text, old))
    if not places:
        raise ToolRefused(f"old_text is not in {path}", _nearest(text, old))
    if len(places) > 1 and not everywhere:
        listed = ", ".join(str(text.count("\n", 0, p) + 1) for p in places[:MAX_LISTED])
        more = f" and {len(places) - MAX_LISTED} more" if len(places) > MAX_LISTED else ""
        raise ToolRefused(
            f"old_text is in {path} {len(places)} times, at lines {listed}{more}",
            "quote more of the surroundings so that it is unique, or set replace_all",
        )
    grown = new.count("\n") - old.count("\n")
    lines = [text.count("\n", 0, p) + 1 + i * grown for i, p in enumerate(places[:MAX_LISTED])]
    return Replacement(text.replace(old, new), len(places), tuple(lines))


def _with_crlf(passage: str) -> str:
    return passage.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str) -> Iterator[int]:
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + len(old))


def _nearest(text: str, old: str) -> str:
    """Where `old` might have been meant: first but for blanks, then the lines most like its first one."""
    lines = [line.strip() for line in text.split("\n")[:_SEARCHED_LINES]]
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    first = next((line for line in wanted if line), "")
    if not first:
        return "old_text holds only blanks; quote a whole line"
    for start in _starts(lines, wanted):
        return f"it is at line {start + 1} but for indentation or blanks: copy the passage exactly as read_file shows it"
    close = difflib.get_close_matches(
        first[:_COMPARED_CHARACTERS],
        {line[:_COMPARED_CHARACTERS] for line in lines if line},
        n=MAX_CANDIDATES,
        cutoff=0.6,
    )
    if not close:
        return "nothing like its first line is there; read the file again"
    numbered = [
        (next(n for n, line in enumerate(lines, 1) if line[:_COMPARED_CHARACTERS] == near), near)
        for near in close
    ]
    return "nearest: " + "; ".join(f"line {n}: {near}" for n, near in numbered)


def _starts(lines: list[str], wanted: list[str]) -> Iterator[int]:
    """Line indexes at which the stripped lines of `wanted` stand one after the other."""
    for start, line in enumerate(lines):
        if line == wanted[0] and lines[start : start + len(wanted)] == wanted:
            yield start
