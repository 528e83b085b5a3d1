"""Parse `SPECIFICATION.md` and find every problem that makes it unfit to build from.

Parsing is pure and never raises an error for the content: every error becomes a problem with its line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from lopen.specification.modules import read_source
from lopen.specification.requirements import (
    Criterion,
    VerifyCommand,
    misplaced_criteria,
    read_commands,
    read_criteria,
)
from lopen.specification.sections import (
    BYTE_ORDER_MARK,
    LINE_END,
    Diagnostic,
    Outline,
    Section,
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
)  # others may be what a criterion is about
_NO_IDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem or warning about a line of a specification, as `path:line: message`."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Specification:
    """One module's specification. It is fit to build from if `problems` is empty.

    `commands` contains all standard verify commands first, then the others in order. `tests_may_go` are globs of test
    files whose tests may go.
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
    document = parse_outline(text)
    (name, description), front_problems = _front_matter(document)
    problems = (
        [Diagnostic(1, "the specification is empty")]
        if not text.strip("\ufeff \t\r\n")
        else [
            *front_problems,
            *document.unclosed,
            *_heading_problems(document),
        ]
    )
    warnings = [
        *_unchanged_scaffold(text, module),
        *_name_mismatch(name, module, text),
        *_empty_sections(document),
        *_placeholders(document),
    ]
    criteria: list[Criterion] = []
    commands: list[VerifyCommand] = []
    tests_may_go: list[str] = []
    section = _top_section(document, ACCEPTANCE_CRITERIA)
    warnings += misplaced_criteria(document, section)
    if section is not None:
        found = read_criteria(document, section, known_ids)
        criteria = found.criteria
        problems += found.problems
        warnings += found.warnings
    if (section := _top_section(document, SKILLS_AND_HOOKS)) is not None:
        read = read_commands(document, section)
        commands, tests_may_go = read.commands, read.tests_may_go
        problems += read.problems
        warnings += read.warnings
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
        _sorted_problems(path, problems),
        _sorted_problems(path, warnings),
    )


def load_specification(path: Path, *, module: str, known_ids: Mapping[str, str] = _NO_IDS) -> Specification:
    """Read and parse a specification. Raise `UnreadableSource` if the file is missing or not UTF-8 text."""
    return parse_specification(read_source(path), module=module, path=path, known_ids=known_ids)


def _front_matter(document: Outline) -> tuple[tuple[str, str], list[Diagnostic]]:
    """Return the name and description, each "" if it is missing, and the problems. YAML tags create no objects."""
    import yaml

    if document.front_matter is None:
        unclosed = document.text.removeprefix(BYTE_ORDER_MARK).startswith("---")
        message = "the front matter is not closed by `---`" if unclosed else NO_FRONT_MATTER
        return ("", ""), [Diagnostic(1, message)]
    try:
        # The base loader makes texts, lists and mappings alone.
        found = yaml.load(document.front_matter, Loader=yaml.BaseLoader) or {}  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = 2 + (mark.line if mark else 0)
        return ("", ""), [Diagnostic(line, f"the front matter is not valid YAML: {reason}")]
    if not isinstance(found, dict):
        return ("", ""), [Diagnostic(2, "the front matter must be `key: value` lines")]
    name, description = (" ".join(_text(found.get(key)).split()) for key in ("name", "description"))
    given = {"name": name, "description": description}
    problems = [Diagnostic(1, f"the front matter has no {key}") for key, value in given.items() if not value]
    return (name, description), problems


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _name_mismatch(name: str, module: str, text: str) -> Iterator[Diagnostic]:
    """Warn about a name in the front matter other than the folder's, which is the module's name."""
    if name and name != module:
        lines = enumerate(LINE_END.split(text), 1)
        line = next((number for number, line in lines if line.lstrip().startswith("name")), 1)
        yield Diagnostic(
            line, f"the front matter has name: {name}, but the module's name is {module}, from its folder"
        )


def _sorted_problems(path: Path, diagnostics: list[Diagnostic]) -> tuple[Problem, ...]:
    return tuple(Problem(path, d.line, d.message) for d in sorted(diagnostics, key=lambda d: d.line))


def _top_section(document: Outline, title: str) -> Section | None:
    wanted = normalise_name(title)
    return next((s for s in document.sections if s.level == 2 and normalise_name(s.title) == wanted), None)


def _heading_problems(document: Outline) -> Iterator[Diagnostic]:
    first = document.sections[0].line if document.sections else 1
    if document.title is None:
        yield Diagnostic(first, "the first heading must be the title, an H1: `# …`")
    for section in document.sections[1:]:
        if section.level == 1:
            yield Diagnostic(section.line, f"a second H1, {section.title!r}: make it an H2")
    if not document.unclosed:  # what it hides is not missing
        yield from _missing_sections(document, first)
    yield from _repeated_addresses(document)


def _missing_sections(document: Outline, first: int) -> Iterator[Diagnostic]:
    titles = {normalise_name(s.title): s for s in document.sections}
    for name in REQUIRED:
        if _top_section(document, name) is None:
            near = get_close_matches(normalise_name(name), titles, n=1, cutoff=0.8)
            found = titles[near[0]] if near else None
            similar = f"; line {found.line} has `{'#' * found.level} {found.title}`" if found else ""
            yield Diagnostic(first, f"the section `## {name}` is missing{similar}")
    known = {normalise_name(name) for name in REQUIRED + OPTIONAL}
    if not any(s.level == 2 and normalise_name(s.title) not in known for s in document.sections):
        yield Diagnostic(
            first, "no section describes what the module does: write at least one H2 about its domain"
        )


def _empty_sections(document: Outline) -> Iterator[Diagnostic]:
    for section in document.sections:
        if section.level > 1 and not document.full_text(section)[section.body - section.start :].strip():
            yield Diagnostic(section.line, f"the section {section.address!r} is empty")


def _placeholders(document: Outline) -> Iterator[Diagnostic]:
    """Warn about each line outside code fences that is still to be written."""
    for found in _PLACEHOLDER.finditer(document.text):
        at = bisect_right(document.fences, (found.start(), len(document.text))) - 1
        if at < 0 or found.start() >= document.fences[at][1]:
            line = document.line_at(found.start())
            yield Diagnostic(line, f"{found[0]}: write it now, or the model guesses")


def _repeated_addresses(document: Outline) -> Iterator[Diagnostic]:
    lines: dict[str, int] = {}
    for section in document.sections:
        earlier = lines.setdefault(normalise_name(section.address), section.line)
        if earlier != section.line:
            yield Diagnostic(section.line, f"duplicate heading {section.address!r} (first on line {earlier})")


def _unchanged_scaffold(text: str, module: str) -> Iterator[Diagnostic]:
    """Warn about every line that is still as `lopen init` wrote it."""
    sentences = (NEW_DESCRIPTION, NEW_OVERVIEW, NEW_BEHAVIOUR, *NEW_CRITERIA)
    scaffold = {sentence.format(module=module) for sentence in sentences}
    for number, line in enumerate(LINE_END.split(text), 1):
        sentence = line.removeprefix("description:").removeprefix("- [ ]").strip()
        if sentence in scaffold:
            message = f"{UNCHANGED}: {sentence!r}; describe what {module} is to do"
            yield Diagnostic(number, message)
