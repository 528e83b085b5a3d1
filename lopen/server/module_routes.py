"""Routes of the gate: read a specification, approve exactly what was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter

from lopen.application.approval import changes_since, checked, expected, record, specification
from lopen.application.open_store import created
from lopen.base.escape import inert
from lopen.documents.drift import Drift, compare_hashes, section_hashes, spec_hash
from lopen.documents.elements import elements
from lopen.documents.modules import find_modules
from lopen.documents.spec import Problem, Specification
from lopen.limits.admin_actions import NoSuch
from lopen.server import session_models as models
from lopen.server.parameters import Chosen
from lopen.server.served import OpenProject
from lopen.server.session_routes import ModuleName
from lopen.workflow.session import Approval

routes = APIRouter(prefix="/api/modules", tags=["gate"])


@routes.get("/{module}/specification")
async def get_specification(project: Chosen, module: ModuleName) -> models.SpecificationResponse:
    """Return a module's specification: its text, its criteria, commands and changes since the approval."""

    def work(opened: OpenProject) -> models.SpecificationResponse:
        spec = _specification(opened, module)
        given, hashes = opened.store.approval(module), section_hashes(spec)
        digest = spec_hash(hashes)
        drift = compare_hashes(given.sections, hashes) if given else Drift()
        return models.SpecificationResponse(
            module=module,
            name=spec.name,
            description=spec.description,
            path=str(spec.path.relative_to(opened.root)),
            spec_hash=digest,
            text=spec.text,
            criteria=[models.CriterionResponse(id=c.id, text=c.text) for c in spec.criteria],
            commands=_commands(spec),
            problems=[_remark(problem) for problem in spec.problems],
            warnings=[_remark(warning) for warning in spec.warnings],
            sections=list(_sections(spec, drift)),
            approval=None if given is None else _approved(module, given),
            approved=given is not None and given.spec_hash == digest,
            changes=[] if given is None else [inert(line) for line in changes_since(spec, given)],
        )

    return await project.run(work)


def _specification(opened: OpenProject, module: str) -> Specification:
    if module not in find_modules(opened.root):
        raise NoSuch(f"there is no module {module}", hint="GET /api/modules lists them")
    return specification(opened.root, opened.store, module)


def _commands(spec: Specification) -> list[models.CommandResponse]:
    return [
        models.CommandResponse(name=c.name, command=c.command, shown=inert(c.command or "none"))
        for c in spec.commands
    ]


def _sections(spec: Specification, drift: Drift) -> Iterator[models.SectionResponse]:
    for section in spec.outline.sections:
        yield models.SectionResponse(
            address=section.address,
            state="changed"
            if section.address in drift.changed
            else "new"
            if section.address in drift.new
            else "same",
            content=elements(inert(spec.text[section.start : section.end], lines=True)),
        )


def _remark(problem: Problem) -> models.RemarkResponse:
    return models.RemarkResponse(line=problem.line, message=problem.message)


def _approved(module: str, given: Approval) -> models.ApprovalResponse:
    fields: dict[str, Any] = {"who": given.who, "note": given.note, "spec_hash": given.spec_hash}
    at = given.at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return models.ApprovalResponse(module=module, at=at, **fields)


@routes.post("/{module}/approve")
async def approve(
    project: Chosen, module: ModuleName, order: models.ApproveRequest
) -> models.ApprovalResponse:
    """Approve a specification. Refused (409) if it has changed since it was read."""

    def work(opened: OpenProject) -> models.ApprovalResponse:
        spec = checked(_specification(opened, module))
        expected(spec, order.spec_hash)
        return _approved(module, record(created(opened.context, opened.store), spec, order.note))

    return await project.run(work)
