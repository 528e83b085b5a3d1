"""A specification: what `SPECIFICATION.md` says, and every way in which it is not fit to build from.

Parsing is pure and never fails for content: what is wrong becomes a problem with its line.

See docs/reference/specification-format.md.
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
from lopen.documents.diagnostic import Diagnostic
from lopen.documents.front_matter import read_front_matter
from lopen.documents.scaffold import left_over
from lopen.documents.sections import Outline, Section, folded, outline
from lopen.documents.source import file_in_the_way, read_source

FILE_NAME = "SPECIFICATION.md"
OVERVIEW = "Overview"
ACCEPTANCE_CRITERIA = "Acceptance Criteria"
DEPENDENCIES = "Dependencies"
SKILLS_AND_HOOKS = "Skills & Hooks"
REQUIRED = (OVERVIEW, ACCEPTANCE_CRITERIA, DEPENDENCIES, SKILLS_AND_HOOKS)
OPTIONAL = ("Notes", "References")

LONGEST_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_NO_IDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the specification, as `path:line: message`."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Specification:
    """One module's specification. Fit to build from where `problems` is empty.

    `commands` holds the standard verify commands first, each of them always, then the others in order.
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
        """The verify command of that name, or of that tool's name."""
        return next((c for c in self.commands if name in (c.name, c.tool)), None)

    def criterion(self, criterion_id: str) -> Criterion | None:
        """The criterion of that id."""
        return next((c for c in self.criteria if c.id == criterion_id), None)

    @property
    def command_lines(self) -> dict[str, str | None]:
        """Verify command name → command line, None where there is none: what an approval records."""
        return {c.name: c.command for c in self.commands}


def parse(text: str, *, module: str, path: Path, known_ids: Mapping[str, str] = _NO_IDS) -> Specification:
    """The specification that `text` is. `known_ids` maps criterion texts to the ids they have already."""
    cut = outline(text)
    front = read_front_matter(cut)
    problems = (
        [Diagnostic(1, "the specification is empty")]
        if not text.strip("\ufeff \t\r\n")
        else [
            *front.problems,
            *_heading_problems(cut),
        ]
    )
    warnings = [*left_over(text, module), *_other_name(front.name, module, text)]
    criteria: list[Criterion] = []
    commands: list[VerifyCommand] = []
    if (section := _top_section(cut, ACCEPTANCE_CRITERIA)) is not None:
        found = read_criteria(cut, section, known_ids)
        criteria = found.criteria
        problems += found.problems
        warnings += found.warnings
    if (section := _top_section(cut, SKILLS_AND_HOOKS)) is not None:
        read = read_commands(cut, section)
        commands = read.commands
        problems += read.problems
        warnings += read.warnings
    return Specification(
        module,
        path,
        text,
        front.name,
        front.description,
        cut,
        tuple(criteria),
        tuple(commands),
        _in_order(path, problems),
        _in_order(path, warnings),
    )


def load(path: Path, *, module: str, known_ids: Mapping[str, str] = _NO_IDS) -> Specification:
    """Read and parse a specification. `UnreadableSource` where the file is missing or no UTF-8 text."""
    return parse(read_source(path), module=module, path=path, known_ids=known_ids)


def module_name(name: str) -> str:
    """`name`, if a module may be called so: it becomes a folder, a part of ids and of a branch's name."""
    if broken := _broken_rule(name):
        raise WrongUsage(
            f"{name!r} is no module name: {broken}",
            hint="letters, digits, '-', '_' and single '.', beginning with a letter, a digit or '_', at most 64",
        )
    return name


def is_module_name(name: str) -> bool:
    """Whether a module may be called so."""
    return not _broken_rule(name)


def _broken_rule(name: str) -> str:
    """What forbids the name, which becomes a branch's too; empty where nothing does."""
    if not name:
        return "it is empty"
    if len(name) > LONGEST_NAME:
        return f"it has {len(name)} characters"
    if (strange := _NOT_IN_NAMES.search(name)) is not None:
        return f"it holds {strange[0]!r}"
    if name[0] in "-.":
        return f"it begins with {name[0]!r}"
    if ".." in name:
        return "it holds '..'"
    return next(
        (f"it ends with {end!r}, which git refuses" for end in (".", ".lock") if name.endswith(end)), ""
    )


def spec_path(root: Path, module: str) -> Path:
    """Where the module's specification lies; `WrongUsage` for a name that is none."""
    return root / "specs" / module_name(module) / FILE_NAME


def find_modules(root: Path) -> list[str]:
    """The modules of a project, by name: folders of `specs/` that hold a specification.

    None where `specs` itself is a link out of the project; `UnreadableSource` where it is a file.
    """
    return [name for name in _specified(root) if is_module_name(name)]


def misnamed(root: Path) -> Iterator[Problem]:
    """Specifications that are no module's, because their folder's name can be none."""
    for name in _specified(root):
        if broken := _broken_rule(name):
            path = root / "specs" / name / FILE_NAME
            yield Problem(
                path, 1, f"the folder's name {name!r} can be no module's: {broken}; rename the folder"
            )


def _specified(root: Path) -> list[str]:
    specs = root / "specs"
    try:
        if not specs.resolve().is_relative_to(root.resolve()):
            return []
        return sorted(f.name for f in specs.iterdir() if (f / FILE_NAME).is_file())
    except NotADirectoryError as error:
        raise file_in_the_way(specs) from error
    except OSError:  # no specs folder, or one that cannot be listed: no modules
        return []


def _other_name(name: str, module: str, text: str) -> Iterator[Diagnostic]:
    """The folder names the module: another name in the front matter misleads whoever reads it."""
    if name and name != module:
        lines = enumerate(text.splitlines(), 1)
        line = next((number for number, line in lines if line.lstrip().startswith("name")), 1)
        yield Diagnostic(
            line, f"the front matter says name: {name}, but the module is called {module}, as its folder is"
        )


def _in_order(path: Path, remarks: list[Diagnostic]) -> tuple[Problem, ...]:
    return tuple(Problem(path, r.line, r.message) for r in sorted(remarks, key=lambda r: r.line))


def _top_section(cut: Outline, title: str) -> Section | None:
    wanted = folded(title)
    return next((s for s in cut.sections if s.level == 2 and folded(s.title) == wanted), None)


def _heading_problems(cut: Outline) -> Iterator[Diagnostic]:
    first = cut.sections[0].line if cut.sections else 1
    if cut.title is None:
        yield Diagnostic(first, "the first heading must be the title, an H1: `# …`")
    for section in cut.sections[1:]:
        if section.level == 1:
            yield Diagnostic(section.line, f"a second H1, {section.title!r}: make it an H2")
    for name in REQUIRED:
        if _top_section(cut, name) is None:
            yield Diagnostic(first, f"the section `## {name}` is missing")
    known = {folded(name) for name in REQUIRED + OPTIONAL}
    if not any(s.level == 2 and folded(s.title) not in known for s in cut.sections):
        yield Diagnostic(
            first, "no section says what the module does: write at least one H2 of its own domain"
        )
    yield from _repeated_addresses(cut)


def _repeated_addresses(cut: Outline) -> Iterator[Diagnostic]:
    lines: dict[str, int] = {}
    for section in cut.sections:
        earlier = lines.setdefault(folded(section.address), section.line)
        if earlier != section.line:
            yield Diagnostic(
                section.line, f"the heading path {section.address!r} stands on line {earlier} already"
            )
