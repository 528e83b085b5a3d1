"""Lines for people, broken between words at a terminal's margin. A command stays whole, so that it can be pasted.

Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TextIO

COMMANDS = (
    "alerts|answer|approve|attach|budget|build|check|circuit|config|confirm|demo|diagram|diff|doctor|help|hooks|import|init"
    "|log|mcp|memory|merge|modules|pause|plan|pr|replay|resume|revert|run|serve|session|show|skip|spec|status"
)
_COMMAND = re.compile(
    r"`[^`]+`"
    r"|(?:^|(?<=^ {2})|(?<=^ {6})|(?<=: ))"
    rf"(?:[A-Z_]+=\S+ )*(?:\S*/)?(?:lopen(?= (?:{COMMANDS})\b)|git|gh|export|mv|cd|make|uvx|pipx) "
    r"(?:'[^']*'|\"[^\"]*\"|(?!; |, then|, or | +\().)+"
    r"|^ {2}verify-[\w-]+: .+"
)
_START = re.compile(r"(?:\d\d:\d\d:\d\d |(?:ok|warn|fail|skip)  +)?\s*(?:\| )?(?:- (?:\[.\] )?)?")


def fitted(text: str, stream: TextIO) -> str:
    """Return the text with its lines broken for the stream's terminal; as it is where the stream is not one."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        width = 0
    return "\n".join(part for line in text.split("\n") for part in broken(line, width)) if width else text


def broken(line: str, width: int) -> Iterator[str]:
    """Yield a line in parts of at most `width` characters; longer ones hold a single word or command."""
    if len(line) <= width:
        yield line
        return
    start = _START.match(line)
    head = start[0] if start else ""
    following = "".join(c if c == "|" else " " for c in head)
    part = head
    for blank, word in _words(line, len(head)):
        if part.strip(" |") and len(part) + len(blank) + len(word) > width:
            yield part
            part = following + word
        else:
            part += blank + word
    yield part


def _words(text: str, at: int) -> Iterator[tuple[str, str]]:
    """Yield each word from `at` on with the blanks before it; a command, with what is joined to it, is one word."""
    whole = [found.span() for found in _COMMAND.finditer(text)]
    while at < len(text):
        begin = at
        while begin < len(text) and text[begin] == " ":
            begin += 1
        end = begin
        while end < len(text) and text[end] != " ":
            inside = next((stop for first, stop in whole if first <= end < stop), None)
            end = inside if inside is not None else end + 1
        if end > begin:
            yield text[at:begin], text[begin:end]
        at = end if end > at else len(text)
