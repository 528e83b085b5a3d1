"""Turn a specification of another tool into one of lopen's: spec-kit, Kiro, or plain Markdown.

Each gap in the source becomes a line that begins with `TODO`, which `lopen check` warns of. The result also lists the
omitted parts. docs/reference/specification-format.md describes the conversion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lopen.specification.sections import Outline, Section, items, normalise_name, parse_outline

MAIN_FILES = ("spec.md", "requirements.md")
DESIGN_FILES = ("design.md", "plan.md")
LATER = "write it before you approve this specification"
COUNTED = (
    "criteria are: checkboxes; lines such as **FR-001**: text; and lists under the headings"
    " Acceptance Criteria, Acceptance Scenarios and Success Criteria"
)

_BOLD_ID = re.compile(r"\*\*([A-Z]{2,6}-?\d+[a-z]?)\*\*\s*:?\s*(.*)", re.DOTALL)
_CHECKBOX = re.compile(r"\[[ xX]\]\s+(.*)", re.DOTALL)
_UNCLEAR = re.compile(r"\[NEEDS CLARIFICATION:?\s*([^\]]*)\]")
_DEPENDENCIES = re.compile(r"^\*\*Primary Dependencies\*\*:\s*(.+)$", re.MULTILINE)
_REQUIREMENT = re.compile(r"requirement\s*:?\s*(.*)", re.IGNORECASE)
_CRITERIA_TITLES = frozenset({"acceptance criteria", "acceptance scenarios", "success criteria"})
_OWN_SECTIONS = frozenset({"overview", "introduction", "purpose", "why", "summary", "dependencies"})
_WRITTEN_SECTIONS = frozenset(
    {"overview", "behaviour", "acceptance criteria", "dependencies", "skills & hooks", "notes"}
)


@dataclass(slots=True)
class Imported:
    """The parts of a specification as the source has them, and the omitted parts with the reasons."""

    title: str
    overview: str = ""
    behaviour: list[str] = field(default_factory=list)
    criteria: dict[str, str] = field(default_factory=dict)  # text → id, "" for none
    dependencies: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def criterion(self, text: str, name: str = "") -> None:
        """Add a criterion once; an id that is taken already is dropped."""
        line = " ".join(text.split()).strip()
        taken = {known.casefold() for known in self.criteria.values()}
        if line and line not in self.criteria:
            self.criteria[line] = "" if name.casefold() in taken else name


def imported(files: Mapping[str, str]) -> Imported:
    """Read the Markdown files of one feature: name → text. The first of `MAIN_FILES`, else the first, is the main one."""
    main = next((name for name in MAIN_FILES if name in files), next(iter(files)))
    outline = parse_outline(files[main])
    result = Imported(outline.title.title if outline.title else main.removesuffix(".md"))
    _sections(result, outline)
    for name in DESIGN_FILES:
        if name in files and name != main:
            _design(result, name, files[name])
    for name in sorted(set(files) - {main, *DESIGN_FILES}):
        reason = "lopen plans its own tasks" if name == "tasks.md" else "read it, and add what matters"
        result.left_out.append(f"{name}: {reason}")
    return result


def _sections(result: Imported, outline: Outline) -> None:
    """Take the sections of a file: known ones in their place, the others as behaviour, and the criteria of all."""
    requirement = ""
    for section in outline.sections:
        body = outline.text[section.body : section.end]
        title = normalise_name(section.title)
        if (named := _REQUIREMENT.fullmatch(section.title)) and section.level == 3:
            requirement = named[1].strip()
        if title in _OWN_SECTIONS:
            _own_section(result, title, body)
        elif section is not outline.title:
            text = _outside_lists(body) if title in _CRITERIA_TITLES else body
            if text.strip() or title not in _CRITERIA_TITLES:  # a list of criteria is not told twice
                result.behaviour.append(_demoted(outline, section, text))
        elif body.strip() and not result.overview:
            result.overview = body.strip()
        _criteria(result, section, body, requirement)


def specification(source: Imported, module: str, commands: Sequence[str], origin: str) -> str:
    """Return the specification as text. `commands` are the lines of `Skills & Hooks`."""
    plain = _UNCLEAR.sub("", source.overview or source.title)
    description = " ".join(plain.split()).partition(". ")[0][:200] or source.title
    title = source.title
    if normalise_name(title) in _WRITTEN_SECTIONS:
        title = f"{title} ({module})"  # two headings of the same name would be a problem
    criteria = [f"- [ ] {f'[{name}] ' if name else ''}{text}" for text, name in source.criteria.items()]
    notes = [f"Imported from {origin}.", *(f"- Not taken over: {line}" for line in source.left_out)]
    parts = [
        f"---\nname: {module}\ndescription: {json.dumps(description, ensure_ascii=False)}\n---",
        f"# {title}",
        f"## Overview\n\n{source.overview or f'TODO: the source has no overview; {LATER}.'}",
        f"## Behaviour\n\n{_joined(source.behaviour) or f'TODO: the source describes no behaviour; {LATER}.'}",
        "## Acceptance Criteria\n\n"
        + ("\n".join(criteria) or f"- [ ] TODO: the source has no acceptance criterion; {LATER}"),
        "## Dependencies\n\n"
        + (
            "\n".join(f"- {d}" for d in source.dependencies)
            or f"TODO: the source names no dependencies; {LATER}, or `None.`"
        ),
        "## Skills & Hooks\n\n" + "\n".join(commands),
        "## Notes\n\n" + "\n".join(notes),
    ]
    return _UNCLEAR.sub(_gap, "\n\n".join(parts)) + "\n"


def _gap(unclear: re.Match[str]) -> str:
    """Return the mark of a gap, on one line however the source breaks it."""
    return f"(TODO: {' '.join(unclear[1].split()) or 'needs clarification'})"


def gaps(text: str) -> list[str]:
    """Return the marked gaps of an imported specification, in order."""
    return [line.strip("- []") for line in text.splitlines() if "TODO" in line]


def _outside_lists(body: str) -> str:
    return "\n\n".join(item.content for item in items(body) if not item.depth)


def _own_section(result: Imported, title: str, body: str) -> None:
    """Take a section that lopen has a place for."""
    if title == "dependencies":
        found = [" ".join(i.content.split()) for i in items(body)]
        result.dependencies += [line for line in found if line]
    elif body.strip():
        result.overview = "\n\n".join(filter(None, (result.overview, body.strip())))


def _criteria(result: Imported, section: Section, body: str, requirement: str) -> None:
    """Add the section's criteria: checkboxes, named requirements and numbered acceptance criteria."""
    listed = normalise_name(section.title) in _CRITERIA_TITLES or "**Acceptance Scenarios**" in body
    number = requirement.partition(":")[0].strip() if requirement[:1].isdigit() else ""
    position = 0
    for item in items(body):
        if not item.depth:
            continue
        if named := _BOLD_ID.fullmatch(item.content):
            result.criterion(_plain(named[2]), named[1])
        elif box := _CHECKBOX.fullmatch(item.content):
            result.criterion(_plain(box[1]))
        elif listed:
            position += 1
            result.criterion(_plain(item.content), f"R{number}.{position}" if number else "")


def _plain(text: str) -> str:
    """Return the text without emphasis around its keywords (**GIVEN**, **WHEN**, **THEN**)."""
    return re.sub(r"\*\*([^*]+)\*\*", r"\1", text)


def _demoted(outline: Outline, section: Section, body: str) -> str:
    """Return a section one level down, at most to H6, so that it fits below `## Behaviour`."""
    title = " ".join(section.title.split())
    return f"{'#' * min(section.level + 1, 6)} {title}\n\n{body.strip()}".rstrip()


def _design(result: Imported, name: str, text: str) -> None:
    """Take the design as behaviour, and the dependencies that a plan names."""
    if found := _DEPENDENCIES.search(text):
        result.dependencies += [part.strip() for part in found[1].split(",") if part.strip()]
    if name == "design.md":
        outline = parse_outline(text)
        for section in outline.sections:
            if section is not outline.title:
                body = outline.text[section.body : section.end]
                result.behaviour.append(_demoted(outline, section, body))
    else:
        result.left_out.append(f"{name}: lopen makes its own plan")


def _joined(sections: Sequence[str]) -> str:
    """Join the sections with unique headings."""
    seen: dict[str, int] = {}

    def unique(text: str) -> Iterator[str]:
        heading, _, rest = text.partition("\n")
        count = seen[heading.casefold()] = seen.get(heading.casefold(), 0) + 1
        yield heading if count == 1 else f"{heading} ({count})"
        yield rest

    return "\n\n".join("\n".join(unique(text)).rstrip() for text in sections)
