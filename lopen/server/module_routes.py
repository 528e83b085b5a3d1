"""Routes of the gate: read a specification, approve exactly the text that was read.

A page creates the markdown's elements one by one, of a fixed set. HTML in the text stays text. A link leads to an HTTP
or mail address only; an image becomes a link to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from lopen.application.decisions import changes_since, checked, expected, record, specification
from lopen.application.open_store import created
from lopen.core.escape import exact, inert
from lopen.limits.admin_actions import NoSuch
from lopen.server.served import Chosen, OpenProject, Order, Text
from lopen.server.session_routes import ModuleName, is_built
from lopen.specification.drift import Drift, compare_hashes, section_hashes, spec_hash
from lopen.specification.modules import find_modules
from lopen.specification.sections import Section
from lopen.specification.spec import Specification
from lopen.workflow.session import Approval

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


routes = APIRouter(prefix="/api/modules", tags=["gate"])


class ApproveRequest(Order):
    """The approval of exactly one text."""

    spec_hash: Annotated[str, Field(pattern="^[0-9a-f]{8,64}$", description="Of the text that you read.")]
    note: Text = ""


@routes.get("/{module}/specification")
async def get_specification(project: Chosen, module: ModuleName) -> dict[str, Any]:
    """Return a module's specification: its text, its criteria, commands and changes since the approval."""

    def work(opened: OpenProject) -> dict[str, Any]:
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
                {"name": c.name, "command": c.command, "shown": exact(c.command or "none")}
                for c in spec.commands
            ],
            "problems": [{"line": problem.line, "message": problem.message} for problem in spec.problems],
            "warnings": [{"line": warning.line, "message": warning.message} for warning in spec.warnings],
            "sections": [_section(spec, section, drift) for section in spec.outline.sections],
            "approval": None if given is None else _approved(module, given),
            "approved": given is not None and given.spec_hash == digest,
            "built": is_built(opened, module, digest),
            "changes": [] if given is None else [inert(line) for line in changes_since(spec, given)],
            "diff": _diff(opened, spec, given),
        }

    return await project.run(work)


def _specification(opened: OpenProject, module: str) -> Specification:
    if module not in find_modules(opened.root):
        raise NoSuch(f"there is no module {module}", hint="GET /api/modules lists them")
    return specification(opened.root, opened.store, module)


def _section(spec: Specification, section: Section, drift: Drift) -> dict[str, Any]:
    """Return a section: its path of headings, its state since the approval, and its content as elements."""
    state = "new" if section.address in drift.new else "same"
    return {
        "address": section.address,
        "state": "changed" if section.address in drift.changed else state,
        "content": elements(inert(spec.text[section.start : section.end], lines=True)),
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
    at = given.at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"module": module, "at": at, "who": given.who, "note": given.note, "spec_hash": given.spec_hash}


@routes.post("/{module}/approve")
async def approve(project: Chosen, module: ModuleName, order: ApproveRequest) -> dict[str, Any]:
    """Approve a specification. Refused (409) if it has changed since it was read."""

    def work(opened: OpenProject) -> dict[str, Any]:
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
