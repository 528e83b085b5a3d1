"""Routes of a module: its specification, the approval of exactly the text that was read, and its dossier."""

from __future__ import annotations

from difflib import unified_diff
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from lopen.application.decisions import changes_since, checked, expected, record, recorded_plan, specification
from lopen.application.open_store import created
from lopen.application.overview import read_dossier
from lopen.application.reports import built_session
from lopen.core.escape import exact, inert
from lopen.limits.admin_actions import NoSuch
from lopen.limits.report import instant
from lopen.server.served import Chosen, OpenProject, Order, Text
from lopen.server.session_routes import ModuleName
from lopen.specification.drift import Drift, compare_hashes, section_hashes, spec_hash
from lopen.specification.modules import find_modules
from lopen.specification.sections import Section
from lopen.specification.spec import Specification
from lopen.workflow.session import Approval

routes = APIRouter(prefix="/api/modules", tags=["gate"])


class ApproveRequest(Order):
    """The approval of exactly one text."""

    spec_hash: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$", description="Of the text that you read.")]
    note: Text = ""


@routes.get("/{module}/specification")
async def get_specification(project: Chosen, module: ModuleName) -> dict[str, Any]:
    """Return a module's specification: its text, its criteria, commands and changes since the approval."""

    return await project.run(gate, module)


@routes.get("/{module}/dossier")
async def get_dossier(project: Chosen, module: ModuleName) -> dict[str, Any]:
    """Return a module's dossier, as `lopen report --json`: figures, timeline, and what proves each criterion."""
    return (await project.run(lambda opened: read_dossier(opened.read(), module))).to_json()


def gate(opened: OpenProject, module: str) -> dict[str, Any]:
    """Return what an approval covers: the specification as it is now, and its changes since the last approval."""
    spec = _specification(opened, module)
    given, hashes = opened.store.approval(module), section_hashes(spec.outline)
    digest = spec_hash(spec.outline)
    drift = compare_hashes(given.sections, hashes) if given else Drift()
    return {
        "module": module,
        "name": spec.name,
        "description": spec.description,
        "path": str(spec.path.relative_to(opened.root)),
        "spec_hash": digest,
        "text": spec.text,
        "criteria": [{"id": c.id, "text": c.text} for c in spec.criteria],
        "commands": [
            {"name": c.name, "command": c.command, "shown": exact(c.command or "none")} for c in spec.commands
        ],
        "problems": [{"line": problem.line, "message": problem.message} for problem in spec.problems],
        "warnings": [{"line": warning.line, "message": warning.message} for warning in spec.warnings],
        "sections": [_section(spec, section, drift) for section in spec.outline.sections],
        "plan": recorded_plan(opened.store, spec),
        "approval": None if given is None else _approved(module, given),
        "approved": given is not None and given.spec_hash == digest,
        "built": built_session(opened.root, opened.store, module) is not None,
        "changes": [] if given is None else [inert(line) for line in changes_since(spec, given)],
        "diff": _diff(opened, spec, given),
    }


def _specification(opened: OpenProject, module: str) -> Specification:
    if module not in find_modules(opened.root):
        raise NoSuch(f"there is no module {module}", hint="GET /api/modules lists them")
    return specification(opened.root, opened.store, module)


def _section(spec: Specification, section: Section, drift: Drift) -> dict[str, Any]:
    """Return a section: its path of headings, its state since the approval, and its text."""
    state = "new" if section.address in drift.new else "same"
    return {
        "address": section.address,
        "state": "changed" if section.address in drift.changed else state,
        "text": spec.text[section.start : section.end],
    }


def _diff(opened: OpenProject, spec: Specification, given: Approval | None) -> str:
    """Return the changes of the text since its approval; "" if it did not, or if that text is not known."""
    before = None if given is None else opened.store.approved_text(spec.module, given)
    if before is None:
        return ""
    return inert(_unified(before, spec.text, spec.path.relative_to(opened.root).as_posix()), lines=True)


@lru_cache(maxsize=4)  # the page asks every few seconds
def _unified(before: str, after: str, path: str) -> str:
    lines = unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    changes = "\n".join(lines)
    return f"diff --git a/{path} b/{path}\n{changes}\n" if changes else ""


def _approved(module: str, given: Approval) -> dict[str, Any]:
    return {
        "module": module,
        "at": instant(given.at),
        "who": given.who,
        "note": given.note,
        "spec_hash": given.spec_hash,
    }


@routes.post("/{module}/approve")
async def approve(project: Chosen, module: ModuleName, order: ApproveRequest) -> dict[str, Any]:
    """Approve a specification. Refused (409) if it has changed since it was read."""

    def work(opened: OpenProject) -> dict[str, Any]:
        spec = checked(_specification(opened, module))
        expected(spec, order.spec_hash)
        return _approved(module, record(created(opened.context, opened.store), spec, order.note))

    return await project.run(work)
