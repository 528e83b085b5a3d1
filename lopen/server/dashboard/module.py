"""A module's page: how it stands, its timeline, what proves each criterion, its verdicts and events. And its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from lopen.application import dossier
from lopen.application.dossier import Proof, TimelineRow
from lopen.application.event_lines import rows
from lopen.application.overview import Dossier, Standing
from lopen.core import events as e
from lopen.core.money import dollars
from lopen.limits.budget import BudgetState
from lopen.server.dashboard.diff import diff
from lopen.server.dashboard.home import criteria, doing, left, mutants, spent
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    Place,
    act,
    ago,
    chip,
    copyable,
    duration,
    el,
    empty,
    fact,
    field,
    frame,
    link,
    press,
    prose,
    section,
    table,
    unfold,
)
from lopen.server.dashboard.waits import findings, need
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State, Task

NEWEST = 12  # events on the page
SHOWN_VERDICTS = 4
DRAWN = 1_000  # units of a timeline's width
NARROWEST = 4  # of them
KINDS = ("model", "verification", "judge", "waited")


@dataclass(frozen=True, slots=True)
class ModuleView:
    """A module's dossier and the place of its pages; `waits` counts the modules of the project that wait."""

    place: Place
    dossier: Dossier
    budgets: Sequence[BudgetState] = ()
    waits: int = 0

    @property
    def module(self) -> Standing:
        """The state of the module."""
        return self.dossier.module

    @property
    def session(self) -> Session:
        """The session that is shown."""
        return self.dossier.session

    def task(self, task: Task) -> Markup:
        """Return a task's name as a link to its page."""
        return link(task.name, self.place.module(self.module.module, "tasks", task.id))


def unstarted_page(place: Place, module: Standing, waits: int) -> str:
    """Return the page of a module without a session."""
    body = [
        _head(
            place,
            module,
            el("div.acts", link("Specification", place.module(module.module, "specification"), button="")),
        ),
        need(place, module, ())
        if module.wait
        else empty(
            "Its specification is not finished. In a terminal: ", copyable(f"lopen check {module.module}")
        ),
    ]
    return frame(place, module.module, module.module, *body, waits=waits)


def module_page(shown: ModuleView) -> str:
    """Return the page of a module."""
    place, module = shown.place, shown.module
    body: list[Child] = [
        _head(place, module, _acts(shown)),
        need(place, module, shown.budgets) if module.wait else None,
        _ended(shown) if module.ended else doing(module),
        facts(module),
        timeline(shown, linked=True),
        criteria_table(shown, linked=True),
        el("div.two", verdicts(shown), _newest(shown)),
        _notes(shown),
    ]
    return frame(place, module.module, module.module, *body, waits=shown.waits)


def _head(place: Place, module: Standing, acts: Child) -> Markup:
    about = el("p.about", module.description, " ", el("code", module.branch) if module.branch else None)
    return el("div.head", el("div", el("h1", module.module, " ", chip(module.state)), about), acts)


def _acts(shown: ModuleView) -> Markup:
    place, module, session = shown.place, shown.module, shown.session
    name = module.module
    tell = unfold(
        "Tell the model…",
        act(
            place.href("api", "sessions", session.id, "tell"),
            field(
                "text",
                "It hears this with its next turn, and the judge is shown it.",
                kind="area",
                required=True,
            ),
            el("button.do", "Tell it"),
        ),
        label=f"Tell the model of {name} something",
    )
    pause = press("Pause", place.href("api", "sessions", session.id, "pause"), label=f"Pause {name}")
    return el(
        "div.acts",
        None if session.finished else tell,
        pause if module.act else None,
        link("Diff", place.module(name, "diff", session=session.id), button=""),
        link("Specification", place.module(name, "specification"), button=""),
        link("Report", place.module(name, "report", session=session.id), button=""),
    )


def _ended(shown: ModuleView) -> Markup:
    module = shown.module
    if module.merged:
        return el(
            "p.notice.calm", "Its branch ", el("code", module.branch), f" is merged into {module.merged}."
        )
    name = module.module
    return el(
        "p.notice.calm",
        "It is complete. ",
        link("Read the change", shown.place.module(name, "diff")),
        ", then ",
        copyable(f"lopen merge {name}"),
        " or ",
        copyable(f"lopen pr {name}"),
    )


def facts(module: Standing) -> Markup:
    """Return the module in figures."""
    tasks = module.tasks
    return el(
        "dl.facts.panel",
        fact("tasks", f"{tasks.tasks_done} of {tasks.tasks}" if tasks.tasks else "–"),
        fact("criteria met", criteria(module)),
        fact("tests", f"{module.tests} pass" if module.tests is not None else "–"),
        fact("mutants noticed", mutants(module)),
        fact("spent", *spent(module)),
        fact("took" if module.ended else "elapsed", duration(round(module.pace.worked_s))),
        None if module.ended else fact("left", left(module)),
    )


def timeline(shown: ModuleView, *, linked: bool) -> Markup:
    """Return the tasks as bars over time."""
    line = shown.dossier.line
    tasks = {task.id: task for task in shown.session.tree.tasks}
    drawn = [_row(shown, row, tasks.get(row.task), line.length, linked=linked) for row in line.rows]
    legend = el(
        "p.legend",
        (
            el("span", el(f"i.{kind}"), text)
            for kind, text in (
                ("model", "model"),
                ("verification", "verification"),
                ("judge", "judge"),
                ("failed", "failed or rejected"),
                ("waited", "waited (drawn shorter)"),
            )
        ),
    )
    body = el("div.panel.timeline", drawn, legend) if drawn else empty("Nothing has run yet.")
    return section("Timeline", body, note=f"{duration(round(line.worked_s))} of work", id_="timeline")


def _row(shown: ModuleView, row: TimelineRow, task: Task | None, length: float, *, linked: bool) -> Markup:
    scale = DRAWN / max(length, 1e-9)
    totals = {kind: sum(span.seconds for span in row.spans if span.kind == kind) for kind in KINDS}
    totals["model"] -= totals["verification"] + totals["judge"]  # it lies under them
    failed = sum(span.failed for span in row.spans)
    said = ", ".join(
        f"{kind} {duration(round(seconds))}" for kind, seconds in totals.items() if seconds >= 0.5
    )
    said += f", {failed} failed or rejected" if failed else ""
    bars = [
        el(
            f"rect.{'failed' if span.failed else span.kind}",
            x=f"{min(span.start * scale, DRAWN - NARROWEST):.1f}",
            y=0,
            width=f"{max(NARROWEST, (span.end - span.start) * scale):.1f}",
            height=14,
        )
        for span in sorted(row.spans, key=lambda s: s.kind == "judge" or s.failed)
        if span.kind != "model"
    ]
    work = [
        el(
            "rect.model",
            x=f"{span.start * scale:.1f}",
            y=0,
            width=f"{max(1, (span.end - span.start) * scale):.1f}",
            height=14,
        )
        for span in row.spans
        if span.kind == "model" and (span.end - span.start) * scale >= NARROWEST / 2
    ]
    name: Child = shown.task(task) if task and linked else row.name
    state = el("em", _task_state(task), " ", dollars(round(row.cost_usd, 2)))
    picture = el(
        "svg",
        work,
        bars,
        viewBox=f"0 0 {DRAWN} 14",
        preserveAspectRatio="none",
        role="img",
        aria_label=said or "under a second",
    )
    return el("div.row", el("span.name", name), picture, state)


def _task_state(task: Task | None) -> str:
    if task is None:
        return ""
    if task.given_up:
        return "skipped"
    return {State.COMPLETE: "✓", State.FAILED: "✗", State.IN_PROGRESS: "under way"}.get(
        task.state, "reopened"
    )


def criteria_table(shown: ModuleView, *, linked: bool) -> Markup:
    """Return each criterion with what proves it: the dossier's rows."""
    if not shown.dossier.proofs:
        return section("Criteria", empty("They appear here when the plan is made."), id_="criteria")
    rows_ = [
        (
            [el("small", f"{p.number} "), el("b", p.criterion.id), " ", prose(p.criterion.text)],
            _proven(shown, p, linked=linked),
            _tests(p),
            _said(p),
        )
        for p in shown.dossier.proofs
    ]
    met, count = shown.module.criteria
    return section(
        "Criteria",
        table(("Criterion", "Built by", "Tests", "Verdict"), rows_, "Criteria"),
        note=f"{met} of {count} met, and what each rests on",
        id_="criteria",
    )


def _proven(shown: ModuleView, proof: Proof, *, linked: bool) -> Child:
    if not proof.tasks:
        return el("small", "no task yet")
    words = {State.IN_PROGRESS: "under way", State.PENDING: "not begun", State.FAILED: "failed"}
    return [
        el(
            "span.below",
            shown.task(task) if linked else task.name,
            " ",
            el("code", task.commit[:8])
            if task.commit
            else el("small", "skipped" if task.given_up else words.get(task.state, "")),
        )
        for task in proof.tasks
    ]


def _tests(proof: Proof) -> Child:
    count = f"{len(proof.tests)} test{'' if len(proof.tests) == 1 else 's'}"
    named = proof.tests and el(
        "details",
        el("summary", count, el("span.unseen", f" of {proof.criterion.id}")),
        el("ul.tests", (el("li", el("code", test)) for test in proof.tests)),
    )
    files = [el("span.below", f"{number} in ", el("code", file)) for file, number in proof.files.items()]
    missing = [el("span.below", "no test run has ", el("code", name)) for name in proof.missing]
    return [child for child in (named, *files, *missing) if child] or "–"


def _said(proof: Proof) -> Child:
    again = (
        f"after {proof.rejections} rejection{'' if proof.rejections == 1 else 's'}"
        if proof.rejections
        else ""
    )
    notes = ", ".join(note for note in ("accepted by a person" if proof.by_person else "", again) if note)
    word = proof.criterion.word
    if word == "not judged":
        return el("small", word)
    return [chip(word), " ", prose(proof.criterion.evidence), el("small", f" {notes}") if notes else None]


def verdicts(shown: ModuleView, *, open_all: bool = False) -> Markup:
    """Return the verdicts, newest first, with their findings and the answered questions."""
    found = [verdict(shown, each, whole=open_all) for each in reversed(shown.dossier.history.verdicts)]
    newest, earlier = (found, []) if open_all else (found[:SHOWN_VERDICTS], found[SHOWN_VERDICTS:])
    more = el("details", el("summary", f"{len(earlier)} earlier"), earlier) if earlier else None
    return section(
        "Verdicts", newest or empty("No finished work was judged yet."), more, note=len(found) or None
    )


def verdict(shown: ModuleView, given: Mapping[str, Any], *, whole: bool = False) -> Markup:
    """Return one verdict."""
    task = shown.session.tree.task(given["subject"])
    component = shown.session.tree.component(given["subject"])
    name = task.name if task else component.name if component else given["subject"]
    questions = given.get("questions", ())
    asked = el(
        "ul",
        (
            el("li", prose(q["text"]), " ", el("b", q["answer"].replace("_", " ")), ": ", prose(q["because"]))
            for q in questions
        ),
    )
    count = f"{len(questions)} question{'' if len(questions) == 1 else 's'} answered"
    return el(
        "article.verdict",
        el(
            "p",
            chip(dossier.judged(given)),
            " ",
            el("b", name),
            " ",
            el(
                "small",
                "" if given["scope"] == "task" else f"{given['scope']}, ",
                f"{given['confidence']} confidence, ",
                ago(given["given_at"]),
            ),
        ),
        el("p", prose(given["summary"])),
        findings(given["findings"]),
        el("details", el("summary", count), asked, open=whole) if questions else None,
    )


def tone(event: e.Event) -> str:
    """Return the colour of an event's line."""
    match event:
        case e.Committed() | e.ComponentComplete() | e.SessionComplete() | e.VerdictGiven(passed=True):
            return "good"
        case (
            e.VerificationRan(passed=False)
            | e.VerdictGiven(passed=False)
            | e.SessionFailed()
            | e.Notice(level="error")
        ):
            return "bad"
        case e.ToolEnded(outcome=outcome) if outcome != "ok":
            return "bad"
        case e.SessionPaused() | e.GuardrailRaised() | e.AlertRaised() | e.Waiting() | e.ModelRetry():
            return "warn"
    return "calm"


def event_lines(events: Iterable[e.Recorded], *, verbose: bool = False) -> Iterable[Markup]:
    """Yield each event as a line, with what stands below it to unfold."""
    for recorded in events:
        first, *more = rows(recorded, verbose=verbose) or [""]
        if not first:
            continue
        at, _, text = first.partition(" ")
        head = [el("time", at), el("span", prose(text))]
        below = "\n".join(line.partition("| ")[2] for line in more)
        shown = (
            el("details", el("summary", head), el("pre.output", below, tabindex=0, aria_label="Details"))
            if below and verbose
            else head
        )
        yield el(f"li.{tone(recorded.event)}", shown)


def _newest(shown: ModuleView) -> Markup:
    lines = list(event_lines(reversed(shown.dossier.history.events[-4 * NEWEST :])))[:NEWEST]
    everything = link(
        "All events", shown.place.module(shown.module.module, "events", session=shown.session.id)
    )
    return section("What happened", el("ol.log.fixed", lines), everything, note="newest first")


def _notes(shown: ModuleView) -> Markup | None:
    said = shown.session.dialogue
    notes = [("you decided", f"{asked} {answer}") for asked, answer in said.answers]
    notes += [("assumed", text) for text in said.assumptions] + [
        ("you accepted", text) for text in said.accepted
    ]
    survived = dossier.survivors(shown.dossier.history)
    notes += [("no test notices", text) for text in survived]
    return (
        section(
            "Worth knowing",
            el("ul.list", (el("li", el("small", kind), el("span", prose(text))) for kind, text in notes)),
        )
        if notes
        else None
    )


def events_page(shown: ModuleView, events: Sequence[e.Recorded], earlier: str | None) -> str:
    """Return the page of a session's events, newest last; `earlier` is the address of those before."""
    body = [
        el("h1", f"What happened in {shown.module.module}"),
        el(
            "div.acts",
            el(
                "input",
                type="search",
                data_filter="#events > li",
                placeholder="Filter",
                aria_label="Filter events by text",
            ),
            link("Earlier events", earlier) if earlier else None,
        ),
        el("ol.log", event_lines(events, verbose=True), id_="events"),
    ]
    return frame(shown.place, f"{shown.module.module} events", shown.module.module, *body, waits=shown.waits)


def diff_page(shown: ModuleView, change: str) -> str:
    """Return the page of the whole module's change."""
    name = shown.module.module
    body = [
        el("h1", f"What {name} changes"),
        el(
            "p.about",
            "From the start of its branch to its work as it is now. To bring it in: ",
            copyable(f"lopen merge {name}"),
            " or ",
            copyable(f"lopen pr {name}"),
        ),
        diff(change),
    ]
    return frame(shown.place, f"{name} diff", name, *body, waits=shown.waits)


def report_page(shown: ModuleView, changes: Sequence[tuple[Task, str]]) -> str:
    """Return the dossier as one file that needs nothing else: `changes` are the tasks with their diffs."""
    module = shown.module
    style = resources.files("lopen.server.dashboard").joinpath("static", "style.css").read_text("utf-8")
    head = [
        el("meta", charset="utf-8"),
        el(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{module.module} · {shown.place.project} · report of lopen"),
        Markup(f"<style>{style}</style>"),
    ]
    ran = {v.task: v for v in shown.dossier.history.verifications if v.tool == "verify_tests"}
    tasks = [
        section(
            task.name,
            el("p", prose(task.description)),
            el("p", el("small", "commit ", el("code", task.commit or "none"))),
            el(
                "details",
                el("summary", f"What the tests printed: {ran[task.id].result}"),
                el("pre.output", ran[task.id].output),
            )
            if task.id in ran
            else None,
            diff(change, folded=True) if change else None,
        )
        for task, change in changes
    ]
    body = el(
        "main",
        _head(shown.place, module, None),
        facts(module),
        criteria_table(shown, linked=False),
        timeline(shown, linked=False),
        verdicts(shown, open_all=True),
        _notes(shown),
        el("h2", "Tasks and their changes"),
        tasks,
        el("p", el("small", f"Session {shown.session.id}, reported by lopen.")),
    )
    return f"<!doctype html>{el('html', el('head', head), el('body.report', body), lang='en')}"
