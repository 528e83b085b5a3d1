"""How much cheaper cutting a specification into hashed sections is than parsing it as markdown."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

from markdown_it import MarkdownIt

from bench.rows import Row
from lopen.specification.drift import outline_hashes
from lopen.specification.sections import parse_outline

SIZE = 10_000_000
_PROSE = (
    "The service answers within 200 ms; a `timeout` is an **error**, see [the table](#limits). It keeps\n"
    "what it was given and *says so* in its log. Nothing else is written, and nothing is thrown away.\n\n"
)
_LIST = "".join(f"- [ ] A reader who signs in with `key {n}` sees the *overview* at once\n" for n in range(6))
_NESTED = "1. first step\n   - with a detail\n   - and another, which\n     goes on\n\n2. second step\n\n"
_CODE = "```python\ndef rounded(value: float) -> int:\n    # no heading\n    return round(value)\n```\n\n"
_QUOTE = "> What was said before\n> still holds.\n\n"
_TABLE = "| name | unit |\n|---|---|\n| wait | s |\n| size | kB |\n\n"


def specification(size: int) -> str:
    """Markdown of about `size` characters: prose, lists, code, quotes, tables under numbered headings."""
    parts = ["---\nname: bench\ndescription: generated\n---\n# Bench\n\n"]
    length = number = 0
    while length < size:
        number += 1
        part = (
            f"## Part {number}\n\n{_PROSE * 3}{_LIST}\n### Detail of {number}\n\n{_CODE}{_PROSE}{_NESTED}"
            f"### Limits of {number}\n\n{_TABLE}{_QUOTE}{_PROSE * 2}"
        )
        parts.append(part)
        length += len(part)
    return "".join(parts)


def rows() -> Iterator[Row]:
    """The outline and the hashes of a generated specification of 10 MB, over a full markdown-it parse of it."""
    text = specification(SIZE)
    full = _seconds(lambda: MarkdownIt("commonmark").parse(text))
    parse_outline("# warm up")
    index = _seconds(lambda: parse_outline(text))
    cut = parse_outline(text)
    hashes = _seconds(lambda: outline_hashes(cut))
    detail = f"{index:.2f} s and {hashes:.2f} s against {full:.1f} s"
    yield Row("indexing and hashing 10 MB, over a full parse", (index + hashes) / full, 0.6, detail=detail)


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
