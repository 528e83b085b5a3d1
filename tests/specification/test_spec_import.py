"""Specifications of other tools: what becomes of each, and that nothing is invented."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.specification.spec import Specification, parse_specification
from lopen.specification.spec_import import gaps, imported, specification

COMMANDS = ["- **verify-tests**: `pytest -q`"]

SPEC_KIT = {
    "spec.md": """\
# Feature Specification: Photo Albums

**Feature Branch**: `001-photo-albums`

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Group photos (Priority: P1)

A person groups photos by date.

**Acceptance Scenarios**:

1. **Given** ten photos, **When** they are grouped, **Then** each is in one album
2. **Given** no photo, **When** they are grouped, **Then** there is no album

### Edge Cases

- What happens with a photo without a date? [NEEDS CLARIFICATION: which album?]

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST group photos by date
- **FR-002**: System MUST NOT nest albums

## Success Criteria *(mandatory)*

### Measurable Outcomes

- **SC-001**: 1,000 photos are grouped in a second
""",
    "plan.md": "# Plan\n\n**Primary Dependencies**: Pillow, exifread\n",
    "tasks.md": "- [ ] T001 do it\n",
}
KIRO = {
    "requirements.md": """\
# Requirements Document

## Introduction

Sign people in.

## Requirements

### Requirement 1

**User Story:** As a person, I want to sign in, so that I see my data.

#### Acceptance Criteria

1. WHEN the password is right THEN the system SHALL open a session
2. IF the password is wrong THEN the system SHALL refuse it

### Requirement 2: Sign out

#### Acceptance Criteria

1. WHEN a person signs out THEN the session SHALL end
""",
    "design.md": "# Design\n\n## Architecture\n\nA table of sessions.\n",
    "tasks.md": "- [ ] 1. write it\n",
}
ISSUE = {
    "issue.md": """\
# Export as CSV

People want their data.

## Acceptance criteria

- [ ] A file with a header
- [x] Values are quoted

## Dependencies

- none beyond the standard library
"""
}


def read(files: dict[str, str]) -> Specification:
    """The specification that comes of the files, which must pass `lopen check`."""
    text = specification(imported(files), "m", COMMANDS, "the source")
    spec = parse_specification(text, module="m", path=Path("specs/m/SPECIFICATION.md"))
    assert spec.problems == (), text
    return spec


@pytest.mark.parametrize(
    ("files", "criteria", "said"),
    [
        (
            SPEC_KIT,
            {
                "AC-1": "Given ten photos, When they are grouped, Then each is in one album",
                "AC-2": "Given no photo, When they are grouped, Then there is no album",
                "FR-001": "System MUST group photos by date",
                "FR-002": "System MUST NOT nest albums",
                "SC-001": "1,000 photos are grouped in a second",
            },
            [
                "- Pillow\n- exifread",
                "TODO: which album?",
                "tasks.md: lopen plans its own tasks",
                "Edge Cases",
            ],
        ),
        (
            KIRO,
            {
                "R1.1": "WHEN the password is right THEN the system SHALL open a session",
                "R1.2": "IF the password is wrong THEN the system SHALL refuse it",
                "R2.1": "WHEN a person signs out THEN the session SHALL end",
            },
            [
                "A table of sessions.",
                "TODO: the source names no dependencies",
                "As a person, I want to sign in",
            ],
        ),
        (ISSUE, {"AC-1": "A file with a header", "AC-2": "Values are quoted"}, ["People want their data."]),
    ],
    ids=["spec-kit", "Kiro", "issue"],
)
def test_criteria_and_texts_are_taken_over(
    files: dict[str, str], criteria: dict[str, str], said: list[str]
) -> None:
    spec = read(files)
    assert {c.id: c.text for c in spec.criteria} == criteria
    assert [text for text in said if text not in spec.text] == []
    if files in (KIRO, ISSUE):  # a list under a heading of criteria is not behaviour too
        assert [spec.text.count(text) for text in criteria.values()] == [1] * len(criteria)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", 4),
        ("# Notes\n\nKeep [NEEDS CLARIFICATION: which\nfields?] notes.\n", 4),
        ("just words\n", 4),
        ("# T\n\n## A\n\nx\n\n## A\n\ny\n\n### Overview\n\nz\n", 2),
        ('---\nname: "\n---\n# T: "quoted" #\n\n- [ ] same\n- [ ] same\n\n**FR-1**\n', 3),
        ("# T\n\n- **FR-1**: one\n- **FR-1**: two\n- **FR-2**:\n", 2),
    ],
)
def test_broken_sources_give_a_specification_with_marked_gaps(text: str, missing: int) -> None:
    assert len(gaps(read({"x.md": text}).text)) <= missing
    assert "TODO" in read({"x.md": text}).text
    assert "NEEDS" not in read({"x.md": text}).text
    assert ("(TODO: which fields?)" in read({"x.md": text}).text) == ("which" in text)  # on one line
