"""Which paths of a project are not the model's to write or read. Pure rules over path parts.

Contract §4: `specs/**/SPECIFICATION.md`, `.lopen/`, `.git` and `.claude/settings*` are protected. The rules
compare names the way the loosest file system would (case, invisible characters, trailing dots), so that a
second spelling of a protected name is refused everywhere.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

SPECIFICATION = "specification.md"
PRIVATE_FOLDERS = frozenset({".git", ".lopen"})


@lru_cache(maxsize=16_384)
def plain(name: str) -> str:
    """A name as a case-insensitive, normalising file system would compare it."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    visible = "".join(c for c in folded if unicodedata.category(c) != "Cf")
    return visible.rstrip(". ") or visible


def write_protection(parts: Sequence[str]) -> str:
    """Why the path made of `parts` may not be written, or "" where it may."""
    names = [plain(part) for part in parts]
    if ".lopen" in names:
        return ".lopen/ is written by lopen alone"
    if ".git" in names or "git~1" in names:
        return ".git is written by lopen alone"
    if names[:1] == ["specs"] and SPECIFICATION in names[1:]:
        return "the specification is approved by a person and cannot be edited here"
    if any(f == ".claude" and name.startswith("settings") for f, name in itertools.pairwise(names)):
        return ".claude/settings* belongs to the person"
    return ""


def read_protection(parts: Sequence[str]) -> str:
    """Why the path made of `parts` may not be read by a file tool, or "" where it may."""
    names = {plain(part) for part in parts}
    if ".lopen" in names:
        return ".lopen/ holds lopen's own state; use read_plan, read_research or get_current_context"
    if names & {".git", "git~1"}:
        return ".git is read through git commands (run_command)"
    return ""


class ToolRefused(Exception):
    """A message to the model, not to a person: `error` says what is wrong, `hint` what to do instead."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.hint = hint


class PathRefused(ToolRefused):
    """The path leaves the project, is protected, or names something that is no plain file."""
