"""A module's specification for the gate: rendered, with what an approval covers and what has changed since the last."""

from __future__ import annotations

from typing import Any

from lopen.application.approval import specification
from lopen.base.escape import exact
from lopen.documents.drift import PREAMBLE, Drift, compare_hashes, section_hashes, spec_hash
from lopen.documents.elements import elements
from lopen.documents.spec import Problem, Specification
from lopen.limits.report import instant
from lopen.server.served import OpenProject
from lopen.workflow.session import Approval


def specification_view(project: OpenProject, module: str) -> dict[str, Any]:
    """Return the specification as the gate shows it; commands have their invisible characters visible."""
    spec = specification(project.root, project.store, module)
    given = project.store.approval(module)
    hashes = section_hashes(spec)
    digest = spec_hash(hashes)
    drift = compare_hashes(given.sections, hashes) if given else Drift()
    return {
        "module": module,
        "name": spec.name,
        "description": spec.description,
        "spec_hash": digest,
        "approved": given is not None and given.spec_hash == digest,
        "approval": {"who": given.who, "at": instant(given.at), "note": given.note} if given else None,
        "changed": drift.changed,
        "added": drift.new,
        "removed": drift.removed,
        "criteria": [{"id": c.id, "text": c.text} for c in spec.criteria],
        "commands": _commands(spec, given),
        "problems": [_problem(p) for p in spec.problems],
        "warnings": [_problem(p) for p in spec.warnings],
        "sections": _sections(spec, drift),
    }


def _problem(found: Problem) -> dict[str, Any]:
    return {"line": found.line, "message": found.message}


def _commands(spec: Specification, given: Approval | None) -> list[dict[str, Any]]:
    """Return the verify commands, each with the approved one where it differs."""
    now = spec.command_lines
    before = dict(given.commands) if given else now
    return [
        {
            "name": name,
            "command": _visible(now.get(name)),
            "changed": now.get(name) != before.get(name),
            "before": _visible(before.get(name)),
        }
        for name in dict.fromkeys((*now, *before))
    ]


def _visible(command: str | None) -> str | None:
    return None if command is None else exact(command)


def _sections(spec: Specification, drift: Drift) -> list[dict[str, Any]]:
    states = dict.fromkeys(drift.changed, "changed") | dict.fromkeys(drift.new, "new")
    return [
        {
            "address": section.address,
            "state": states.get(section.address, "same"),
            "content": elements(spec.text[section.start : section.end]),
        }
        for section in spec.outline.sections
        if section.address != PREAMBLE
    ]
