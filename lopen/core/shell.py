"""The simple commands of a shell's line, as far as `shlex` tells them. Nothing here runs anything.

Quotes and operators are read; variables, substitutions and here-documents are not expanded.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_SIGNS = ";|&<>()\n"
_OPERATOR = re.compile(r"&?>>?[&|]?|<<[<-]?|<[&>]?|\|\||\|&?|&&|&|;;?&?|[()\n]")
_RESERVED = frozenset(["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"])
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_COMMENT = re.compile(r"(?:^|(?<=[\s;]))#[^\n]*")
# Programs that run the program named in their arguments
_WRAPPER = re.compile(
    r"env|eval|exec|command|time|timeout|nice|ionice|nohup|stdbuf|setsid|sudo|doas|xargs|parallel|watch|xvfb-run"
    r"|run|uv|uvx|pipx|poetry|pipenv|pdm|hatch|rye|pixi|conda|npx|bunx|pnpx|bash|sh|zsh|dash|ksh|source|\."
)
_WITH_EXEC = frozenset(["pnpm", "yarn", "bundle"])  # the same only with the word `exec` behind them
_PASSED = re.compile(r"-.*|\w+=.*|\d+(\.\d+)?[smhd]?")  # options, variables and durations of wrappers
_PYTHON = re.compile(r"(python|pypy|py)[\d.]*")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command of a line. `before`: the operators and reserved words between the earlier command and this one."""

    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()  # files that a redirection writes
    before: tuple[str, ...] = ()


def has_open_quote(text: str) -> bool:
    """Tell whether a quote in the text is not closed, so that no shell runs it."""
    return _tokens(text) is None


def simple_commands(text: str) -> list[SimpleCommand]:
    """Return the simple commands of a shell text in order; none where a quote is not closed."""
    found: list[SimpleCommand] = []
    words: list[str] = []
    outputs: list[str] = []
    before: list[str] = []
    redirection = ""
    for token in (*(_tokens(text) or ()), ";"):
        operators = _OPERATOR.findall(token) if token and not token.strip(_SIGNS) else []
        for operator in operators:
            if "<" in operator or ">" in operator:
                redirection = operator
                if words and words[-1].isdigit():
                    words.pop()
                continue
            if words or outputs:
                found.append(SimpleCommand(tuple(words), tuple(outputs), tuple(before)))
                words, outputs, before = [], [], []
            before.append(operator)
            redirection = ""
        if operators:
            continue
        if redirection:
            if ">" in redirection and not (redirection.endswith("&") and token.isdigit()):
                outputs.append(token)
            redirection = ""
        elif words or token not in _RESERVED:
            words.append(token)
        else:
            before.append(token)
    return found


def _tokens(text: str) -> list[str] | None:
    """Return words and runs of operators; None where a quote is not closed. A quote in a comment opens nothing."""
    text = _without_here_documents(text.replace("\\\n", " "))
    for readable in (text, _COMMENT.sub("", text)):
        reader = shlex.shlex(readable, posix=True, punctuation_chars=_SIGNS)
        reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
        try:
            return list(reader)
        except ValueError:
            continue
    return None


def _without_here_documents(text: str) -> str:
    """Return the text without its here-documents. An opening whose last line is missing stays: it may be a shift."""
    lines = text.split("\n")
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(line.lstrip(), []).append(number)
    kept: list[str] = []
    number = 0
    while number < len(lines):
        line, last = lines[number], number
        for opening in _HERE_DOCUMENT.finditer(lines[number]):
            ends = places.get(opening[2], [])
            after = bisect_right(ends, last)
            if after < len(ends):
                last = ends[after]
                line = line.replace(opening[0], "", 1)
        kept.append(line)
        number = last + 1
    return "\n".join(kept)


def unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Return the words from the program on that a simple command runs: behind variables, wrappers and `python -m`."""
    at = 0
    while at < len(words):
        name = posixpath.basename(words[at])
        if name in _WITH_EXEC and list(words[at + 1 : at + 2]) == ["exec"]:
            at += 2
        elif _WRAPPER.fullmatch(name) or _PASSED.fullmatch(words[at]):
            at += 1
        else:
            break
    if at < len(words) and _PYTHON.fullmatch(posixpath.basename(words[at])):
        options = at + 1
        while options < len(words) and words[options].startswith("-"):
            options += 1
            if words[options - 1] == "-m":
                return words[options:]
    return words[at:]
