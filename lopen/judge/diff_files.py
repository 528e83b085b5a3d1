"""A git diff taken apart by file, and source text, as a judge reads them: with line numbers, one line a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from lopen.core.escape import INVISIBLE

_FILE = re.compile(r"^diff --git (.*)$", re.MULTILINE)
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"v": b"\v", b"f": b"\f"}

_BYTES = re.compile("[\0\ufffd\ud800-\udfff]")  # NUL, and the sign for bytes that are not UTF-8
NOT_TEXT = 0.05  # share of these from which a file counts as binary
_FEW = 32  # of these are shown in any file
_PROBED = 20_000  # characters


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file's part of a diff, as git wrote it."""

    path: str
    text: str


def split_diff(diff: str) -> tuple[FileDiff, ...]:
    """Return the parts of a `git diff`, file by file.

    A line of content never starts with `diff --git`, because git puts a mark in front of it. git quotes a path that
    holds a newline.
    """
    heads = list(_FILE.finditer(diff))
    starts = [*(head.start() for head in heads), len(diff)]
    return tuple(
        FileDiff(_path(head[1]), diff[head.start() : end])
        for head, end in zip(heads, starts[1:], strict=True)
    )


def _path(names: str) -> str:
    """Return the path of a header's `a/PATH b/PATH`: without renames both halves are equally long."""
    name = names[: (len(names) - 1) // 2]
    if name.startswith('"') and name.endswith('"'):
        raw = _ESCAPE.sub(_unescaped, name[1:-1].encode("utf-8", "surrogateescape"))
        name = raw.decode("utf-8", "surrogateescape")
    return name.removeprefix("a/")


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPED.get(code, code)


def is_text(text: str) -> bool:
    """Return whether `text` can be shown as text: few of its bytes were NUL or not UTF-8, at all or for its length.

    Control characters do not count, because `visible` shows them.
    """
    probe = text[:_PROBED]
    return len(_BYTES.findall(probe)) <= max(_FEW, NOT_TEXT * len(probe))


def decoded(raw: bytes) -> str:
    """Return a file's content as text: UTF-8, in which other bytes become surrogates, or UTF-16 if it reads as that."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        with suppress(UnicodeDecodeError):
            wide = raw.decode("utf-16")
            if sum(letter < "\u0100" for letter in wide) > len(wide) / 2:  # not ASCII to a shell
                return wide
    return raw.decode("utf-8", "surrogateescape")


def visible(text: str) -> str:
    r"""Return `text` with every unseen character but tab and newline written as an escape such as `\x1b`.

    The carriage return of a line that ends in CRLF becomes its picture.
    """
    if text.endswith("\r"):
        text = text[:-1] + "\u240d"
    return INVISIBLE.sub(lambda found: _escape(ord(found[0])), text.replace("\r\n", "\u240d\n"))


def _escape(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def numbered_source(text: str, first: int = 1) -> str:
    """Return source text with a line number before every line, counted from `first`."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return "\n".join(f"{number} {visible(line)}" for number, line in enumerate(lines, first))


def numbered_diff(part: FileDiff) -> str:
    """Return a file's diff with the new file's line numbers; removed lines have none."""
    return "\n".join(_numbered_lines(part.text.removesuffix("\n").split("\n")[1:]))


def _numbered_lines(lines: list[str]) -> Iterator[str]:
    number = 0
    in_hunk = False
    for line in lines:
        if hunk := _HUNK.match(line):
            in_hunk, number = True, int(hunk[1])
            yield visible(line)
        elif not in_hunk:
            if not line.startswith(("index ", "--- ", "+++ ")):  # a mode, a new or a deleted file
                yield visible(line)
        elif line.startswith(("+", " ")):
            yield f"{number} {visible(line)}"
            number += 1
        else:
            yield visible(line)
