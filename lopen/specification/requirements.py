"""Read the lists of a specification that count: acceptance criteria, with stable ids, and verify commands.

See docs/reference/specification-format.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from lopen.core.shell import has_open_quote
from lopen.specification.sections import Diagnostic, Item, Outline, Section, items

_CHECKBOX = re.compile(r"\[([ xX])\](?:\s+|\Z)(.*)", re.DOTALL)
_NEARLY_A_CHECKBOX = re.compile(r"\[[^\w\[\]]{0,3}\]|\[[xX]\]")
_ID = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9._-]*)\](?::|(?=\s|\Z))\s*(.*)", re.DOTALL)
_OUTSIDE_A_LIST = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s*\[[ xX]?\]|\[ ?\]\s)")


@dataclass(frozen=True, slots=True)
class Criterion:
    """An acceptance criterion with its text on one line, without id and checkbox; `line` counts from 1."""

    id: str
    text: str
    checked: bool
    line: int


@dataclass(slots=True)
class CriteriaFound:
    """The criteria of a section, with its problems (which make it unusable) and warnings."""

    criteria: list[Criterion]
    problems: list[Diagnostic]
    warnings: list[Diagnostic]


def read_criteria(outline: Outline, section: Section, known_ids: Mapping[str, str]) -> CriteriaFound:
    """Read the criteria of a section and its subsections, in order, each with its id.

    An id in the text has priority over the id that `known_ids` has for the text. The others get the numbers `AC-1`,
    `AC-2`, … that are not in use and were not in use before.
    """
    reading = CriteriaFound([], [], [])
    for part in (section, *outline.descendants(section)):
        _read_part(items(outline.text[part.body : part.end]), outline.line_at(part.body), reading)
    reading.criteria = list(_with_ids(reading.criteria, known_ids))
    reading.problems += [
        Diagnostic(c.line, "the criterion has no text") for c in reading.criteria if not c.text
    ]
    reading.warnings += [
        Diagnostic(c.line, "already ticked; lopen ignores ticks and builds it all the same")
        for c in reading.criteria
        if c.checked
    ]
    reading.problems += _duplicates(reading.criteria)
    if not reading.criteria:
        reading.problems.append(Diagnostic(section.line, "no criteria: write at least one `- [ ] …` line"))
    return reading


def _read_part(found: Sequence[Item], first_line: int, reading: CriteriaFound) -> None:
    depth = 0  # of the criterion that deeper plain items belong to; 0: none
    for at, item in enumerate(found):
        line = first_line + item.first
        box = _CHECKBOX.match(item.content) if item.depth else None
        reading.problems += _stray_boxes(item, line)
        if box:
            depth = item.depth
            reading.criteria.append(_criterion(box[2], checked=box[1] != " ", line=line))
        elif item.depth and _NEARLY_A_CHECKBOX.match(item.content):
            reading.problems.append(
                Diagnostic(line, "invalid checkbox: write `- [ ] ` with one space inside and one after it")
            )
        elif item.depth > depth > 0:
            last = reading.criteria[-1]
            reading.criteria[-1] = replace(last, text=f"{last.text} - {_folded(item.content)}")
        elif item.depth:
            depth = 0
            heads_a_list = at + 1 < len(found) and found[at + 1].depth > item.depth
            if not heads_a_list:
                reading.warnings.append(Diagnostic(line, "a list item without a checkbox is not a criterion"))


def misplaced_criteria(outline: Outline, section: Section | None) -> Iterator[Diagnostic]:
    """Warn once a section about checkboxes outside of the criteria's `section`: nothing is built from them."""
    inside = (section, *outline.descendants(section)) if section is not None else ()
    for part in outline.sections:
        if part in inside:
            continue
        for item in items(outline.text[part.body : part.end]):
            if item.depth and _CHECKBOX.match(item.content):
                line = outline.line_at(part.body) + item.first
                message = f"checkboxes under {part.title!r} are not acceptance criteria; move them there"
                yield Diagnostic(line, message)
                break


def _criterion(text: str, *, checked: bool, line: int) -> Criterion:
    own = _ID.match(text)
    return Criterion(own[1] if own else "", _folded(own[2] if own else text), checked, line)


def _stray_boxes(item: Item, line: int) -> Iterator[Diagnostic]:
    """Yield the checkboxes that markdown reads as a paragraph: `-[ ] …`, or without a list marker."""
    for offset, text in enumerate(item.content.split("\n")):
        if (offset or not item.depth) and _OUTSIDE_A_LIST.match(text):
            yield Diagnostic(line + offset, "checkbox outside of a list: write `- [ ] …` on a separate line")


def _with_ids(criteria: Sequence[Criterion], known_ids: Mapping[str, str]) -> Iterator[Criterion]:
    taken = {c.id.casefold() for c in criteria} | {known.casefold() for known in known_ids.values()}
    numbers = (f"AC-{n}" for n in count(1) if f"ac-{n}" not in taken)
    given: set[str] = set()
    for criterion in criteria:
        known = known_ids.get(criterion.text)
        chosen = criterion.id or (known if known and known not in given else next(numbers))
        given.add(chosen)
        yield replace(criterion, id=chosen)


def _duplicates(criteria: Sequence[Criterion]) -> Iterator[Diagnostic]:
    ids: dict[str, int] = {}
    texts: dict[str, int] = {}
    for criterion in criteria:
        first = ids.setdefault(criterion.id.casefold(), criterion.line)
        if first != criterion.line:
            yield Diagnostic(criterion.line, f"duplicate id {criterion.id} (first on line {first})")
        first = texts.setdefault(criterion.text, criterion.line)
        if first != criterion.line and criterion.text:
            yield Diagnostic(criterion.line, f"duplicate criterion (first on line {first})")


def _folded(text: str) -> str:
    return " ".join(text.split())


STANDARD = ("verify-setup", "verify-build", "verify-tests", "verify-lint", "verify-commit")
RESERVED = frozenset({"verify-task-completion", "verify-component-completion", "verify-module-completion"})
PREFIX = "verify-"
MAX_NAME_LENGTH = 64  # the Messages API's limit for a tool's name

_NAME = re.compile(r"verify-[a-z0-9-]+")
_LINE = re.compile(r"(\*\*|__)\s*([^*`:]+?)\s*(?::\s*\1|\1\s*:)\s*(.*)", re.DOTALL)
_CODE = re.compile(r"(`+)(?!`)(.*)(?<!`)\1\s*", re.DOTALL)
_MENTION = re.compile(r"[\s*_`]*verify[-_][\w-]*[*_`]*\s*:", re.IGNORECASE)
_SHAPE = "write ``- **{name}**: `the command` `` or `- **{name}**: none`"


@dataclass(frozen=True, slots=True)
class VerifyCommand:
    """A verify command; `command` is None if the specification says `none` or omits the command."""

    name: str
    command: str | None
    line: int

    @property
    def tool(self) -> str:
        """The name of the model's tool: `verify_tests`."""
        return self.name.replace("-", "_")


TESTS_MAY_GO = "tests-may-go"


@dataclass(slots=True)
class CommandsFound:
    """The commands, standard ones first, with the problems and warnings of the section.

    `tests_may_go` are the globs of test files whose tests may go: `- **tests-may-go**: tests/old/**`, several with commas.
    """

    commands: list[VerifyCommand]
    tests_may_go: list[str]
    problems: list[Diagnostic]
    warnings: list[Diagnostic]


class _Malformed(Exception):
    """An invalid line that is meant as a verify command."""


def read_commands(outline: Outline, section: Section) -> CommandsFound:
    """Read the verify commands of a section and its subsections; an omitted standard command counts as none."""
    reading = CommandsFound([], [], [], [])
    found: dict[str, VerifyCommand] = {}
    unread: set[str] = set()
    for part in (section, *outline.descendants(section)):
        first_line = outline.line_at(part.body)
        for item in items(outline.text[part.body : part.end]):
            line = first_line + item.first
            try:
                for name, command in _commands(item, reading.tests_may_go):
                    if name in found:
                        raise _Malformed(f"duplicate {name} (first on line {found[name].line})")
                    found[name] = VerifyCommand(name, command, line)
            except _Malformed as error:
                reading.problems.append(Diagnostic(line, str(error)))
                unread.update(name for name in STANDARD if name in item.content)
    missing = [name for name in STANDARD if name not in found and name not in unread]
    if not unread and not any(verify.command for verify in found.values()):
        message = "no verify command: lopen cannot test what the model builds"
        reading.warnings.append(Diagnostic(section.line, message))
    elif missing:
        verb = "is missing, which counts" if len(missing) == 1 else "are missing, which count"
        reading.warnings.append(Diagnostic(section.line, f"{', '.join(missing)} {verb} as none"))
    standard = [found.pop(name, VerifyCommand(name, None, section.line)) for name in STANDARD]
    reading.commands = [*standard, *found.values()]
    return reading


def _correct_form(text: str) -> str:
    """Return the correct form of the command that `text` mentions."""
    mentioned = re.search(r"verify[-_][\w-]*\w", text, re.IGNORECASE)
    return _SHAPE.format(name=mentioned[0].casefold().replace("_", "-") if mentioned else "verify-tests")


def _commands(item: Item, tests_may_go: list[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the command of an item, if it has one; add its globs to `tests_may_go`. Skills and prose are ignored."""
    if not item.depth:
        if any(_MENTION.match(line) for line in item.content.split("\n")):
            raise _Malformed(f"a verify command must be a list item: {_correct_form(item.content)}")
        return
    line = _LINE.fullmatch(item.content)
    if line is None:
        if _MENTION.match(item.content):
            raise _Malformed(f"invalid verify command: {_correct_form(item.content)}")
        return
    name, rest = line[2], line[3].strip()
    if name.casefold() == TESTS_MAY_GO:
        tests_may_go += filter(None, (glob.strip(" `") for glob in rest.split(",")))
        return
    is_code = _CODE.fullmatch(rest) is not None
    if not is_code and not name.casefold().startswith(("verify-", "verify_")):
        return
    yield _checked_name(name), _command(name, rest)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise _Malformed(
            f"invalid verify command name {name!r}: use verify-, then lower-case letters, digits and hyphens, "
            f"at most {MAX_NAME_LENGTH} characters"
        )
    if name in RESERVED:
        raise _Malformed(f"{name} is reserved for lopen; choose another name")
    return name


def _command(name: str, rest: str) -> str | None:
    if rest.casefold() in ("none", "`none`"):
        return None
    code = _CODE.fullmatch(rest)
    if code is None or re.search(rf"(?<!`){code[1]}(?!`)", code[2]):
        raise _Malformed(f"invalid command of {name}: {_correct_form(name)}")
    command = code[2].replace("\n", " ")
    if command.strip() and command.startswith(" ") and command.endswith(" "):
        command = command[1:-1]  # as CommonMark reads code spans
    if not command.strip():
        raise _Malformed(f"the command of {name} is empty; write `none` if there is none")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\t" for c in command):
        raise _Malformed(f"the command of {name} contains invisible characters")
    # In a here-document and in an expansion a quote may stand alone
    if not {"<", "$"} & set(command) and has_open_quote(command):
        raise _Malformed(f"unclosed quote in the command of {name}: {command}")
    return command
