"""What of a text its writer says in own words: without code, quotations and docstrings; and its sentences.

Markdown as models write it, read by line: no renderer is needed to leave a quotation alone. What is taken out
leaves `QUOTED` behind, so that a sentence around it stays a sentence. Quotation marks pair within a
paragraph only: one left open cannot swallow the rest of the text.
"""

from __future__ import annotations

import re

QUOTED = "□"
READ = 20_000  # characters from the end that are looked at
_SIDE = 300

_FENCE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_BLOCK_QUOTE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?>")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")
_TRIPLE = re.compile(r'"""(?:.|\n)*?"""|' + r"'''(?:.|\n)*?'''")
_HTML = re.compile(r"<(pre|code|blockquote|q)\b[^>]{0,200}>.{0,5000}?</\1\s*>", re.IGNORECASE | re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n)(?:.|\n))+?)(?<!`)\1(?!`)")
_IN_PARAGRAPH = r"(?:[^{end}\n]|\n(?!\s*\n))+"
_QUOTES = re.compile(
    "|".join(
        (
            r'(?<!\w)"' + _IN_PARAGRAPH.format(end='"') + r'"(?!\w)',
            "[“„]" + _IN_PARAGRAPH.format(end="“”") + "[“”]",
            "«" + _IN_PARAGRAPH.format(end="»") + "»",
            r"(?<!\w)'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)|\n(?!\s*\n))+'(?!\w)",
            r"(?<!\w)‘(?:[^’\n]|(?<=\w)’(?=\w)|\n(?!\s*\n))+’(?!\w)",
        )
    )
)
_EMPHASIS = re.compile(
    r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<!\w)_{1,3}(?=\w)|(?<=[\w.!?])_{1,3}(?!\w)"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]]*\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)]|#{1,6})\s)")


def own_words(text: str) -> str:
    """The end of `text` (`READ` characters) with everything quoted or coded replaced by `QUOTED`."""
    rest = text[-READ:].replace("\r\n", "\n").replace("\r", "\n")
    rest = _without_fences(rest)
    for pattern in (_TRIPLE, _HTML):
        rest = pattern.sub(QUOTED, rest)
    rest = _without_indented_code(_without_block_quotes(rest))
    rest = _INLINE_CODE.sub(QUOTED, rest)
    rest = _QUOTES.sub(QUOTED, rest).replace("’", "'")
    return _EMPHASIS.sub("", rest).strip()


def sentences(words: str) -> tuple[str, ...]:
    """The sentences of own words, each on one line; list items and headings count as sentences.

    Of one that never ends the middle is left out, so that looking through it stays cheap.
    """
    lines = (" ".join(s.split()) for s in _SENTENCE_END.split(words))
    return tuple(s if len(s) <= 2 * _SIDE else f"{s[:_SIDE]} … {s[-_SIDE:]}" for s in lines if s)


def closing(words: str, paragraphs: int = 2) -> str:
    """The text from the last-but-one paragraph of prose on; lists and headings go with the prose before them."""
    blocks = re.split(r"\n\s*\n", words)
    prose = [i for i, block in enumerate(blocks) if not _is_apparatus(block)]
    start = prose[-paragraphs] if len(prose) >= paragraphs else 0
    return "\n\n".join(blocks[start:])


def _is_apparatus(block: str) -> bool:
    lines = [line for line in block.split("\n") if line.strip()]
    return all(_LIST_ITEM.match(line) or _HEADING.match(line) or line.strip() == QUOTED for line in lines)


def _without_fences(text: str) -> str:
    """Fenced code out, an unclosed fence to the end of the text."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            stripped = line.strip()
            if len(stripped) >= len(fence) and set(stripped) == {fence[0]}:
                fence = ""
        elif mark:
            fence = mark[1]
            kept.append(QUOTED)
        else:
            kept.append(line)
    return "\n".join(kept)


def _without_block_quotes(text: str) -> str:
    return "\n".join("" if _BLOCK_QUOTE.match(line) else line for line in text.split("\n"))


def _without_indented_code(text: str) -> str:
    """Lines indented by four or more after a blank line are code, unless they continue a list item."""
    kept: list[str] = []
    code, after_blank, in_list = False, True, False
    for line in text.split("\n"):
        indented = line.startswith(("    ", "\t"))
        if not line.strip():
            after_blank = True
            kept.append(line)
            continue
        code = indented and not in_list and (code or after_blank)
        if not indented:
            in_list = bool(_LIST_ITEM.match(line))
        after_blank = False
        kept.append(QUOTED if code else line)
    return "\n".join(kept)
