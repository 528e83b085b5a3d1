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
_BLANK = "\u2800"  # the empty braille pattern: printable, but blank
# Characters that show nothing or reorder text, as members of a set in a pattern: Unicode's characters ignorable by
# default, format characters without a sign of their own, C1 controls (on some terminals as good as an escape), and
# halves of a pair, which cannot be written out
UNSEEN = (
    "\x80-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{UNSEEN}]")
# What could end a line of a text or hide text in it: these, control characters but tab and newline, and blank ones
INVISIBLE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f\u2800{UNSEEN}]")
_EMOJI = "[\u00a9\u00ae\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
_SCRIPT = "[\u0600-\u0dff]"  # from Arabic to Sinhala: words are spelled with joiners
# A joiner that belongs to the sign before it stays: within an emoji, and one between two letters
_HIDDEN = re.compile(
    f"((?<={_EMOJI})\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI})"
    f"|(?<={_SCRIPT})[\u200c\u200d](?={_SCRIPT}))|[{UNSEEN}]"
)

_PICTURES: dict[int, str] = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_LINES = _PICTURES | {0x09: "    ", 0x0A: "\n"}
_ONE_LINE = _LINES | {0x0A: " "}


def inert(text: str, *, lines: bool = False) -> str:
    """Return `text` without effect on a terminal: on one line, or with its line breaks if `lines`."""
    plain = _BREAKS.sub("\n", _COLOUR.sub("", text))
    if not plain.isascii():
        plain = _HIDDEN.sub(lambda found: found[1] or "\ufffd", plain)
    return plain.translate(_LINES if lines else _ONE_LINE)


def exact(text: str) -> str:
    """Return `text` on one line with every character visible.

    Control characters, blanks other than a space and invisible characters become `<U+00A0>`, more than three spaces
    in a row `<4000 spaces>`.
    """
    seen = "".join(
        c if c.isprintable() and c != _BLANK and not _UNSEEN.match(c) else f"<U+{ord(c):04X}>" for c in text
    )
    return _SPACES.sub(lambda found: f"<{len(found[0])} spaces>", seen)
