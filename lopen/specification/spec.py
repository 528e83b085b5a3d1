"""Parse `SPECIFICATION.md` and find every problem that makes it unfit to build from.

Parsing is pure and never raises an error for the content: every error becomes a problem with its line.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from types import MappingProxyType

from lopen.core.shell import has_open_quote
from lopen.specification.modules import is_module_name, read_source, spec_path
from lopen.specification.sections import (
    BYTE_ORDER_MARK,
    LINE_END,
    Item,
    Outline,
    Section,
    items,
    normalise_name,
    parse_outline,
)

OVERVIEW = "Overview"
ACCEPTANCE_CRITERIA = "Acceptance Criteria"
DEPENDENCIES = "Dependencies"
SKILLS_AND_HOOKS = "Skills & Hooks"
REQUIRED = (OVERVIEW, ACCEPTANCE_CRITERIA, DEPENDENCIES, SKILLS_AND_HOOKS)
OPTIONAL = ("Notes", "References")
NO_FRONT_MATTER = "the front matter is missing: start with `---`, name, description, `---`"
UNCHANGED = "still as lopen init wrote it"
UNWRITTEN = 3  # of the template's five sentences: a specification with so many is not written yet

# The sentences that `lopen init` writes into a new specification, for the author to replace
NEW_DESCRIPTION = "One sentence on what {module} is for."
NEW_OVERVIEW = "What {module} does, for whom, and what it leaves to others."
NEW_BEHAVIOUR = "What goes in, what comes out, and what happens at the edges: rules, limits, errors."
NEW_CRITERIA = (
    "An example of use gives the result this specification states",
    "A wrong input is refused with a message that names it",
)

_PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME)\b")
_OPEN = re.compile(
    r"(TODO|TBD|FIXME)\b|.*\((TODO|TBD|FIXME):", re.DOTALL
)  # other marks may be a criterion's subject
_NO_IDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem or warning about a line of a specification, as `path:line: message`."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Findings:
    """The problems and warnings of one specification, collected while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[Problem] = []
        self._warnings: list[Problem] = []

    def problem(self, line: int, message: str) -> None:
        """Add a problem, which makes the specification unfit to build from."""
        self._problems.append(Problem(self._path, line, message))

    def warning(self, line: int, message: str) -> None:
        """Add a warning."""
        self._warnings.append(Problem(self._path, line, message))

    @property
    def by_line(self) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
        """The problems and the warnings, in the order of their lines."""
        problems, warnings = (
            tuple(sorted(kind, key=lambda p: p.line)) for kind in (self._problems, self._warnings)
        )
        return problems, warnings


# The lists that count: acceptance criteria, with stable ids, and verify commands

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


def read_criteria(
    outline: Outline, section: Section, known_ids: Mapping[str, str], found: Findings
) -> list[Criterion]:
    """Read the criteria of a section and its subsections, in order, each with its id.

    An id in the text has priority over the id that `known_ids` has for the text. The others get the numbers `AC-1`,
    `AC-2`, … that are not in use and were not in use before.
    """
    criteria: list[Criterion] = []
    for part in (section, *outline.descendants(section)):
        _read_part(items(outline.text[part.body : part.end]), outline.line_at(part.body), criteria, found)
    criteria = list(_with_ids(criteria, known_ids))
    for criterion in criteria:
        if not criterion.text:
            found.problem(criterion.line, "the criterion has no text")
        if criterion.checked:
            found.warning(criterion.line, "already ticked; lopen ignores ticks and builds it all the same")
    _find_duplicates(criteria, found)
    if not criteria:
        found.problem(section.line, "no criteria: write at least one `- [ ] …` line")
    return criteria


def _read_part(read: Sequence[Item], first_line: int, criteria: list[Criterion], found: Findings) -> None:
    """Add the criteria among the items of a section."""
    depth = 0  # of the criterion that deeper plain items belong to; 0: none
    for at, item in enumerate(read):
        line = first_line + item.first
        _find_stray_boxes(item, line, found)
        if item.depth and (box := _CHECKBOX.match(item.content)):
            depth = item.depth
            criteria.append(_criterion(box[2], checked=box[1] != " ", line=line))
        elif item.depth and _NEARLY_A_CHECKBOX.match(item.content):
            found.problem(line, "invalid checkbox: write `- [ ] ` with one space inside and one after it")
        elif item.depth > depth > 0:
            criteria[-1] = replace(criteria[-1], text=f"{criteria[-1].text} - {_folded(item.content)}")
        elif item.depth:
            depth = 0
            heads_a_list = at + 1 < len(read) and read[at + 1].depth > item.depth
            if not heads_a_list:
                found.warning(line, "a list item without a checkbox is not a criterion")


def _find_misplaced_criteria(outline: Outline, section: Section | None, found: Findings) -> None:
    """Warn once a section about checkboxes outside of the criteria's `section`: nothing is built from them."""
    inside = (section, *outline.descendants(section)) if section is not None else ()
    for part in outline.sections:
        boxes = [
            item
            for item in items(outline.text[part.body : part.end])
            if item.depth and _CHECKBOX.match(item.content)
        ]
        if boxes and part not in inside:
            line = outline.line_at(part.body) + boxes[0].first
            found.warning(
                line, f"checkboxes under {part.title!r} are not acceptance criteria; move them there"
            )


def _criterion(text: str, *, checked: bool, line: int) -> Criterion:
    own = _ID.match(text)
    return Criterion(own[1] if own else "", _folded(own[2] if own else text), checked, line)


def _find_stray_boxes(item: Item, line: int, found: Findings) -> None:
    """Find the checkboxes that markdown reads as a paragraph: `-[ ] …`, or without a list marker."""
    for offset, text in enumerate(item.content.split("\n")):
        if (offset or not item.depth) and _OUTSIDE_A_LIST.match(text):
            found.problem(line + offset, "checkbox outside of a list: write `- [ ] …` on a separate line")


def _with_ids(criteria: Sequence[Criterion], known_ids: Mapping[str, str]) -> Iterator[Criterion]:
    taken = {c.id.casefold() for c in criteria} | {known.casefold() for known in known_ids.values()}
    numbers = (f"AC-{n}" for n in count(1) if f"ac-{n}" not in taken)
    given: set[str] = set()
    for criterion in criteria:
        known = known_ids.get(criterion.text)
        chosen = criterion.id or (known if known and known not in given else next(numbers))
        given.add(chosen)
        yield replace(criterion, id=chosen)


def _find_duplicates(criteria: Sequence[Criterion], found: Findings) -> None:
    ids: dict[str, int] = {}
    texts: dict[str, int] = {}
    for criterion in criteria:
        first = ids.setdefault(criterion.id.casefold(), criterion.line)
        if first != criterion.line:
            found.problem(criterion.line, f"duplicate id {criterion.id} (first on line {first})")
        first = texts.setdefault(criterion.text, criterion.line)
        if first != criterion.line and criterion.text:
            found.problem(criterion.line, f"duplicate criterion (first on line {first})")


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


class _Malformed(Exception):
    """An invalid line that is meant as a verify command."""


def read_commands(
    outline: Outline, section: Section, found: Findings
) -> tuple[list[VerifyCommand], list[str]]:
    """Read the verify commands of a section and its subsections, standard ones first, and the globs of `tests-may-go`.

    An omitted standard command counts as none.
    """
    commands: dict[str, VerifyCommand] = {}
    tests_may_go: list[str] = []
    unread: set[str] = set()
    for part in (section, *outline.descendants(section)):
        first_line = outline.line_at(part.body)
        for item in items(outline.text[part.body : part.end]):
            line = first_line + item.first
            try:
                for name, command in _commands(item, tests_may_go):
                    if name in commands:
                        raise _Malformed(f"duplicate {name} (first on line {commands[name].line})")
                    commands[name] = VerifyCommand(name, command, line)
            except _Malformed as error:
                found.problem(line, str(error))
                unread.update(name for name in STANDARD if name in item.content)
    missing = [name for name in STANDARD if name not in commands and name not in unread]
    if not unread and not any(verify.command for verify in commands.values()):
        found.warning(section.line, "no verify command: lopen cannot test what the model builds")
    elif missing:
        verb = "is missing, which counts" if len(missing) == 1 else "are missing, which count"
        found.warning(section.line, f"{', '.join(missing)} {verb} as none")
    standard = [commands.pop(name, VerifyCommand(name, None, section.line)) for name in STANDARD]
    return [*standard, *commands.values()], tests_may_go


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


# The whole


@dataclass(frozen=True, slots=True)
class Specification:
    """One module's specification. It is fit to build from if `problems` is empty.

    `commands` contains all standard verify commands first, then the others in order. `tests_may_go` are globs of test
    files whose tests may go. `after` names the modules that must be complete before this one is built.
    """

    module: str
    path: Path
    text: str
    name: str
    description: str
    outline: Outline
    criteria: tuple[Criterion, ...]
    commands: tuple[VerifyCommand, ...]
    tests_may_go: tuple[str, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    after: tuple[str, ...] = ()

    def command(self, name: str) -> VerifyCommand | None:
        """Return the verify command with that name or tool name."""
        return next((c for c in self.commands if name in (c.name, c.tool)), None)

    def criterion(self, criterion_id: str) -> Criterion | None:
        """Return the criterion with that id."""
        return next((c for c in self.criteria if c.id == criterion_id), None)

    @property
    def unwritten(self) -> tuple[Problem, ...]:
        """Why a person cannot approve it yet although it has no problems: it is the template, or a criterion is open."""
        template = sum(w.message.startswith(UNCHANGED) for w in self.warnings) >= UNWRITTEN
        found = [Problem(self.path, 1, "this is still the template of lopen init")] if template else []
        for criterion in self.criteria:
            if mark := _OPEN.match(criterion.text):
                text = f"{criterion.id} still says {mark[1] or mark[2]}: {criterion.text}"
                found.append(Problem(self.path, criterion.line, text))
            elif criterion.text == NEW_CRITERIA[0] and not template:
                text = f"{criterion.id} is still the template's: {criterion.text}"
                found.append(Problem(self.path, criterion.line, text))
        return tuple(found)

    @property
    def command_lines(self) -> dict[str, str | None]:
        """Verify command name → command line, None if there is none. An approval records it."""
        return {c.name: c.command for c in self.commands}


def parse_specification(
    text: str, *, module: str, path: Path, known_ids: Mapping[str, str] = _NO_IDS
) -> Specification:
    """Parse a specification. `known_ids` maps criterion texts to their existing ids."""
    document, found = parse_outline(text), Findings(path)
    if text.strip("\ufeff \t\r\n"):
        name, description, after = _front_matter(document, found)
        for line in document.unclosed:
            found.problem(line, "unclosed code fence: everything after it counts as code; close it")
        _check_headings(document, found)
    else:
        name, description, after = "", "", ()
        found.problem(1, "the specification is empty")
    _find_unchanged_scaffold(text, module, found)
    _find_empty_sections(document, found)
    _find_placeholders(document, found)
    criteria: list[Criterion] = []
    commands: list[VerifyCommand] = []
    tests_may_go: list[str] = []
    section = _top_section(document, ACCEPTANCE_CRITERIA)
    _find_misplaced_criteria(document, section, found)
    if section is not None:
        criteria = read_criteria(document, section, known_ids, found)
    if (section := _top_section(document, SKILLS_AND_HOOKS)) is not None:
        commands, tests_may_go = read_commands(document, section, found)
    return Specification(
        module,
        path,
        text,
        name,
        description,
        document,
        tuple(criteria),
        tuple(commands),
        tuple(tests_may_go),
        *found.by_line,
        after,
    )


def load_specification(path: Path, *, module: str, known_ids: Mapping[str, str] = _NO_IDS) -> Specification:
    """Read and parse a specification. Raise `UnreadableSource` if the file is missing or not UTF-8 text."""
    return parse_specification(read_source(path), module=module, path=path, known_ids=known_ids)


def module_specification(root: Path, module: str) -> Specification:
    """Read the specification of a module of the project."""
    return load_specification(spec_path(root, module), module=module)


def _front_matter(document: Outline, found: Findings) -> tuple[str, str, tuple[str, ...]]:
    """Return the name and description, each "" if it is missing, and `after`. YAML tags create no objects."""
    import yaml

    if document.front_matter is None:
        unclosed = document.text.removeprefix(BYTE_ORDER_MARK).startswith("---")
        found.problem(1, "the front matter is not closed by `---`" if unclosed else NO_FRONT_MATTER)
        return "", "", ()
    try:
        # The base loader makes texts, lists and mappings alone.
        values = yaml.load(document.front_matter, Loader=yaml.BaseLoader) or {}  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        found.problem(2 + (mark.line if mark else 0), f"the front matter is not valid YAML: {reason}")
        return "", "", ()
    if not isinstance(values, dict):
        found.problem(2, "the front matter must be `key: value` lines")
        return "", "", ()
    name, description = (" ".join(_text(values.get(key)).split()) for key in ("name", "description"))
    for key, value in (("name", name), ("description", description)):
        if not value:
            found.problem(1, f"the front matter has no {key}")
    return name, description, _after(values.get("after") or [], found, line_of_after(document))


def line_of_after(document: Outline) -> int:
    """Return the line of `after` in the front matter."""
    lines = enumerate((document.front_matter or "").splitlines(), 2)
    return next((number for number, line in lines if line.startswith("after:")), 1)


def _after(value: object, found: Findings, line: int) -> tuple[str, ...]:
    """Return the modules that `after` names, as a list or one alone."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(isinstance(name, str) and is_module_name(name) for name in names):
        return tuple(dict.fromkeys(names))
    found.problem(line, "after must be a list of modules: after: [module, module]")
    return ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _top_section(document: Outline, title: str) -> Section | None:
    wanted = normalise_name(title)
    return next((s for s in document.sections if s.level == 2 and normalise_name(s.title) == wanted), None)


def _check_headings(document: Outline, found: Findings) -> None:
    first = document.sections[0].line if document.sections else 1
    if document.title is None:
        found.problem(first, "the first heading must be the title, an H1: `# …`")
    for section in document.sections[1:]:
        if section.level == 1:
            found.problem(section.line, f"a second H1, {section.title!r}: make it an H2")
    if not document.unclosed:  # an unclosed fence hides sections, which are not missing
        _find_missing_sections(document, first, found)
    lines: dict[str, int] = {}
    for section in document.sections:
        earlier = lines.setdefault(normalise_name(section.address), section.line)
        if earlier != section.line:
            found.problem(section.line, f"duplicate heading {section.address!r} (first on line {earlier})")


def _find_missing_sections(document: Outline, first: int, found: Findings) -> None:
    titles = {normalise_name(s.title): s for s in document.sections}
    for name in REQUIRED:
        if _top_section(document, name) is None:
            near = get_close_matches(normalise_name(name), titles, n=1, cutoff=0.8)
            there = titles[near[0]] if near else None
            similar = f"; line {there.line} has `{'#' * there.level} {there.title}`" if there else ""
            found.problem(first, f"the section `## {name}` is missing{similar}")
    known = {normalise_name(name) for name in REQUIRED + OPTIONAL}
    if not any(s.level == 2 and normalise_name(s.title) not in known for s in document.sections):
        message = "no section describes what the module does: write at least one H2 about its domain"
        found.problem(first, message)


def _find_empty_sections(document: Outline, found: Findings) -> None:
    for section in document.sections:
        if section.level > 1 and not document.full_text(section)[section.body - section.start :].strip():
            found.warning(section.line, f"the section {section.address!r} is empty")


def _find_placeholders(document: Outline, found: Findings) -> None:
    """Warn about each line outside code fences that is still to be written."""
    for mark in _PLACEHOLDER.finditer(document.text):
        at = bisect_right(document.fences, (mark.start(), len(document.text))) - 1
        if at < 0 or mark.start() >= document.fences[at][1]:
            line = document.line_at(mark.start())
            found.warning(line, f"{mark[0]}: write it now, or the model guesses")


def _find_unchanged_scaffold(text: str, module: str, found: Findings) -> None:
    """Warn about every line that is still as `lopen init` wrote it."""
    sentences = (NEW_DESCRIPTION, NEW_OVERVIEW, NEW_BEHAVIOUR, *NEW_CRITERIA)
    scaffold = {sentence.format(module=module) for sentence in sentences}
    for number, line in enumerate(LINE_END.split(text), 1):
        sentence = line.removeprefix("description:").removeprefix("- [ ]").strip()
        if sentence in scaffold:
            found.warning(number, f"{UNCHANGED}: {sentence!r}; describe what {module} is to do")
