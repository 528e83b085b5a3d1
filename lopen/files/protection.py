"""The one list of protected paths, for the file tools, for what a command left and for Claude Code's hooks. Pure functions over path parts.

`.lopen/` and `.claude/settings*` are protected everywhere, `.git` and `specs/**/SPECIFICATION.md` in lopen's own
runs. The rules compare names as the most tolerant file system does (case, invisible characters, trailing dots). So
they refuse every spelling of a protected name on every machine.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

SPECIFICATION = "specification.md"


@lru_cache(maxsize=16_384)
def plain(name: str) -> str:
    """Return a name as a case-insensitive, normalising file system compares it."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    visible = "".join(c for c in folded if unicodedata.category(c) != "Cf")
    return visible.rstrip(". ") or visible


def write_protection(parts: Sequence[str]) -> str:
    """Return the reason that forbids writing the path made of `parts`, "" if writing is allowed."""
    if reason := state_protection(parts):
        return reason
    names = [plain(part) for part in parts]
    if ".git" in names or "git~1" in names:
        return "only lopen writes .git"
    if names[:1] == ["specs"] and SPECIFICATION in names[1:]:
        return "a person approves the specification; it cannot be edited here"
    return ""


def state_protection(parts: Sequence[str]) -> str:
    """Return the reason that forbids writing lopen's state or Claude Code's settings, "" for every other path."""
    names = [plain(part) for part in parts]
    if ".lopen" in names:
        return "only lopen writes .lopen/"
    if any(f == ".claude" and name.startswith("settings") for f, name in itertools.pairwise(names)):
        return ".claude/settings* belongs to the user"
    return ""


def read_protection(parts: Sequence[str]) -> str:
    """Return the reason that forbids a file tool to read the path made of `parts`, "" if reading is allowed."""
    names = {plain(part) for part in parts}
    if ".lopen" in names:
        return ".lopen/ contains lopen's own state; use read_plan or read_research"
    if names & {".git", "git~1"}:
        return "use git commands (run_command) to read .git"
    return ""


class ToolRefused(Exception):
    """A refused tool call, worded for the model: `error` names the problem, `hint` the alternative."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.hint = hint


class PathRefused(ToolRefused):
    """A path that leaves the project, is protected, or names something other than a regular file."""
