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


def some(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup | None:
    """Return an element, None where it would be empty."""
    content = inner(children)
    return el(tag, content, **attributes) if content else None


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
    state: tone
    for tone, states in {
        "good": ("complete", "passed", "met", "OK", "approved", "accepted by a person", "active", "done"),
        "busy": ("working", "planning", "running", "in progress", "new"),
        "warn": (
            *("asks", "to approve", "paused", "interrupted", "can go on", "warning", "cannot tell"),
            "met, not accepted",
            *("changed", "skipped", "trying again", "waits"),
        ),
        "bad": ("stopped", "failed", "rejected", "not met", "error", "exhausted", "open", "removed"),
    }.items()
    for state in states
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


def ago(at: datetime | str | None, *, lasts: bool = False) -> Markup | None:
    """Return an instant as the time since then, or as the start of what `lasts`; its title is the instant itself."""
    if at is None:
        return None
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    seconds = (datetime.now(UTC) - at).total_seconds()
    text = f"{duration(int(seconds))} ago"
    if lasts:
        text = f"for {duration(max(0, int(seconds)))}"
    elif abs(seconds) < 2:
        text = "now"
    elif seconds < 0:
        text = f"in {duration(-seconds)}"
    title = f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z}"
    return el("time", text, datetime=at.isoformat(timespec="seconds"), title=title)


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


def plural(count: int, noun: str, several: str = "") -> str:
    """Return a count with its noun."""
    return f"{count} {noun if count == 1 else several or f'{noun}s'}"


def fact(name: str, *value: Child) -> Markup:
    """Return a named figure of a list of facts."""
    return el("div", el("dt", name), el("dd", *value))


def section(
    title: str, *children: Child, note: Child = None, id_: str | None = None, tag: str = "section"
) -> Markup:
    """Return a part of a page under its heading."""
    heading = el("h2", title, [" ", el("small", note)] if note else None)
    return el(tag, heading, *children, id_=id_, aria_label=title)


MARKS = {"#": ".n", "=": ".whole", "-": ".extra"}


def table(
    head: Sequence[str], rows: Sequence[Sequence[Child]], label: str, ids: Sequence[str] = ()
) -> Markup:
    """Return a table whose rows become blocks with named values on a narrow screen.

    The first column names its row. A name in `head` ends in `#` for numbers; on a narrow screen a column with `=` takes
    the whole width, and one with `-` is left out. Rows with forms need `ids`, by which a page that is brought up to date
    keeps each in its row.
    """
    names = [(name.rstrip("".join(MARKS)), MARKS.get(name[-1:], "")) for name in head]

    def cell(n: int, value: Child) -> Markup:
        name, kind = names[n]
        return el(f"td{kind}", value, data_label=name) if n else el("th", value, scope="row")

    body = [
        el("tr", [cell(n, value) for n, value in enumerate(row)], id_=ids[number] if ids else None)
        for number, row in enumerate(rows)
    ]
    titles = [el(f"th{kind}", name or el("span.unseen", "Actions"), scope="col") for name, kind in names]
    return el("table.rows", el("thead", el("tr", titles)), el("tbody", body), aria_label=label)


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
    """Return a button that opens forms."""
    opener = el(f"summary.button{kind}", text, aria_label=label)
    return el("details.unfold", opener, el("div.menu", *children))


def field(
    name: str, label: str, *, kind: str = "text", value: str | int = "", required: bool = False, **more: int
) -> Markup:
    """Return a labelled field of a form; `kind` "area" is one of several lines."""
    if kind == "area":
        entry = el("textarea", str(value), name=name, rows=2, required=required)
    else:
        entry = el("input", name=name, type=kind, value=value, required=required, **more)
    return el("label.field", el("span", label), entry)


def document(title: str, head: Sequence[Child], *body: Child, **attributes: str) -> str:
    """Return a whole HTML document."""
    about = [
        el("meta", charset="utf-8"),
        el("title", title),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
    ]
    return f"<!doctype html>{el('html', el('head', about, head), el('body', *body, **attributes), lang='en')}"


def frame(place: Place, title: str, current: str, *body: Child, waits: int = 0, version: str = "") -> str:
    """Return a page with its navigation. `waits` counts the decisions of the project that wait; title and icon show it.

    A page that was opened with another `version` is not brought up to date by itself.
    """
    whole = f"{title} · {place.project} · lopen" if title else f"{place.project} · lopen"
    where = {"Overview": place.href(), "Limits": place.href("limits"), "History": place.href("history")}
    if place.has_queue:
        where["Workers"] = place.href("workers")
    if current not in where:
        where = {"Overview": where.pop("Overview"), current: place.module(current)} | where
    links = (el("a", n, href=h, aria_current="page" if n == current else None) for n, h in where.items())
    return document(
        f"({waits}) {whole}" if waits else whole,
        [
            el("link", rel="icon", type="image/svg+xml", href=f"/static/icon{'-needs' if waits else ''}.svg"),
            el("link", rel="stylesheet", href="/static/style.css"),
            el("script", src="/static/app.js", type="module"),
        ],
        el("a.skip", "Skip to the content", href="#main"),
        el(
            "header",
            el("a.brand", "lopen", href=place.href()),
            el("nav", links, aria_label="Pages"),
            el("span.project", place.project),
            el("span.live", "live", id_="live", role="status"),
            _setting(
                "notify",
                "Notify me",
                "M8 2a4 4 0 0 0-4 4v3l-1 2h10l-1-2V6a4 4 0 0 0-4-4zM6.5 13h3",
                hidden=True,
            ),
            _setting("theme", "Theme", "M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12zM8 3.5v9a4.5 4.5 0 0 0 0-9z"),
        ),
        el("main", *body, id_="main", tabindex=-1, data_version=version or None),
        el("div", id_="said", role="status", aria_live="polite"),
        data_project=place.project,
        data_events=place.href("api", "events"),
    )


def _setting(name: str, text: str, path: str, *, hidden: bool = False) -> Markup:
    """Return a button of the header, with an icon that a narrow screen shows alone."""
    icon = el("svg.icon", el("path", d=path), viewBox="0 0 16 16", aria_hidden="true")
    return el("button.quiet", icon, el("span", text), id_=name, type="button", hidden=hidden)
