"""The documents of a project: their headings, and the sections that matter for some words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from lopen.specification.sections import parse_outline

MARKDOWN = (".md", ".markdown")
DOCUMENTS = (*MARKDOWN, ".rst", ".txt", ".adoc")
LARGE_DOCUMENT = 6_000  # characters of a document, of which a reader hardly needs all
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_NAME_OF_CODE = re.compile(r"[a-z]\w*[A-Z_]\w*|(?<=[.`])\w{4,}|\w{4,}(?=\()")


def document_headings(path: str, text: str) -> list[tuple[int, int, str]]:
    """Return line, level and title of each heading of a document in Markdown or reStructuredText."""
    if path.lower().endswith(MARKDOWN):
        return [(s.line, s.level, s.title) for s in parse_outline(text).sections]
    if not path.lower().endswith(".rst"):
        return []
    levels: list[str] = []  # reStructuredText ranks its underlines in the order of their appearance
    found, lines = [], text.splitlines()
    for number, (title, under) in enumerate(pairwise(lines), 1):
        if _UNDERLINE.fullmatch(under) and title.strip() and len(under) >= len(title.rstrip()):
            levels += [] if under[0] in levels else [under[0]]
            found.append((number, levels.index(under[0]) + 1, title.strip()))
    return found


def lines_about(path: str, text: str, words: str, *, most: int = LARGE_DOCUMENT) -> Sequence[int]:
    """Return the numbers of the lines of a document that matter for `words`, of about `most` characters.

    Of a large document these are its headings, and the sections that the words name or whose names of code they use.
    Of others it is all.
    """
    lines = text.splitlines()
    headings = document_headings(path, text) if len(text) > most else []
    if not headings:
        return range(1, len(lines) + 1)
    starts = [line for line, _, _ in headings]
    sections = [range(start, end) for start, end in zip(starts, [*starts[1:], len(lines) + 1], strict=True)]
    texts = ["\n".join(lines[n - 1] for n in section) for section in sections]
    said, names = words.casefold(), {name.casefold() for name in _NAME_OF_CODE.findall(words)}
    weights = [
        sum(name in section.casefold() for name in names) + 2 * (title.casefold() in said)
        for section, (_, _, title) in zip(texts, headings, strict=True)
    ]
    shown, room = set(starts), most - sum(len(lines[n - 1]) for n in starts)
    for at in sorted(range(len(sections)), key=lambda at: (-weights[at], at)):
        if weights[at] and len(texts[at]) <= room:
            shown |= set(sections[at])
            room -= len(texts[at])
    return sorted(shown)
