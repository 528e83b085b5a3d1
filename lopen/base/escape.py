"""Escape text of the repository, the model or a tool for a terminal (docs/reference/command-line.md).

All printable text stays, so that a person judges exactly what would run (a verify command, for example). Colour
codes are removed, every other control character becomes its picture, and characters that reorder or hide text become
U+FFFD. Standard library only.
"""

from __future__ import annotations

import re

_COLOUR = re.compile(r"\x1b\[[0-9:;]{0,24}m")
_BREAKS = re.compile(r"\r\n?|[\u2028\u2029\x85]")

_SPACES = re.compile(" {4,}|^ +| +$")
# Printable by their category, but blank: fillers, the empty braille pattern, joiners and variation selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

_PICTURES: dict[int, str] = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_HIDDEN = [
    *range(0x80, 0xA0),  # C1: on some terminals as good as an escape
    0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A),  # bidirectional controls
    0x00AD, 0x200B, *range(0x2060, 0x2065), 0xFEFF,  # invisible
    *range(0xD800, 0xE000),  # halves of a pair: cannot be written out
    *range(0xE0000, 0xE0080),  # tags: invisible text
]  # fmt: skip
_LINES = _PICTURES | dict.fromkeys(_HIDDEN, "\ufffd") | {0x09: "    ", 0x0A: "\n"}
_ONE_LINE = _LINES | {0x0A: " "}


def inert(text: str, *, lines: bool = False) -> str:
    """Return `text` without effect on a terminal: on one line, or with its line breaks if `lines`."""
    plain = _BREAKS.sub("\n", _COLOUR.sub("", text))
    return plain.translate(_LINES if lines else _ONE_LINE)


def exact(text: str) -> str:
    """Return `text` on one line with every character visible: control characters, blanks other than a space and those
    that show nothing as `<U+00A0>`, more than three spaces in a row as `<4000 spaces>`.
    """
    seen = "".join(c if c.isprintable() and not _BLANK.match(c) else f"<U+{ord(c):04X}>" for c in text)
    return _SPACES.sub(lambda found: f"<{len(found[0])} spaces>", seen)


def clipped(text: str, width: int) -> str:
    """Return one line of at most `width` characters without effect on a terminal."""
    line = inert(text).strip()
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
