"""Reading, writing and editing the text files of a project: text in, results out.

Decisions about text are pure functions here; `Workspace` performs them on files opened by `Root`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lopen.tools.refusal import ToolRefused

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
