"""Verify commands: the lines of a specification's `Skills & Hooks` section.

See docs/reference/specification-format.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from lopen.base.shell_syntax import parse
from lopen.base.shell_values import UNCLOSED_QUOTE
from lopen.documents.blocks import Item, items
from lopen.documents.diagnostic import Diagnostic
from lopen.documents.sections import Outline, Section

STANDARD = ("verify-setup", "verify-build", "verify-tests", "verify-lint", "verify-commit")
RESERVED = frozenset({"verify-task-completion", "verify-component-completion", "verify-module-completion"})
PREFIX = "verify-"
NEAR = 0.75  # of what stands behind the prefix: `test`, `linter`, not `links`
LONGEST_NAME = 64  # what the Messages API allows a tool's name

_NAME = re.compile(r"verify-[a-z0-9-]+")
_LINE = re.compile(r"(\*\*|__)\s*([^*`:]+?)\s*(?::\s*\1|\1\s*:)\s*(.*)", re.DOTALL)
_CODE = re.compile(r"(`+)(?!`)(.*)(?<!`)\1\s*", re.DOTALL)
_MENTION = re.compile(r"[\s*_`]*verify[-_][\w-]*[*_`]*\s*:", re.IGNORECASE)
_SHAPE = "write ``- **{name}**: `the command` `` or `- **{name}**: none`"


@dataclass(frozen=True, slots=True)
class VerifyCommand:
    """A verify command; `command` is None where the specification says there is none, or leaves it out."""

    name: str
    command: str | None
    line: int

    @property
    def tool(self) -> str:
        """The name of the tool the model is given: `verify_tests`."""
        return self.name.replace("-", "_")


@dataclass(slots=True)
class CommandsFound:
    """The commands, standard ones first, and what there is to tell."""

    commands: list[VerifyCommand]
    problems: list[Diagnostic]
    warnings: list[Diagnostic]


class _Malformed(Exception):
    """A line that means to be a verify command and is none."""


def read_commands(outline: Outline, section: Section) -> CommandsFound:
    """The verify commands of the section and its subsections; left-out standard ones as none."""
    reading = CommandsFound([], [], [])
    found: dict[str, VerifyCommand] = {}
    unread: set[str] = set()
    for part in (section, *outline.descendants(section)):
        first_line = outline.line_at(part.body)
        for item in items(outline.text[part.body : part.end]):
            line = first_line + item.first
            try:
                for name, command in _commands(item):
                    if name in found:
                        raise _Malformed(f"{name} stands on line {found[name].line} already")
                    found[name] = VerifyCommand(name, command, line)
            except _Malformed as error:
                reading.problems.append(Diagnostic(line, str(error)))
                unread.update(name for name in STANDARD if name in item.content)
    for name in STANDARD:
        if name not in found and name not in unread:
            reading.warnings.append(Diagnostic(section.line, f"{name} is left out, which counts as none"))
    reading.warnings += _near_misses(found)
    standard = [found.pop(name, VerifyCommand(name, None, section.line)) for name in STANDARD]
    reading.commands = [*standard, *found.values()]
    return reading


def _near_misses(found: Mapping[str, VerifyCommand]) -> Iterator[Diagnostic]:
    """Names of their own that look like a standard one which is not there."""
    left_out = {name.removeprefix(PREFIX): name for name in STANDARD if name not in found}
    for command in found.values():
        near = get_close_matches(command.name.removeprefix(PREFIX), left_out, n=1, cutoff=NEAR)
        if near and command.name not in STANDARD:
            yield Diagnostic(
                command.line, f"{command.name} is no standard name; did you mean {left_out[near[0]]}?"
            )


def _shape(text: str) -> str:
    """How the command that `text` is about is written."""
    return _SHAPE.format(name=next((name for name in STANDARD if name in text), "verify-tests"))


def _commands(item: Item) -> Iterator[tuple[str, str | None]]:
    """The command an item gives, if it gives one: other lines (skills, prose) are none of ours."""
    if not item.depth:
        if any(_MENTION.match(line) for line in item.content.split("\n")):
            raise _Malformed(f"a verify command must be a list item: {_shape(item.content)}")
        return
    line = _LINE.fullmatch(item.content)
    if line is None:
        if _MENTION.match(item.content):
            raise _Malformed(f"the verify command cannot be read: {_shape(item.content)}")
        return
    name, rest = line[2], line[3].strip()
    is_code = _CODE.fullmatch(rest) is not None
    if not is_code and not name.casefold().startswith(("verify-", "verify_")):
        return
    yield _checked_name(name), _command(name, rest)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise _Malformed(
            f"{name!r} is no name for a verify command: verify-, then small letters, digits and hyphens, "
            f"at most {LONGEST_NAME} in all"
        )
    if name in RESERVED:
        raise _Malformed(f"{name} is lopen's own; choose another name")
    return name


def _command(name: str, rest: str) -> str | None:
    if rest.casefold() in ("none", "`none`"):
        return None
    code = _CODE.fullmatch(rest)
    if code is None or re.search(rf"(?<!`){code[1]}(?!`)", code[2]):
        raise _Malformed(f"the command of {name} cannot be read: {_shape(name)}")
    command = code[2].replace("\n", " ")
    if command.strip() and command.startswith(" ") and command.endswith(" "):
        command = command[1:-1]  # as CommonMark reads code spans
    if not command.strip():
        raise _Malformed(f"the command of {name} is empty; say `none` if there is none")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\t" for c in command):
        raise _Malformed(f"the command of {name} holds characters that cannot be seen")
    # A here-document was on lines of its own, and its text may hold any quote
    if "<<" not in command and parse(command).uncertain == UNCLOSED_QUOTE:
        raise _Malformed(f"a quote in the command of {name} is not closed; close it: {command}")
    return command
