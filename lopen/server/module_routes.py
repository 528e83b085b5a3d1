"""Routes of the gate: read a specification, approve exactly what was read.

A page creates the markdown's elements one by one, of a fixed set. HTML in the text stays text. A link leads to an HTTP
or mail address only; an image becomes a link to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field

from lopen.application.approval import changes_since, checked, expected, record, specification
from lopen.application.open_store import created
from lopen.core.escape import exact, inert
from lopen.limits.admin_actions import NoSuch
from lopen.server.models import Count, Order, ResponseModel, Text, Time
from lopen.server.served import Chosen, OpenProject
from lopen.server.session_routes import ModuleName, is_built
from lopen.specification.drift import Drift, compare_hashes, section_hashes, spec_hash
from lopen.specification.modules import find_modules
from lopen.specification.spec import Problem, Specification
from lopen.workflow.session import Approval

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


routes = APIRouter(prefix="/api/modules", tags=["gate"])


class CriterionResponse(ResponseModel):
    """An acceptance criterion."""

    id: str = Field(examples=["AC-1"])
    text: str


class CommandResponse(ResponseModel):
    """A verify command as lopen will run it."""

    name: str = Field(examples=["verify-tests"])
    command: str | None = Field(examples=["pytest -q"])
    shown: str = Field(description="The command with invisible characters made visible.")


class SectionResponse(ResponseModel):
    """A section of the specification. An element is a text, or a list of tag, attributes and children."""

    address: str = Field(description="Its path of headings.", examples=["Behaviour > Rounding"])
    state: Literal["same", "changed", "new"] = Field(description="Since the latest approval.")
    content: list[Any] = Field(description="Elements.", examples=[[["p", {}, "It ", ["em", {}, "adds"]]]])


class RemarkResponse(ResponseModel):
    """A problem or warning about a line of the specification."""

    line: Count
    message: str


class ApprovalResponse(ResponseModel):
    """An approval."""

    module: str
    who: str
    at: Time
    note: str
    spec_hash: str


class SpecificationResponse(ResponseModel):
    """The text that a person reads before approving."""

    module: str
    name: str
    description: str
    path: str = Field(examples=["specs/calc/SPECIFICATION.md"])
    spec_hash: str = Field(description="Send it with the approval.")
    text: str
    criteria: list[CriterionResponse]
    commands: list[CommandResponse]
    problems: list[RemarkResponse] = Field(description="An approval is refused while there are any.")
    warnings: list[RemarkResponse]
    sections: list[SectionResponse]
    approval: ApprovalResponse | None = Field(description="The latest approval.")
    approved: bool = Field(description="True if that approval is for exactly this text.")
    built: bool = Field(description="True if the latest session completed exactly this text.")
    changes: list[str] = Field(description="Sections and commands that changed since that approval.")
    diff: str = Field(description="The change of the text since that approval, as a unified diff.")


class ApproveRequest(Order):
    """The approval of exactly one text."""

    spec_hash: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$", description="Of the text that you read.")]
    note: Text = ""


@routes.get("/{module}/specification")
async def get_specification(project: Chosen, module: ModuleName) -> SpecificationResponse:
    """Return a module's specification: its text, its criteria, commands and changes since the approval."""

    def work(opened: OpenProject) -> SpecificationResponse:
        spec = _specification(opened, module)
        given, hashes = opened.store.approval(module), section_hashes(spec)
        digest = spec_hash(hashes)
        drift = compare_hashes(given.sections, hashes) if given else Drift()
        return SpecificationResponse(
            module=module,
            name=spec.name,
            description=spec.description,
            path=str(spec.path.relative_to(opened.root)),
            spec_hash=digest,
            text=spec.text,
            criteria=[CriterionResponse(id=c.id, text=c.text) for c in spec.criteria],
            commands=_commands(spec),
            problems=[_remark(problem) for problem in spec.problems],
            warnings=[_remark(warning) for warning in spec.warnings],
            sections=list(_sections(spec, drift)),
            approval=None if given is None else _approved(module, given),
            approved=given is not None and given.spec_hash == digest,
            built=is_built(opened, module, digest),
            changes=[] if given is None else [inert(line) for line in changes_since(spec, given)],
            diff=_diff(opened, spec, given),
        )

    return await project.run(work)


def _specification(opened: OpenProject, module: str) -> Specification:
    if module not in find_modules(opened.root):
        raise NoSuch(f"there is no module {module}", hint="GET /api/modules lists them")
    return specification(opened.root, opened.store, module)


def _commands(spec: Specification) -> list[CommandResponse]:
    return [
        CommandResponse(name=c.name, command=c.command, shown=exact(c.command or "none"))
        for c in spec.commands
    ]


def _sections(spec: Specification, drift: Drift) -> Iterator[SectionResponse]:
    for section in spec.outline.sections:
        yield SectionResponse(
            address=section.address,
            state="changed"
            if section.address in drift.changed
            else "new"
            if section.address in drift.new
            else "same",
            content=elements(inert(spec.text[section.start : section.end], lines=True)),
        )


def _diff(opened: OpenProject, spec: Specification, given: Approval | None) -> str:
    """Return what changed in the text since it was approved; "" if it did not, or if that text is not known."""
    before = None if given is None else opened.store.approved_text(spec.module, given)
    if before is None:
        return ""
    return inert(_unified(before, spec.text, spec.path.relative_to(opened.root).as_posix()), lines=True)


@lru_cache(maxsize=4)  # the page asks every few seconds
def _unified(before: str, after: str, path: str) -> str:
    lines = unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    changes = "\n".join(lines)
    return f"diff --git a/{path} b/{path}\n{changes}\n" if changes else ""


def _remark(problem: Problem) -> RemarkResponse:
    return RemarkResponse(line=problem.line, message=problem.message)


def _approved(module: str, given: Approval) -> ApprovalResponse:
    fields: dict[str, Any] = {"who": given.who, "note": given.note, "spec_hash": given.spec_hash}
    at = given.at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return ApprovalResponse(module=module, at=at, **fields)


@routes.post("/{module}/approve")
async def approve(project: Chosen, module: ModuleName, order: ApproveRequest) -> ApprovalResponse:
    """Approve a specification. Refused (409) if it has changed since it was read."""

    def work(opened: OpenProject) -> ApprovalResponse:
        spec = checked(_specification(opened, module))
        expected(spec, order.spec_hash)
        return _approved(module, record(created(opened.context, opened.store), spec, order.note))

    return await project.run(work)


Element = str | list[Any]
"""A text, or a tag, its attributes, then its children."""

_TAGS = {
    *["p", "blockquote", "ul", "ol", "li", "em", "strong", "s"],
    *["table", "thead", "tbody", "tr", "th", "td"],
}
_SCHEMES = ("http://", "https://", "mailto:")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(["table", "strikethrough"])


def elements(text: str) -> list[Element]:
    """Return the elements of a markdown text."""
    return _tree(_parser().parse(text))


def _tree(tokens: Iterable[Token]) -> list[Element]:
    """Return flat tokens as a tree. An element outside the set gives its children alone."""
    levels: list[list[Any]] = [[]]
    for token in tokens:
        if token.nesting == 1:
            levels.append(_opened(token))
        elif token.nesting == -1:
            closed = levels.pop()
            levels[-1].append(closed)
        else:
            levels[-1] += _leaf(token)
    return levels[0]


def _opened(token: Token) -> list[Any]:
    if token.type == "heading_open":  # the page has its own first heading
        return [f"h{min(6, int(token.tag[1]) + 1)}", {}]
    if token.type == "link_open":
        return _link(token.attrs)
    return [token.tag if token.tag in _TAGS and not token.hidden else "span", {}]


def _link(attributes: Mapping[str, str | int | float]) -> list[Any]:
    address = str(attributes.get("href", ""))
    if not address.lower().startswith(_SCHEMES):
        return ["span", {}]
    return ["a", {"href": address, "rel": "noopener noreferrer", "target": "_blank"}]


def _leaf(token: Token) -> list[Element]:
    match token.type:
        case "inline":
            return _tree(token.children or ())
        case "code_inline":
            return [["code", {}, token.content]]
        case "fence" | "code_block":
            return [["pre", {"tabindex": "0"}, ["code", {}, token.content]]]
        case "hardbreak":
            return [["br", {}]]
        case "softbreak":
            return ["\n"]
        case "hr":
            return [["hr", {}]]
        case "image":
            return [[*_link({"href": str(token.attrs.get("src", ""))}), f"image: {token.content}"]]
        case _:
            return [token.content] if token.content else []
