"""Block rules that pass quickly over the plain parts of a document, where the outcome is certain.

They act at top level only; everything else is left to markdown-it's own rules. What they find is put
down in a `Found` rather than as tokens, which are slow to make. `tests/documents/test_blocks.py` holds
them to a full parse.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

DEEPEST = 120
"""Nesting level at which lists and quotes are read as plain paragraphs. Past its own limit markdown-it would
drop the rest of the document, headings and all."""

# A line is inert if at top level it is neither a heading, a setext underline nor the start of HTML, and if
# nowhere in it stands a fence's marker or the "]:" of a link definition. What it may be inside a list or a
# quote does not matter: those end with the chunk.
_INERT = r"""
    (?! [ ]{0,3} (?: [#=<] | -+[ \t]*(?:\n|\Z) ) )
    [ \t]*+ (?=[^\n])
    (?: [^\n`~\]]++ | `(?!``) | ~(?!~~) | \](?!:) )++
    (?: \n | \Z )
"""
_BLANK = r"[ \t]*+\n"
_PIECE = rf"(?: {_INERT} )++ (?: (?: {_BLANK} )++ | \Z | (?= \#{{1,6}}(?:[ \t\n]|\Z) ) )"

# A chunk begins in the first column and goes on over indented pieces (a list's, say). It ends where every
# container has ended: before text in the first column that follows a blank line, before an ATX heading in
# the first column, or at the end.
_CHUNKS = re.compile(
    rf"(?: (?![ \t]) {_PIECE} (?: (?=[ \t]) {_PIECE} )*+ (?![ \t]) )++",
    re.VERBOSE,
)
_FENCE = re.compile(r"(`{3,}+)(?=[^`\n]*(?:\n|\Z))|(~{3,}+)")
_HEADING = re.compile(r"(#{1,6})([ \t][^\n]*)?(?:\n|\Z)")


@dataclass(slots=True)
class FastBlocks:
    """What the rules took. Lines are [first, after); a heading is (first, level, its source)."""

    headings: list[tuple[int, int, str]] = field(default_factory=list)
    fences: list[tuple[int, int]] = field(default_factory=list)  # the lines between the markers
    after: int = 0  # the line behind the latest of them

    @staticmethod
    def of(environment: Mapping[str, Any]) -> FastBlocks | None:
        """The one that a caller of the parser put into its environment; without one the rules do nothing."""
        found = environment.get("lopen.found")
        return found if isinstance(found, FastBlocks) else None

    def environment(self) -> dict[str, Any]:
        """For the parser: an environment that carries this."""
        return {"lopen.found": self}


def install(parser: MarkdownIt) -> None:
    """Put the rules in front of markdown-it's own."""
    ruler = parser.block.ruler
    for name, rule in (
        ("top_level_heading", _heading),
        ("inert", _inert),
        ("top_level_fence", _fence),
        ("too_deep", _too_deep),
    ):
        ruler.before("table", name, rule)


def _heading(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """An ATX heading outside lists and quotes."""
    if silent or state.level or state.sCount[start] > 3:
        return False
    match = _HEADING.match(state.src, state.bMarks[start] + state.tShift[start])
    found = FastBlocks.of(state.env)
    if match is None or found is None:
        return False
    source = (match[2] or "").rstrip(" \t")
    open_end = source.rstrip("#")
    closed = open_end != source and open_end.endswith((" ", "\t"))
    found.headings.append((start, len(match[1]), (open_end if closed else source).strip(" \t")))
    state.line = found.after = start + 1
    return True


def _inert(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Chunks of inert lines. Tried only where a chunk can begin, so that no line is looked at twice."""
    if silent or state.level or state.tShift[start]:
        return False
    found = FastBlocks.of(state.env)
    if found is None or not (found.after == start or state.isEmpty(start - 1)):
        return False
    chunks = _CHUNKS.match(state.src, state.bMarks[start])
    if chunks is None:
        return False
    state.line = bisect_left(state.bMarks, chunks.end(), start)
    return True


def _fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A code fence outside lists and quotes: its end is searched for, not walked to."""
    if silent or state.level or state.sCount[start] > 3:
        return False
    opening = _FENCE.match(state.src, state.bMarks[start] + state.tShift[start])
    found = FastBlocks.of(state.env)
    if opening is None or found is None:
        return False
    closing = _closing(opening[0][0], len(opening[0])).search(state.src, state.eMarks[start])
    last = bisect_right(state.bMarks, closing.start(), start) - 1 if closing else end
    found.fences.append((start + 1, last))
    state.line = found.after = min(last + 1, end)
    return True


@cache
def _closing(marker: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"^ {{0,3}}{marker}{{{length},}}+[ \t]*+$", re.MULTILINE)


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Text, whatever it looks like."""
    from markdown_it.rules_block import paragraph

    if silent or state.level < DEEPEST:
        return False
    return paragraph(state, start, end, silent)
