"""Reading, writing and editing the text files of a project: text in, results out.

Decisions about text are pure functions here; `Workspace` performs them on files opened by `Root`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from lopen.workspace.protection import ToolRefused

READ_CHARACTERS = 100_000
MAX_READ_BYTES = 32_000_000
MAX_WRITE_BYTES = 10_000_000
_BINARY_PROBE = 8_192


@dataclass(frozen=True, slots=True)
class FileText:
    """A piece of a text file. `first_line` is 1-based; `lines` counts the whole file; `note` says what was cut."""

    path: str
    content: str
    first_line: int
    lines: int
    truncated: bool
    note: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file was written whole. `path` is its real one."""

    path: str
    bytes: int
    created: bool


@dataclass(frozen=True, slots=True)
class Edited:
    """Passages of a file were replaced. `lines` are where, 1-based, in the new text."""

    path: str
    replacements: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's bytes as text, with what had to be said about them."""

    text: str
    note: str = ""


def decode(raw: bytes, path: str) -> Decoded:
    """Bytes as text for reading. Refuses binary content; bytes that are not UTF-8 are replaced, and said."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Decoded(raw.decode("utf-16", "replace"), "The file is UTF-16.")
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
    return Decoded(text, note)


def line_count(text: str) -> int:
    """Lines as editors number them: a last one without its newline counts, nothing after the last does not."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def excerpt(text: str, offset: int, limit: int | None) -> tuple[str, bool, str]:
    """(piece, truncated, note): `limit` lines from line `offset` on, at most `READ_CHARACTERS` characters."""
    total = line_count(text)
    if offset < 1:
        raise ToolRefused(f"offset {offset} is no line number", "lines are counted from 1")
    if limit is not None and limit < 1:
        raise ToolRefused(f"limit {limit} is no number of lines", "ask for at least one line")
    if offset > max(total, 1):
        raise ToolRefused(f"offset {offset} is past the end; the file has {total} lines")
    lines = _lines(text)
    wanted = lines[offset - 1 : None if limit is None else offset - 1 + limit]
    piece, taken = _fit(wanted)
    after = offset + taken
    if wanted and taken == 0:
        piece = wanted[0][:READ_CHARACTERS]
        note = f"Line {offset} is cut at {READ_CHARACTERS} of its {len(wanted[0])} characters."
        return piece, True, note + (f" Continue with offset={offset + 1}." if offset < total else "")
    if after <= total:
        return piece, True, f"Lines {offset}-{after - 1} of {total}. Continue with offset={after}."
    return piece, False, ""


def _lines(text: str) -> list[str]:
    """Lines with their ends; form feeds and their kin end none, unlike in `str.splitlines`."""
    pieces = text.split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _fit(lines: list[str]) -> tuple[str, int]:
    """As many whole lines as the limit holds, joined, and how many."""
    room = READ_CHARACTERS
    for taken, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return "".join(lines[:taken]), taken
    return "".join(lines), len(lines)


def _ends_in_crlf(text: str) -> bool:
    """Whether every line of the text ends in CRLF (a mixed file is left as it is)."""
    newlines = text.count("\n")
    return newlines > 0 and newlines == text.count("\r\n")


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
