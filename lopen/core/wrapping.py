"""Break lines of text between words at the width of a terminal, which breaks them anywhere."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TextIO

_HEAD = re.compile(r"\d\d:\d\d:\d\d | *(?:[|>] )?")  # a log line's time, or an indent
_COMMAND = re.compile(r"(^ *|: )(lopen [a-z-]\S*(?: \S+)*)")  # stays on one line, so that it can be pasted
_GAP = "\ue000"  # of a private range: stands for a space at which no line is broken
NARROWEST = 20  # columns


def width_of(stream: TextIO) -> int:
    """Return the columns of the terminal that a stream writes to; 0 if it is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def wrapped(text: str, width: int) -> str:
    """Return the text with lines of at most `width` columns; 0 leaves it as it is. Commands of lopen are not broken."""
    if width < NARROWEST:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width))


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    found = _HEAD.match(line)
    head = found[0] if found else ""
    kept = _COMMAND.sub(lambda command: command[1] + command[2].replace(" ", _GAP), line[len(head) :])
    indent = head if head.endswith("| ") else " " * (len(head) + (0 if head[:1].isdigit() else 2))
    parts = textwrap.wrap(
        kept,
        width,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(_GAP, " ") for part in parts]
