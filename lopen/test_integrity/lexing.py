"""Source text of a brace language with what is no code masked out, at the same positions. And walking over it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Syntax = Literal["javascript", "go", "rust", "java"]

_LINE = r"//[^\n]*"
_BLOCK = r"/\*.*?(?:\*/|\Z)"
_DOUBLE = r'"(?:\\.|[^"\\\n])*"?'
_SINGLE = r"'(?:\\.|[^'\\\n])*'?"
_TOKENS = {
    "javascript": rf"(?P<comment>{_LINE}|{_BLOCK})|(?P<string>{_DOUBLE}|{_SINGLE})|(?P<template>`)|(?P<slash>/)",
    "go": rf"(?P<comment>{_LINE}|{_BLOCK})|(?P<string>{_DOUBLE}|{_SINGLE}|`[^`]*`?)",
    "rust": rf"(?P<comment>{_LINE})|(?P<nested>/\*)|(?P<raw>\bb?r(?P<hashes>#*)\")"
    r"|(?P<string>\"(?:\\.|[^\"\\])*\"?|'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])')",
    "java": rf'(?P<comment>{_LINE}|{_BLOCK})|(?P<string>"""(?:\\.|.)*?(?:"""|\Z)|{_DOUBLE}|{_SINGLE})',
}
_LEXERS = {name: re.compile(pattern, re.DOTALL) for name, pattern in _TOKENS.items()}
_REGEX = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_BEFORE_REGEX = re.compile(r"(?:^|[(,=:\[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of))\s*\Z")
_IF = re.compile(r"\bif\b\s*(?P<condition>\([^{};]{0,2000}?\)|[^{}\n]{0,500}?)\s*\{")
_OPENING = re.compile(r"[(\[{]")
_UNCLOSED = 2_000
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Source:
    """`text` as written; `bare` without comments; `code` without comments and without what strings hold.

    All three have the same length, so that a position in one is the same place in the others.
    """

    text: str
    bare: str
    code: str

    @cached_property
    def _closings(self) -> dict[int, int]:
        """The position of each opening bracket's counterpart. A stray closing bracket is passed over."""
        found: dict[int, int] = {}
        waiting: list[int] = []
        for match in re.finditer(r"[()\[\]{}]", self.code):
            sign, at = match.group(), match.start()
            if sign in _OPEN:
                waiting.append(at)
            elif waiting and _OPEN.index(self.code[waiting[-1]]) == _CLOSE.index(sign):
                found[waiting.pop()] = at
        return found

    @cached_property
    def _newlines(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self.text)]

    @cached_property
    def conditions(self) -> list[tuple[int, int, str]]:
        """The blocks of all `if`s in order: where each starts and ends, and its condition."""
        return [
            (found.end() - 1, self.closing(found.end() - 1), self.span(*found.span("condition")))
            for found in _IF.finditer(self.code)
        ]

    def closing(self, at: int) -> int:
        """Where the bracket opened at `at` is closed; a bit further on where it never is (no compiler takes that)."""
        return self._closings.get(at, min(len(self.code) - 1, at + _UNCLOSED))

    def line(self, at: int) -> int:
        """The line of a position, from 1."""
        return bisect_left(self._newlines, at) + 1

    def span(self, start: int, end: int) -> str:
        """Bare text of a range, its blanks made one."""
        return " ".join(self.bare[start:end].split())

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """The ranges between a bracket's top-level commas; empty ranges left out."""
        end = self.closing(opening)
        starts = [opening + 1]
        at = opening + 1
        while at < end:
            sign = self.code[at]
            if sign in _OPEN:
                at = self.closing(at)
            elif sign == ",":
                starts.append(at + 1)
            at += 1
        ranges = zip(starts, [*(s - 1 for s in starts[1:]), end], strict=True)
        return [(start, stop) for start, stop in ranges if self.bare[start:stop].strip()]

    def top_level(self, start: int, end: int, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of `pattern` in the code of a range that stand in no bracket of their own."""
        at = start
        while at < end:
            bracket = _OPENING.search(self.code, at, end)
            stop = bracket.start() if bracket else end
            # one character more, so that a pattern may end with the bracket itself
            yield from (m for m in pattern.finditer(self.code, at, min(stop + 1, end)) if m.start() < stop)
            if bracket is None:
                return
            at = self.closing(stop) + 1

    def outermost(self, start: int, end: int, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of `pattern` in the code of a range that start in no bracket; they may hold brackets."""
        at = start
        for found in pattern.finditer(self.code, start, end):
            while at <= found.start() and (bracket := _OPENING.search(self.code, at, found.start())):
                at = self.closing(bracket.start()) + 1
            if at <= found.start():
                yield found


def lex(text: str, syntax: Syntax) -> Source:
    """`text` masked by the lexical rules of its language. Total: what is never closed ends with the text."""
    bare: list[str] = []
    code: list[str] = []
    at = 0
    lexer = _LEXERS[syntax]
    while found := lexer.search(text, at):
        bare.append(text[at : found.start()])
        code.append(text[at : found.start()])
        end, what = _token_end(text, found, "".join(code[-3:])[-40:])
        piece = text[found.start() : end]
        bare.append(_blank(piece) if what == "comment" else piece)
        code.append(_hollow(piece) if what == "string" else _blank(piece) if what == "comment" else piece)
        at = end
    bare.append(text[at:])
    code.append(text[at:])
    return Source(text, "".join(bare), "".join(code))


def _token_end(
    text: str, found: re.Match[str], before: str
) -> tuple[int, Literal["comment", "string", "code"]]:
    groups = found.groupdict()
    if groups.get("comment"):
        return found.end(), "comment"
    if groups.get("string"):
        return found.end(), "string"
    if groups.get("nested"):
        return _nested_comment_end(text, found.end()), "comment"
    if groups.get("raw"):
        close = text.find('"' + groups["hashes"], found.end())
        return (len(text) if close < 0 else close + 1 + len(groups["hashes"])), "string"
    if groups.get("template"):
        return _template_end(text, found.end()), "string"
    regex = _REGEX.match(text, found.start())
    if regex and _BEFORE_REGEX.search(before):
        return regex.end(), "string"
    return found.end(), "code"


def _nested_comment_end(text: str, at: int) -> int:
    depth = 1
    for found in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    return len(text)


def _template_end(text: str, at: int) -> int:
    """The end of a template literal, templates inside its `${}` included."""
    depth: list[int] = []  # braces open in each `${` around
    for found in re.compile(r"\\.|`|\$\{|[{}]", re.DOTALL).finditer(text, at):
        sign = found.group()
        in_text = not depth or depth[-1] == 0
        if sign == "`":
            if not depth:
                return found.end()
            if in_text:
                depth.pop()
            else:
                depth.append(0)
        elif sign == "${" and in_text:
            depth.append(1) if not depth else depth.__setitem__(-1, 1)
        elif depth and depth[-1] and sign in "{}":
            depth[-1] += 1 if sign == "{" else -1
            if depth[-1] == 0 and len(depth) == 1:
                depth.pop()
    return len(text)


def _blank(piece: str) -> str:
    return re.sub(r"[^\n]", " ", piece)


def _hollow(piece: str) -> str:
    """A string's quotes with nothing between them; its line ends stay, also the last of one that is never closed."""
    if len(piece) < 2:
        return piece
    last = "\n" if piece[-1] == "\n" else '"'
    return '"' + re.sub(r"[^\n]", "_", piece[1:-1]) + last
