"""A unified diff by files, with line numbers and the colours of each language's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

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


@dataclass
class File:
    """The changes of a file."""

    name: str
    lines: list[Line] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Return how many lines are of a kind."""
        return sum(line.kind == kind for line in self.lines)


def files(text: str) -> list[File]:
    """Return the files of a unified diff."""
    found: list[File] = []
    before = after = 0
    in_hunk = False
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            found.append(File(line[11:].split(" b/")[-1]))
            in_hunk = False
        elif not found:
            continue
        elif match := _HUNK.match(line):
            before, after, in_hunk = int(match[1]), int(match[2]), True
            found[-1].lines.append(Line("hunk", line))
        elif not in_hunk:
            if line.startswith(_TOLD):
                found[-1].lines.append(Line("hunk", line))
        elif line.startswith("+"):
            found[-1].lines.append(Line("added", line[1:], 0, after))
            after += 1
        elif line.startswith("-"):
            found[-1].lines.append(Line("removed", line[1:], before))
            before += 1
        elif line.startswith("\\"):
            found[-1].lines.append(Line("hunk", line))
        elif line:
            found[-1].lines.append(Line("same", line[1:], before, after))
            before, after = before + 1, after + 1
    return found


def diff(text: str, *, folded: bool = False) -> Markup:
    """Return a diff as tables that fold."""
    found = files(text)
    if not found:
        return empty("Nothing was changed.")
    return el("div.diff", [_file(file, folded=folded) for file in found])


def _file(file: File, *, folded: bool) -> Markup:
    lines = file.lines[:MOST_LINES]
    _colour(file.name, lines)
    counts = [el("span.plus", f" +{file.count('added')}"), el("span.minus", f" −{file.count('removed')}")]
    rest = len(file.lines) - len(lines)
    return el(
        "details",
        el("summary", el("code", file.name), counts),
        el(
            "div.lines",
            el("table", el("tbody", map(_row, lines))),
            tabindex=0,
            role="region",
            aria_label=f"Changes of {file.name}",
        ),
        el("p", el("small", f"{rest} more lines: lopen diff")) if rest else None,
        open=len(file.lines) <= OPEN_LINES and not folded,
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
