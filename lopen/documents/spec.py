"""Parse `SPECIFICATION.md` and find every problem that makes it unfit to build from.

Parsing is pure and never raises an error for the content: every error becomes a problem with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lopen.base.errors import WrongUsage
from lopen.documents.commands import VerifyCommand, read_commands
from lopen.documents.criteria import Criterion, read_criteria
from lopen.documents.front_matter import read_front_matter
from lopen.documents.scaffold import BEHAVIOUR, CRITERIA, DESCRIPTION
from lopen.documents.scaffold import OVERVIEW as OVERVIEW_SENTENCE
from lopen.documents.sections import Diagnostic, Outline, Section, normalise_name, parse_outline
from lopen.documents.source import file_instead_of_folder, read_source

FILE_NAME = "SPECIFICATION.md"
OVERVIEW = "Overview"
ACCEPTANCE_CRITERIA = "Acceptance Criteria"
DEPENDENCIES = "Dependencies"
SKILLS_AND_HOOKS = "Skills & Hooks"
REQUIRED = (OVERVIEW, ACCEPTANCE_CRITERIA, DEPENDENCIES, SKILLS_AND_HOOKS)
OPTIONAL = ("Notes", "References")

MAX_MODULE_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
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

    `commands` contains all standard verify commands first, then the others in order.
    """

    module: str
    path: Path
    text: str
    name: str
    description: str
    outline: Outline
    criteria: tuple[Criterion, ...]
    commands: tuple[VerifyCommand, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]

    def command(self, name: str) -> VerifyCommand | None:
        """Return the verify command with that name or tool name."""
        return next((c for c in self.commands if name in (c.name, c.tool)), None)

    def criterion(self, criterion_id: str) -> Criterion | None:
        """Return the criterion with that id."""
        return next((c for c in self.criteria if c.id == criterion_id), None)

    @property
    def command_lines(self) -> dict[str, str | None]:
        """Verify command name → command line, None if there is none. An approval records it."""
        return {c.name: c.command for c in self.commands}


def parse_specification(
    text: str, *, module: str, path: Path, known_ids: Mapping[str, str] = _NO_IDS
) -> Specification:
    """Parse a specification. `known_ids` maps criterion texts to their existing ids."""
    document = parse_outline(text)
    front = read_front_matter(document)
    problems = (
        [Diagnostic(1, "the specification is empty")]
        if not text.strip("\ufeff \t\r\n")
        else [
            *front.problems,
            *_heading_problems(document),
        ]
    )
    warnings = [*_unchanged_scaffold(text, module), *_name_mismatch(front.name, module, text)]
    criteria: list[Criterion] = []
    commands: list[VerifyCommand] = []
    if (section := _top_section(document, ACCEPTANCE_CRITERIA)) is not None:
        found = read_criteria(document, section, known_ids)
        criteria = found.criteria
        problems += found.problems
        warnings += found.warnings
    if (section := _top_section(document, SKILLS_AND_HOOKS)) is not None:
        read = read_commands(document, section)
        commands = read.commands
        problems += read.problems
        warnings += read.warnings
    return Specification(
        module,
        path,
        text,
        front.name,
        front.description,
        document,
        tuple(criteria),
        tuple(commands),
        _sorted_problems(path, problems),
        _sorted_problems(path, warnings),
    )


def load_specification(path: Path, *, module: str, known_ids: Mapping[str, str] = _NO_IDS) -> Specification:
    """Read and parse a specification. Raise `UnreadableSource` if the file is missing or not UTF-8 text."""
    return parse_specification(read_source(path), module=module, path=path, known_ids=known_ids)


def module_name(name: str) -> str:
    """Return a valid module name; it becomes a folder, a part of ids and of a branch name.

    Raises:
        WrongUsage: the name is not valid.
    """
    if error := _name_error(name):
        raise WrongUsage(
            f"invalid module name {name!r}: {error}",
            hint="use at most 64 letters, digits, '-', '_' and single '.'; start with a letter, a digit or '_'",
        )
    return name


def is_module_name(name: str) -> bool:
    """Return True if a module can have this name."""
    return not _name_error(name)


def _name_error(name: str) -> str:
    """Return the error in a module name, which becomes a branch name too; "" for a valid name."""
    if not name:
        return "it is empty"
    if len(name) > MAX_MODULE_NAME:
        return f"it has {len(name)} characters"
    if (forbidden := _NOT_IN_NAMES.search(name)) is not None:
        return f"it contains {forbidden[0]!r}"
    if name[0] in "-.":
        return f"it begins with {name[0]!r}"
    if ".." in name:
        return "it contains '..'"
    return next(
        (f"it ends with {end!r}, which git refuses" for end in (".", ".lock") if name.endswith(end)), ""
    )


def spec_path(root: Path, module: str) -> Path:
    """Return the path of a module's specification. Raise `WrongUsage` for an invalid name."""
    return root / "specs" / module_name(module) / FILE_NAME


def find_modules(root: Path) -> list[str]:
    """Return the modules of a project by name: the folders of `specs/` with a specification.

    A project whose `specs` is a link out of the project has none. Raise `UnreadableSource` if `specs` is a file.
    """
    return [name for name in _specified(root) if is_module_name(name)]


def misnamed_folders(root: Path) -> Iterator[Problem]:
    """Yield a problem for each specification in a folder whose name is not a valid module name."""
    for name in _specified(root):
        if error := _name_error(name):
            path = root / "specs" / name / FILE_NAME
            yield Problem(path, 1, f"invalid module name {name!r}: {error}; rename the folder")


def _specified(root: Path) -> list[str]:
    specs = root / "specs"
    try:
        if not specs.resolve().is_relative_to(root.resolve()):
            return []
        return sorted(f.name for f in specs.iterdir() if (f / FILE_NAME).is_file())
    except NotADirectoryError as error:
        raise file_instead_of_folder(specs) from error
    except OSError:  # no specs folder, or one that cannot be listed: no modules
        return []


def _name_mismatch(name: str, module: str, text: str) -> Iterator[Diagnostic]:
    """Warn about a name in the front matter other than the folder's, which is the module's name."""
    if name and name != module:
        lines = enumerate(text.splitlines(), 1)
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
    for name in REQUIRED:
        if _top_section(document, name) is None:
            yield Diagnostic(first, f"the section `## {name}` is missing")
    known = {normalise_name(name) for name in REQUIRED + OPTIONAL}
    if not any(s.level == 2 and normalise_name(s.title) not in known for s in document.sections):
        yield Diagnostic(
            first, "no section describes what the module does: write at least one H2 about its domain"
        )
    yield from _repeated_addresses(document)


def _repeated_addresses(document: Outline) -> Iterator[Diagnostic]:
    lines: dict[str, int] = {}
    for section in document.sections:
        earlier = lines.setdefault(normalise_name(section.address), section.line)
        if earlier != section.line:
            yield Diagnostic(section.line, f"duplicate heading {section.address!r} (first on line {earlier})")


def _unchanged_scaffold(text: str, module: str) -> Iterator[Diagnostic]:
    """Warn about every line that is still as `lopen init` wrote it."""
    sentences = (DESCRIPTION, OVERVIEW_SENTENCE, BEHAVIOUR, *CRITERIA)
    scaffold = {sentence.format(module=module) for sentence in sentences}
    for number, line in enumerate(text.splitlines(), 1):
        sentence = line.removeprefix("description:").removeprefix("- [ ]").strip()
        if sentence in scaffold:
            message = f"still as lopen init wrote it: {sentence!r}; describe what {module} is to do"
            yield Diagnostic(number, message)
