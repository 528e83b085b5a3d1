"""The verify commands of a project's specifications, and whether a shell text runs one so that its exit tells.

Read without the documents' own reader, which loads more than a hook may take; a test holds the two together.
"""

from __future__ import annotations

import os

from lopen.claude_hooks.event import HookEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_SPECIFICATIONS = 200
MOST_BYTES = 1_000_000
LONGEST = 4_000  # characters of a text, from its end
MOST_OUTPUTS = 10
_BLANKS, _NAMED_BY = " \t\r", frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
# Patterns, and `re` with them, are loaded at their first use: a hook has little time to start
_WRAPPER = r"(?:\w+=\S*|env|time|nohup|command|exec|nice(?: -n \S+)?|timeout(?: -\S+)* \S+)"
_BEFORE = rf"(?s)(?:.*(?:&&|;|\n|\{{|\())?\s*(?:{_WRAPPER}\s+)*"
_REDIRECTED = r"\s*(?:&>>?\s*\S+|\d?>>?\s*(?:&\d|[^\s&|;<>()]+))\s*$"
_FILTERED = r"\s*\|\s*(?:tail|head|cat|tee|grep)\b[^|;&`$()]*$"


def verify_commands(root: str) -> Iterator[str]:
    """The command lines, those that are none left out; nothing where `specs` leads out of the project."""
    specs = os.path.join(root, "specs")
    if not f"{os.path.realpath(specs)}/".startswith(f"{os.path.realpath(root)}/"):
        return
    try:
        names = sorted(os.listdir(specs))[:MOST_SPECIFICATIONS]
    except OSError:
        return
    for name in names:
        text = _text(os.path.join(specs, name, "SPECIFICATION.md"))
        for line in text.split("\n") if "verify-" in text else ():
            command = _command_of(line).strip()
            if command and command.casefold() != "none":
                yield command


def _command_of(line: str) -> str:
    """The command of a line such as ``- **verify-tests**: `pytest` ``; empty where the line is another one."""
    item = line.strip(_BLANKS)
    marked = item[1:].lstrip(_BLANKS)
    if item[:1] not in ("-", "*", "+") or item[1:2] not in (" ", "\t") or marked[:2] not in ("**", "__"):
        return ""
    name, _, value = marked[2:].partition(":")
    name, value = name.strip(_BLANKS), value.lstrip(_BLANKS)
    if name.endswith(("**", "__")):
        name = name[:-2].rstrip(_BLANKS)
    elif value.startswith(("**", "__")):
        value = value[2:].lstrip(_BLANKS)
    else:
        return ""
    if not name.startswith("verify-") or len(name) == len("verify-") or set(name) - _NAMED_BY:
        return ""
    command = value.strip("`")
    ticks = (len(value) - len(command)) // 2
    return command if ticks and value == "`" * ticks + command + "`" * ticks else ""


def passed(event: HookEvent, root: str) -> bool:
    """The call that ended ran a verify command of the project, to a good end."""
    arguments = event.arguments if isinstance(event.arguments, dict) else {}
    command = arguments.get("command")
    if not event.ok or not isinstance(command, str) or arguments.get("run_in_background"):
        return False
    return runs_one(command, verify_commands(root))


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
    import re

    return not head.strip() or re.fullmatch(_BEFORE, head) is not None


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
    import re

    for _ in range(MOST_OUTPUTS):
        shorter = re.sub(_REDIRECTED, "", text)
        shorter = re.sub(_FILTERED, "", shorter) if filtered else shorter
        if shorter == text:
            break
        text = shorter
    return text


def _text(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
