"""A unified diff by files, with line numbers and the colours of each language's syntax."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

from lopen.server.dashboard.markup import Markup, el, empty, inner

OPEN_LINES = 400  # a longer file is folded at first
MOST_LINES = 4_000  # of one file that are shown
LONGEST_LINE = 2_000  # that is coloured
COLOURS = (
    (Comment, "c"),
    (Keyword, "k"),
    (String, "s"),
    (Number, "m"),
    (Name.Function, "f"),
    (Name.Class, "f"),
)
_HUNK = re.compile(r"@@+ -(\d+)(?:,\d+)? \+(\d+)")
_TOLD = ("new file", "deleted file", "rename", "Binary", "old mode", "new mode")


@dataclass
class Line:
    """A line of a diff: its numbers before and after, 0 where it is not there, and its text."""

    kind: str
    text: str
    before: int = 0
    after: int = 0
    shown: Markup | None = None


def files(text: str) -> dict[str, list[Line]]:
    """Return the changed files of a unified diff with their lines."""
    found: dict[str, list[Line]] = {}
    lines: list[Line] = []
    before = after = 0  # 0 outside a hunk
    for line in text.split("\n"):
        sign, rest = line[:1], line[1:]
        if line.startswith("diff --git "):
            lines = found.setdefault(line[11:].split(" b/")[-1], [])
            before = after = 0
        elif match := _HUNK.match(line):
            before, after = int(match[1]), int(match[2])
            lines.append(Line("hunk", line))
        elif (sign == "\\") if before or after else line.startswith(_TOLD):
            lines.append(Line("hunk", line))
        elif sign and (before or after):
            kind = {"+": "added", "-": "removed"}.get(sign, "same")
            at = before if kind != "added" else 0, after if kind != "removed" else 0
            lines.append(Line(kind, rest, *at))
            before, after = before + (kind != "added"), after + (kind != "removed")
    return found


def diff(text: str, *, folded: bool = False) -> Markup:
    """Return a diff as tables that fold."""
    found = files(text)
    shown = [_file(name, lines, folded=folded) for name, lines in found.items()]
    return el("div.diff", shown) if shown else empty("Nothing was changed.")


def _file(name: str, lines: list[Line], *, folded: bool) -> Markup:
    count, shown = Counter(line.kind for line in lines), lines[:MOST_LINES]
    _colour(name, shown)
    changed = el("span.plus", f" +{count['added']}"), el("span.minus", f" −{count['removed']}")
    seen = {"tabindex": "0", "role": "region", "aria_label": f"Changes of {name}"}
    rest = len(lines) - len(shown)
    return el(
        "details",
        el("summary", el("code", name), changed),
        el("div.lines", el("table", el("tbody", map(_row, shown))), **seen),
        el("p", el("small", f"{rest} more lines: lopen diff")) if rest else None,
        open=len(lines) <= OPEN_LINES and not folded,
    )


def _row(line: Line) -> Markup:
    sign = {"added": "+", "removed": "−"}.get(line.kind, " ")
    return el(
        f"tr.{line.kind}",
        el("td.at", str(line.before or "")),
        el("td.at", str(line.after or "")),
        el("td.sign", sign),
        el("td.code", line.shown if line.shown is not None else line.text),
    )


def _colour(name: str, lines: list[Line]) -> None:
    """Set what is shown of each line of code, read as the text before and the text after the change."""
    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return
    for kinds in (("removed", "same"), ("added", "same")):
        code = [line for line in lines if line.kind in kinds]
        if any(len(line.text) > LONGEST_LINE for line in code):
            return
        spans = _lines(lexer.get_tokens("\n".join(line.text for line in code)))
        for line, shown in zip(code, spans, strict=False):
            line.shown = inner(shown)


def _lines(tokens: Iterator[tuple[_TokenType, str]]) -> Iterator[list[Markup | str]]:
    """Yield the tokens of each line."""
    line: list[Markup | str] = []
    for kind, text in tokens:
        colour = next((name for of, name in COLOURS if kind in of), "")
        for n, part in enumerate(text.split("\n")):
            if n:
                yield line
                line = []
            if part:
                line.append(el(f"i.{colour}", part) if colour else part)
    yield line
