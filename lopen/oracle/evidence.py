"""What a verdict rests on, and the hash that binds the verdict to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from lopen.oracle.verdict import Finding, Scope

_FORMAT = 1  # counts up when what is hashed changes, so that no old verdict answers for new evidence


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """One verify command as lopen itself ran it. `exit_code` is None where it did not end by itself.

    `tree` is the work tree's id when it ran: a result of another tree is no evidence.
    """

    tool: str
    command: str
    passed: bool
    exit_code: int | None
    output_tail: str
    tree: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a piece of work when it is to be judged.

    `subject` is the id or name of what is judged, `description` what it was to do. `sections` are
    (heading path, text) and `criteria` (id, text) of the specification. `base_tree` and `tree` are the git
    tree ids between which `diff` was taken.
    """

    scope: Scope
    subject: str
    module: str
    description: str
    sections: tuple[tuple[str, str], ...]
    criteria: tuple[tuple[str, str], ...]
    diff: str
    files_changed: tuple[str, ...]
    results: tuple[VerifyResult, ...]
    tampering: tuple[Finding, ...]
    base_tree: str
    tree: str


def evidence_hash(evidence: Evidence) -> str:
    """SHA-256 (hex) of what the evidence says, the same wherever and whenever it is gathered.

    Tree ids stand for the diff, the files changed and lopen's findings in it, which follow from them. Scope,
    subject, order, and what commands printed do not count, so that one verdict serves a task and the wider
    boundary that has the same evidence. Only where nothing changed at all does the description count: then it is
    all that tells two pieces of work apart.
    """
    unchanged = evidence.base_tree == evidence.tree
    content = {
        "format": _FORMAT,
        "base_tree": evidence.base_tree,
        "tree": evidence.tree,
        "criteria": sorted(evidence.criteria),
        "sections": sorted(evidence.sections),
        "results": sorted({(r.tool, r.command, r.passed, str(r.exit_code)) for r in evidence.results}),
        "description": evidence.description if unchanged else "",
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
