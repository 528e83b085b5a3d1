"""Decode, excerpt and edit text. Pure functions; `Workspace` applies them to files that `Root` opened."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from lopen.files.protection import ToolRefused

READ_CHARACTERS = 100_000
MAX_READ_BYTES = 32_000_000
MAX_WRITE_BYTES = 10_000_000
_BINARY_PROBE = 8_192


@dataclass(frozen=True, slots=True)
class FileText:
    """Part of a text file. `first_line` is 1-based, `lines` counts the whole file, `note` describes the omitted part."""

    path: str
    content: str
    first_line: int
    lines: int
    truncated: bool
    note: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a whole file. `path` is the real path."""

    path: str
    bytes: int
    created: bool


@dataclass(frozen=True, slots=True)
class Edited:
    """The result of replacing passages of a file. `text` is the new text."""

    path: str
    replacements: int
    text: str


def decode(raw: bytes, path: str) -> tuple[str, str]:
    """Return bytes as text, and a note about their encoding; bytes that are not UTF-8 are replaced.

    Raises:
        ToolRefused: the content is binary.
    """
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace"), "The file is UTF-16."
    if b"\0" in raw[:_BINARY_PROBE]:
        raise ToolRefused(
            f"{path} is a binary file of {len(raw)} bytes", "inspect it with run_command (file, xxd)"
        )
    try:
        text, note = raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        note = "The file is not UTF-8; undecodable bytes are shown as \ufffd."
    if text.startswith("\ufeff"):
        text, note = text[1:], (note + " The file starts with a byte order mark.").strip()
    if _ends_in_crlf(text):
        text, note = text.replace("\r\n", "\n"), (note + " Lines end in CRLF.").strip()
    return text, note


def line_count(text: str) -> int:
    """Count lines as editors do: a last line without a newline counts, an empty rest after it does not."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def excerpt(text: str, offset: int, limit: int | None) -> tuple[str, bool, str]:
    """Return (piece, truncated, note): `limit` lines from `offset`, at most `READ_CHARACTERS` characters."""
    total = line_count(text)
    if offset < 1:
        raise ToolRefused(f"offset {offset} is not a line number", "line numbers start at 1")
    if limit is not None and limit < 1:
        raise ToolRefused(f"limit {limit} is not a number of lines", "request at least one line")
    if offset > max(total, 1):
        raise ToolRefused(f"offset {offset} is past the end; the file has {total} lines")
    lines = _lines(text)
    requested = lines[offset - 1 : None if limit is None else offset - 1 + limit]
    piece, taken = _fit(requested)
    after = offset + taken
    if requested and taken == 0:
        piece = requested[0][:READ_CHARACTERS]
        note = f"Line {offset} is cut at {READ_CHARACTERS} of its {len(requested[0])} characters."
        return piece, True, note + (f" Continue with offset={offset + 1}." if offset < total else "")
    if after <= total:
        return piece, True, f"Lines {offset}-{after - 1} of {total}. Continue with offset={after}."
    return piece, False, ""


def _lines(text: str) -> list[str]:
    """Split at newlines only and keep them; `str.splitlines` would also split at form feeds and the like."""
    pieces = text.split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _fit(lines: list[str]) -> tuple[str, int]:
    """Join as many whole lines as fit the limit; return the text and the number of lines."""
    room = READ_CHARACTERS
    for taken, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return "".join(lines[:taken]), taken
    return "".join(lines), len(lines)


def _ends_in_crlf(text: str) -> bool:
    """True if every line of the text ends in CRLF; a mixed file stays as it is."""
    newlines = text.count("\n")
    return newlines > 0 and newlines == text.count("\r\n")


MAX_CANDIDATES = 3
MAX_POSITIONS = 10
_SEARCHED_LINES = 5_000
_COMPARED_CHARACTERS = 200


def replace_passage(text: str, old: str, new: str, *, everywhere: bool, path: str) -> tuple[str, int]:
    """Return `text` with `new` for `old`, and the number of passages; in a file with CRLF lines, convert the line ends of both passages first.

    Raises: ToolRefused: the passage is empty or unchanged, does not occur, or occurs more than once without
    `everywhere`. The message names the lines or the nearest candidates.
    """
    if not old:
        raise ToolRefused("old_text is empty", "quote the passage to replace, or use write_file")
    if old == new:
        raise ToolRefused("old_text and new_text are the same: nothing would change")
    if _ends_in_crlf(text):
        old, new = _with_crlf(old), _with_crlf(new)
    places = list(_places(text, old))
    if not places:
        raise ToolRefused(f"old_text is not in {path}", _nearest(text, old))
    if len(places) > 1 and not everywhere:
        listed = ", ".join(str(text.count("\n", 0, p) + 1) for p in places[:MAX_POSITIONS])
        more = f" and {len(places) - MAX_POSITIONS} more" if len(places) > MAX_POSITIONS else ""
        raise ToolRefused(
            f"old_text is in {path} {len(places)} times, at lines {listed}{more}",
            "quote more of the context so that it is unique, or set replace_all",
        )
    return text.replace(old, new), len(places)


def _with_crlf(passage: str) -> str:
    return passage.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str) -> Iterator[int]:
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + len(old))


def _nearest(text: str, old: str) -> str:
    """Return a hint for a missing passage: where it occurs with other whitespace, else the most similar lines."""
    lines = [line.strip() for line in text.split("\n")[:_SEARCHED_LINES]]
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    first = next((line for line in wanted if line), "")
    if not first:
        return "old_text contains only whitespace; quote a whole line"
    for start in _starts(lines, wanted):
        return f"line {start + 1} differs only in whitespace: copy the passage exactly as read_file shows it"
    close = difflib.get_close_matches(
        first[:_COMPARED_CHARACTERS],
        {line[:_COMPARED_CHARACTERS] for line in lines if line},
        n=MAX_CANDIDATES,
        cutoff=0.6,
    )
    if not close:
        return "no line is similar to its first line; read the file again"
    numbered = [
        (next(n for n, line in enumerate(lines, 1) if line[:_COMPARED_CHARACTERS] == near), near)
        for near in close
    ]
    return "nearest: " + "; ".join(f"line {n}: {near}" for n, near in numbered)


def _starts(lines: list[str], wanted: list[str]) -> Iterator[int]:
    """Yield the line indexes at which the stripped lines of `wanted` follow one another."""
    for start, line in enumerate(lines):
        if line == wanted[0] and lines[start : start + len(wanted)] == wanted:
            yield start
