"""HTML as values: elements whose text is escaped, and the small pieces that the pages share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote, urlencode

from lopen.core.escape import inert


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
VOID = frozenset({"input", "link", "meta", "br", "hr"})
_CODE = re.compile(r"`([^`\n]+)`")


def el(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """Return an element. `tag` is its name, then its classes: `p.finding.bad`. Text in it is escaped.

    In the name of an attribute `_` stands for `-`, and a last `_` is left out (`for_`). None and False leave it out.
    """
    name, *classes = tag.split(".")
    shown = [f' class="{" ".join(classes)}"'] if classes else []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        shown.append(f" {attribute}" if value is True else f' {attribute}="{escape(inert(str(value)))}"')
    head = f"<{name}{''.join(shown)}>"
    return Markup(head if name in VOID else f"{head}{inner(children)}</{name}>")


def inner(child: Child) -> Markup:
    """Return a child, or several, as HTML."""
    if child is None:
        return Markup("")
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return Markup(escape(inert(child, lines=True), quote=False))
    if isinstance(child, int):
        return Markup(child)
    return Markup("".join(map(inner, child)))


def prose(text: str) -> Markup:
    """Return a sentence of lopen's or the model's, with its `code` as code."""
    parts = _CODE.split(text)
    return inner(el("code", part) if n % 2 else part for n, part in enumerate(parts))


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a page: its project, whether the server has several, and whether builds may be in a queue."""

    project: str
    several: bool = False
    has_queue: bool = False

    def href(self, *parts: str, **query: str) -> str:
        """Return the address of a page or a route of this project."""
        query = ({"project": self.project} if self.several else {}) | query
        path = "/" + "/".join(quote(part, safe="") for part in parts)
        return f"{path}?{urlencode(query)}" if query else path

    def module(self, name: str, *parts: str, **query: str) -> str:
        """Return the address of a module's page."""
        return self.href("modules", name, *parts, **query)


TONES = {
    **dict.fromkeys(
        ("complete", "passed", "met", "OK", "approved", "accepted by a person", "active", "done"), "good"
    ),
    **dict.fromkeys(("working", "planning", "running", "in progress", "new"), "busy"),
    **dict.fromkeys(
        ("asks", "to approve", "paused", "interrupted", "can go on", "warning", "cannot tell"), "warn"
    ),
    **dict.fromkeys(("changed", "skipped", "trying again"), "warn"),
    **dict.fromkeys(
        ("stopped", "failed", "rejected", "not met", "error", "exhausted", "open", "removed"), "bad"
    ),
}


def chip(state: str, text: str = "") -> Markup:
    """Return a state as a coloured word; the word alone says it too."""
    return el(f"span.chip.{TONES.get(state, 'calm')}", text or state)


def duration(seconds: float) -> str:
    """Return a length of time in its largest units."""
    minutes, hours = round(seconds / 60), int(seconds / 3_600)
    if seconds < 10 and isinstance(seconds, float):
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 120:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def ago(at: datetime | str | None) -> Markup | None:
    """Return an instant as the time since then."""
    if at is None:
        return None
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    seconds = (datetime.now(UTC) - at).total_seconds()
    text = (
        "now"
        if abs(seconds) < 2
        else f"in {duration(-seconds)}"
        if seconds < 0
        else f"{duration(int(seconds))} ago"
    )
    return el(
        "time", text, datetime=at.isoformat(timespec="seconds"), title=f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    )


def short(count: float) -> str:
    """Return 1234567 as "1.2M"."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.{0 if count >= 100 * size else 1}f}".removesuffix(".0") + unit
    return f"{count:.0f}"


def bar(part: float, label: str, tone: str = "busy", mark: float = 0.0) -> Markup:
    """Return a bar for a part of a whole from 0 to 1, with a mark at a threshold."""
    return el(
        "svg.bar",
        el(f"rect.fill.{tone}", width=f"{min(1.0, max(0.0, part)) * 100:.1f}%", height="100%"),
        el("rect.mark", x=f"{mark * 100:.0f}%", width=2, height="100%") if mark else None,
        role="progressbar",
        aria_label=label,
        aria_valuemin=0,
        aria_valuemax=100,
        aria_valuenow=round(part * 100),
    )


def spark(values: Sequence[float], label: str) -> Markup:
    """Return a line of small bars."""
    most, width = max(values, default=0.0) or 1.0, 100 / max(1, len(values))
    return el(
        "svg.spark",
        [
            el(
                "rect",
                x=f"{n * width:.2f}%",
                y=f"{92 - 92 * v / most:.1f}%",
                width=f"{width * 0.7:.2f}%",
                height=f"{8 + 92 * v / most:.1f}%",
            )
            for n, v in enumerate(values)
        ],
        role="img",
        aria_label=label,
    )


def fact(name: str, *value: Child, id_: str | None = None) -> Markup:
    """Return a named figure of a list of facts."""
    return el("div", el("dt", name), el("dd", *value), id_=id_)


def section(
    title: str, *children: Child, note: Child = None, id_: str | None = None, tag: str = "section"
) -> Markup:
    """Return a part of a page under its heading."""
    heading = el("h2", title, [" ", el("small", note)] if note else None)
    return el(tag, heading, *children, id_=id_, aria_label=title)


def table(
    head: Sequence[str], rows: Sequence[Sequence[Child]], label: str, ids: Sequence[str] = ()
) -> Markup:
    """Return a table whose rows become blocks with named values on a narrow screen.

    A name in `head` that ends in `#` is that of numbers; the first column names its row. Rows with
    forms need `ids`, by which a page that is brought up to date keeps each in its row.
    """
    names = [(name.rstrip("#"), ".n" if name.endswith("#") else "") for name in head]
    body = [
        el(
            "tr",
            [
                el(
                    "td" + names[n][1] if n else "th",
                    cell,
                    scope=None if n else "row",
                    data_label=names[n][0] if n else None,
                )
                for n, cell in enumerate(row)
            ],
            id_=ids[number] if ids else None,
        )
        for number, row in enumerate(rows)
    ]
    titles = [el(f"th{kind}", name or el("span.unseen", "Actions"), scope="col") for name, kind in names]
    return el("table", el("thead", el("tr", titles)), el("tbody", body), aria_label=label)


def empty(*text: Child) -> Markup:
    """Return what stands where there is nothing yet."""
    return el("p.empty", *text)


def copyable(command: str) -> Markup:
    """Return a command line, with a button that copies it."""
    return el(
        "span.command",
        el("code", command),
        el("button.quiet", "copy", type="button", data_copy=command, aria_label=f"Copy {command}"),
    )


def link(text: str, href: str, *, button: str | None = None) -> Markup:
    """Return a link, as a `button` of that class if one is given."""
    return el(f"a.button{button}" if button is not None else "a", text, href=href)


def act(
    action: str, *children: Child, then: str | None = None, kind: str = "", page: str | None = None
) -> Markup:
    """Return a form that sends a person's decision to a route of the API; after it the route `then` is called.

    `page` is opened once that has begun.
    """
    return el(f"form.act{kind}", *children, method="post", action=action, data_then=then, data_page=page)


def press(
    text: str, action: str, *, then: str | None = None, kind: str = "", label: str | None = None
) -> Markup:
    """Return a button that sends a decision without fields."""
    return act(action, el(f"button{kind}", text, aria_label=label), then=then)


def unfold(text: str, *children: Child, kind: str = "", label: str | None = None) -> Markup:
    """Return a button that opens a form."""
    return el("details.unfold", el(f"summary.button{kind}", text, aria_label=label), *children)


def field(
    name: str, label: str, *, kind: str = "text", value: str | int = "", required: bool = False, **more: int
) -> Markup:
    """Return a labelled field of a form; `kind` "area" is one of several lines."""
    if kind == "area":
        return el(
            "label.field", el("span", label), el("textarea", str(value), name=name, rows=2, required=required)
        )
    return el(
        "label.field",
        el("span", label),
        el("input", name=name, type=kind, value=value, required=required, **more),
    )


def frame(place: Place, title: str, current: str, *body: Child, waits: int = 0, version: str = "") -> str:
    """Return a whole page. `waits` counts the decisions of the project that wait; title and icon show it.

    A page that was opened with another `version` is not brought up to date by itself.
    """
    whole = f"{title} · {place.project} · lopen" if title else f"{place.project} · lopen"
    workers = (("Workers", place.href("workers")),) if place.has_queue else ()
    where = (
        ("Overview", place.href()),
        *workers,
        ("Limits", place.href("limits")),
        ("History", place.href("history")),
    )
    nav = [link_to(name, href, current) for name, href in where]
    if current not in dict(where):
        nav.insert(1, link_to(current, place.module(current), current))
    head = [
        el("meta", charset="utf-8"),
        el("title", f"({waits}) {whole}" if waits else whole),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("link", rel="icon", type="image/svg+xml", href=f"/static/icon{'-needs' if waits else ''}.svg"),
        el("link", rel="stylesheet", href="/static/style.css"),
        el("script", src="/static/app.js", type="module"),
    ]
    bar_ = el(
        "header",
        el("a.brand", "lopen", href=place.href()),
        el("nav", nav, aria_label="Pages"),
        el("span.project", place.project),
        el("span.live", "live", id_="live", role="status"),
        el("button.quiet", "Notify me", id_="notify", type="button", hidden=True),
        el("button.quiet", "Theme", id_="theme", type="button"),
    )
    content = el("main", *body, id_="main", tabindex=-1, data_version=version or None)
    skip = el("a.skip", "Skip to the content", href="#main")
    page = el(
        "html",
        el("head", head),
        el(
            "body",
            skip,
            bar_,
            content,
            el("div", id_="said", role="status", aria_live="polite"),
            data_project=place.project,
            data_events=place.href("api", "events"),
        ),
        lang="en",
    )
    return f"<!doctype html>{page}"


def link_to(name: str, href: str, current: str) -> Markup:
    """Return an entry of the navigation."""
    return el("a", name, href=href, aria_current="page" if name == current else None)
