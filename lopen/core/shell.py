"""The simple commands of a shell's line, as far as `shlex` tells them. Nothing here runs anything.

Quotes and operators are read; variables, substitutions and here-documents are not expanded.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_OPERATORS = ";|&<>()\n"
_RESERVED = frozenset({"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"})
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)\n(?:.*?\n)??\s*\2(?=\n|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command of a line."""

    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()  # files that a redirection writes
    is_filter: bool = False  # it reads the output of the command before it


class UnclosedQuote(ValueError):
    """No shell runs the text: a quote is not closed."""


def simple_commands(text: str) -> list[SimpleCommand]:
    """Return the simple commands of a shell text in order. Raise `UnclosedQuote` where a quote is not closed."""
    reader = shlex.shlex(
        _HERE_DOCUMENT.sub(r"\3", text.replace("\\\n", " ")), posix=True, punctuation_chars=_OPERATORS
    )
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
    try:
        tokens = list(reader)
    except ValueError as error:
        raise UnclosedQuote(str(error)) from error
    found: list[SimpleCommand] = []
    words: list[str] = []
    outputs: list[str] = []
    redirection = ""
    is_filter = False
    for token in (*tokens, ";"):
        is_operator = not token.strip(_OPERATORS) and token != ""
        if is_operator and token.strip("&<>|") == "" and set(token) & set("<>"):
            redirection = token
            if words and words[-1].isdigit():
                words.pop()
        elif is_operator:
            if words or outputs:
                found.append(SimpleCommand(tuple(words), tuple(outputs), is_filter))
                words, outputs = [], []
            is_filter = token in ("|", "|&")
            redirection = ""
        elif redirection:
            if ">" in redirection and not (redirection.endswith("&") and token.isdigit()):
                outputs.append(token)
            redirection = ""
        elif words or token not in _RESERVED:
            words.append(token)
    return found
