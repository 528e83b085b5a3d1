"""The gate's page: the specification, what changed since the last approval, and the approval of exactly this text.

HTML in the text stays text. A link leads to an HTTP or mail address only; an image is a link to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from lopen.core.escape import inert
from lopen.server.dashboard.diff import diff
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    Place,
    act,
    ago,
    chip,
    el,
    empty,
    field,
    frame,
    link,
    press,
    prose,
    section,
)
from lopen.server.dashboard.waits import to_change

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_SCHEMES = ("http://", "https://", "mailto:")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def gate_page(place: Place, gate: Mapping[str, Any], *, working: bool, waits: int) -> str:
    """Return the page. `gate` is the API's object of a specification."""
    name = gate["module"]
    state = chip("approved") if gate["approved"] else chip("to approve")
    read = [
        el(
            "div",
            el("p", chip(s["state"])) if s["state"] != "same" else None,
            _read(s["text"]),
        )
        for s in gate["sections"]
    ]
    aside: list[Child] = [
        _problems(gate),
        _decision(place, gate, working=working),
        section(
            "Commands that lopen will run",
            el(
                "dl.commands",
                (
                    [
                        el("dt", c["name"]),
                        el("dd", el("code", c["shown"]) if c["command"] else el("small", "none")),
                    ]
                    for c in gate["commands"]
                ),
            ),
            tag="section.panel",
        ),
        _changes(gate),
        _plan(gate["plan"]),
        section(
            "Acceptance criteria",
            el("ol", (el("li", el("b", c["id"]), " ", prose(c["text"])) for c in gate["criteria"])),
            tag="section.panel",
        ),
    ]
    body = (
        el("p.about", link(f"← {name}", place.module(name))),
        el(
            "div.head",
            el("div", el("h1", gate["name"] or name, " ", state), el("p.about", gate["description"])),
        ),
        el(
            "p.notice.stale",
            "The specification has changed since you opened this page. ",
            link("Read it again", place.module(name, "specification")),
            id_="stale",
            role="alert",
            hidden=True,
        ),
        el(
            "div.two.gate",
            el("article.panel.specification", read, aria_label="Specification"),
            el("div", aside),
        ),
    )
    return frame(place, f"Approve {name}", name, *body, waits=waits, version=gate["spec_hash"])


def _problems(gate: Mapping[str, Any]) -> Markup | None:
    found = [("error", p) for p in gate["problems"]] + [("warning", p) for p in gate["warnings"]]
    if not found:
        return None
    return section(
        "Problems",
        el(
            "ul.findings", (el(f"li.{kind}", f"line {p['line']}: ", prose(p["message"])) for kind, p in found)
        ),
        tag="section.panel",
    )


def _plan(plan: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Return the plan that was recorded with the specification; None without one."""
    components = (
        el(
            "li",
            el("b", component["component"]),
            el(
                "ul",
                (
                    el("li", el("b", task["name"]), " ", prose(task["description"]))
                    for task in component["tasks"]
                ),
            ),
        )
        for component in plan
    )
    return (
        section("The plan that would be built", el("ol", components), tag="section.panel") if plan else None
    )


def _changes(gate: Mapping[str, Any]) -> Markup:
    given = gate["approval"]
    if given is None:
        return section("Since the last approval", empty("It was never approved."), tag="section.panel")
    note = f": {given['note']}" if given["note"] else ""
    lines = (
        el("ul.changes", (el("li", line) for line in gate["changes"]))
        if gate["changes"]
        else el("p", "Nothing has changed.")
    )
    return section(
        "Since the last approval",
        el("p", el("small", f"by {given['who']} ", ago(given["at"]), note)),
        lines,
        diff(gate["diff"]) if gate["diff"] else None,
        tag="section.panel",
    )


def _decision(place: Place, gate: Mapping[str, Any], *, working: bool) -> Markup:
    name = gate["module"]
    run = place.href("api", "modules", name, "run")
    if gate["approved"]:
        built = "It is approved and built." if gate["built"] else "It is approved."
        build = None if working or gate["built"] else press("Build", run, kind=".do", label=f"Build {name}")
        return section("Approved", el("p", built), build, tag="section.panel")
    blocked = bool(gate["problems"])
    form = act(
        place.href("api", "modules", name, "approve"),
        el("input", type="hidden", name="spec_hash", value=gate["spec_hash"]),
        field("note", "Note (optional)", kind="area"),
        el("p", el("small", "You approve exactly this text and these commands.")),
        el(
            "div.acts",
            el("button.do", "Approve" if working else "Approve and build", disabled=blocked),
            None if working else el("button", "Only approve", data_only=True, disabled=blocked),
        ),
        then=None if working else run,
        page=place.module(name),
    )
    return section(
        "Approve",
        form,
        el("p.bad", "Fix the problems first.") if blocked else None,
        to_change(name),
        tag="section.panel.decision",
    )


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: url.lower().startswith(_SCHEMES)  # type: ignore[method-assign]  # as its page says
    return parser.disable("image")  # which is a link to it then


def _read(text: str) -> Markup:
    """Return markdown as HTML. The page has its own first heading, and its policy allows no style of a cell."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in (each for whole in tokens for each in (whole, *(whole.children or ()))):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        elif token.type == "link_open":
            token.attrSet("target", "_blank")
        elif token.type == "text" and token.content[:4] in _BOXES:
            token.content = _BOXES[token.content[:4]] + token.content[4:]
        token.attrs.pop("style", None)
    return Markup(inert(parser.renderer.render(tokens, parser.options, {}), lines=True))
