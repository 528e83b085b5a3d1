"""The verify commands of a project's specifications, and whether a shell text runs one so that its exit tells.

A pattern finds the commands, because the documents' own reader loads more than a hook may take; a test compares both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lopen.claude_hooks.event import ToolCall

MOST_SPECIFICATIONS = 200
MOST_BYTES = 1_000_000
LONGEST = 4_000  # characters of a text, from its end
MOST_OUTPUTS = 10
_VERIFY_LINE = re.compile(
    r"^[ \t]*[-*+][ \t]+(\*\*|__)[ \t]*verify-[a-z0-9-]+[ \t]*(?::[ \t]*\1|\1[ \t]*:)[ \t]*(`+)(?!`)(.*)(?<!`)\2[ \t\r]*$",
    re.MULTILINE,
)
_WRAPPER = r"(?:\w+=\S*|env|time|nohup|command|exec|nice(?: -n \S+)?|timeout(?: -\S+)* \S+)"
_BEFORE = re.compile(rf"(?s)(?:.*(?:&&|;|\n|\{{|\())?\s*(?:{_WRAPPER}\s+)*")
_REDIRECTED = re.compile(r"\s*(?:&>>?\s*\S+|\d?>>?\s*(?:&\d|[^\s&|;<>()]+))\s*$")
_FILTERED = re.compile(r"\s*\|\s*(?:tail|head|cat|tee|grep)\b[^|;&`$()]*$")


def verify_commands(root: str) -> Iterator[str]:
    """Yield the command lines, `none` left out; nothing where `specs` leads out of the project."""
    specs = Path(root, "specs")
    if not specs.resolve().is_relative_to(Path(root).resolve()):
        return
    for file in sorted(specs.glob("*/SPECIFICATION.md"))[:MOST_SPECIFICATIONS]:
        for found in _VERIFY_LINE.finditer(_text(file)):
            command = found[3].strip()
            if command and command.casefold() != "none":
                yield command


def passed(call: ToolCall, root: str) -> bool:
    """Tell whether the call that ended ran a verify command of the project, to a good end."""
    if not call.ok or not call.command or call.arguments.get("run_in_background"):
        return False
    return runs_one(call.command, verify_commands(root))


def runs_one(text: str, lines: Iterator[str]) -> bool:
    """The text ends with one of the commands, and its exit code is that command's.

    What only leads there (`cd`, variables, `timeout`) may stand before it, a redirection behind it; behind a
    pipe only with `pipefail`, for else the filter's exit is all that is told.
    """
    text = _without_output(text[-LONGEST:].strip().rstrip(";").rstrip(), filtered="pipefail" in text)
    bare = _blanks(text)
    for line in lines:
        wanted = _blanks(_without_output(line, filtered=False))
        if wanted and bare.endswith(wanted) and _leads_there(_head(text, wanted)):
            return True
    return False


def _leads_there(head: str) -> bool:
    return not head.strip() or _BEFORE.fullmatch(head) is not None


def _head(text: str, wanted: str) -> str:
    """Return the text before the command; its line ends matter, they separate."""
    signs, left = len(wanted.replace(" ", "")), len(text)
    while signs and left:
        left -= 1
        signs -= not text[left].isspace()
    return text[:left]


def _blanks(text: str) -> str:
    return " ".join(text.split())


def _without_output(text: str, *, filtered: bool) -> str:
    """The text without where its output goes."""
    if ">" not in text and "|" not in text:
        return text
    for _ in range(MOST_OUTPUTS):
        shorter = _REDIRECTED.sub("", text)
        shorter = _FILTERED.sub("", shorter) if filtered else shorter
        if shorter == text:
            break
        text = shorter
    return text


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_BYTES).decode("utf-8", "replace") if file.is_file() else ""
    except OSError:
        return ""
