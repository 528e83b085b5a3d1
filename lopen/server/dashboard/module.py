"""A module's page: its standing, its timeline, the proof of each criterion, its verdicts and events. And its report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from lopen.application import dossier
from lopen.application.dossier import Proof, TimelineRow
from lopen.application.event_lines import rows, tone
from lopen.application.overview import Dossier, Standing
from lopen.application.reports import CriterionState
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
    document,
    duration,
    el,
    empty,
    fact,
    field,
    frame,
    link,
    plural,
    press,
    prose,
    section,
    some,
    table,
    unfold,
)
from lopen.server.dashboard.waits import findings, need
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State, Task

NEWEST = 6  # events on the page
_AGO = re.compile(r'(<time [^>]*title="([^"]*)">)[^<]*')  # in a file, which grows old: the instant itself
SHOWN_VERDICTS = 1
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
        """The module's standing."""
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
    name, check = module.module, copyable(f"lopen check {module.module}")
    read = el("div.acts", link("Specification", place.module(name, "specification"), button=""))
    unfinished = empty("Its specification is not finished. In a terminal: ", check)
    asked = need(place, module, ()) if module.wait else unfinished
    return frame(place, name, name, _head(place, module, read), asked, waits=waits)


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
        _notes(shown),
        el("div.two", verdicts(shown), _newest(shown)),
    ]
    return frame(place, module.module, module.module, *body, waits=shown.waits)


def _head(place: Place, module: Standing, acts: Child) -> Markup:
    about = el("p.about", module.description, " ", some("code", module.branch))
    return el("div.head", el("div", el("h1", module.module, " ", chip(module.state)), about), acts)


def _acts(shown: ModuleView) -> Markup:
    place, session, name = shown.place, shown.session, shown.module.module
    heard = "It hears this with its next turn, and the judge is shown it."
    form = act(
        place.href("api", "sessions", session.id, "tell"),
        field("text", heard, kind="area", required=True),
        el("button.do", "Tell it"),
    )
    tell = unfold("Tell the model…", form, label=f"Tell the model of {name} something")
    pause = press("Pause", place.href("api", "sessions", session.id, "pause"), label=f"Pause {name}")
    return el(
        "div.acts",
        None if session.finished else tell,
        pause if shown.module.act else None,
        link("Diff", place.module(name, "diff", session=session.id), button=""),
        link("Specification", place.module(name, "specification"), button=""),
        link("Report", place.module(name, "report", session=session.id), button=""),
    )


def _ended(shown: ModuleView) -> Markup:
    module, name = shown.module, shown.module.module
    if module.merged:
        return el(
            "p.notice.calm", "Its branch ", el("code", module.branch), f" is merged into {module.merged}."
        )
    read = link("Read the change", shown.place.module(name, "diff"))
    merge, propose = copyable(f"lopen merge {name}"), copyable(f"lopen pr {name}")
    return el(
        "p.notice.calm", "It is complete and ready for your review. ", read, ", then ", merge, " or ", propose
    )


def facts(module: Standing) -> Markup:
    """Return the module in figures."""
    tasks = module.tasks
    return el(
        "dl.facts.panel",
        fact("tasks", f"{tasks.tasks_done} of {tasks.tasks}" if tasks.tasks else "–"),
        fact("criteria met", criteria(module)),
        fact("tests", f"{module.tests} pass" if module.tests is not None else "–"),
        fact("mutants", mutants(module)),
        fact("spent", *spent(module)),
        fact("took" if module.ended else "elapsed", duration(round(module.pace.worked_s))),
        None if module.ended else fact("time left", left(module)),
    )


LEGEND = {
    "model": "model",
    "verification": "verification",
    "judge": "judge",
    "failed": "failed or rejected",
    "waited": "waiting (drawn shorter)",
}


def timeline(shown: ModuleView, *, linked: bool) -> Markup:
    """Return the tasks as bars over time."""
    line = shown.dossier.line
    tasks = {task.id: task for task in shown.session.tree.tasks}
    drawn = [_row(shown, row, tasks.get(row.task), line.length, linked=linked) for row in line.rows]
    legend = el("p.legend", (el("span", el(f"i.{kind}"), text) for kind, text in LEGEND.items()))
    body = el("div.panel.timeline", drawn, legend) if drawn else empty("Nothing has run yet.")
    waited = sum(span.seconds for row in line.rows for span in row.spans if span.kind == "waited")
    note = f"{duration(round(line.worked_s))} of work"
    note += f", {duration(round(waited))} of waiting" if waited >= 1 else ""
    return section("Timeline", body, note=note, id_="timeline")


def _row(shown: ModuleView, row: TimelineRow, task: Task | None, length: float, *, linked: bool) -> Markup:
    scale = DRAWN / max(length, 1e-9)
    totals = {kind: sum(span.seconds for span in row.spans if span.kind == kind) for kind in KINDS}
    totals["model"] -= totals["verification"] + totals["judge"]  # it lies under them
    said = [f"{kind} {duration(round(seconds))}" for kind, seconds in totals.items() if seconds >= 0.5]
    failed = sum(span.failed for span in row.spans)
    said += [f"{failed} failed or rejected"] if failed else []
    bars = []
    for span in sorted(row.spans, key=lambda s: (s.kind != "model", s.kind == "judge" or s.failed)):
        width = (span.end - span.start) * scale
        if span.kind != "model" or width >= NARROWEST / 2:
            width = max(1 if span.kind == "model" else NARROWEST, width)
            x, kind = min(span.start * scale, DRAWN - width), "failed" if span.failed else span.kind
            bars.append(el(f"rect.{kind}", x=f"{x:.1f}", y=0, width=f"{width:.1f}", height=14))
    frame_ = {"viewBox": f"0 0 {DRAWN} 14", "preserveAspectRatio": "none", "role": "img"}
    return el(
        "div.row",
        el("span.name", shown.task(task) if task and linked else row.name),
        el("svg", bars, aria_label=", ".join(said) or "under a second", **frame_),
        el("em", _task_state(task), " ", dollars(row.cost_usd)),
    )


def _task_state(task: Task | None) -> str:
    if task is None:
        return ""
    if task.given_up:
        return "skipped"
    return {State.COMPLETE: "✓", State.FAILED: "✗", State.IN_PROGRESS: "under way"}.get(
        task.state, "reopened"
    )


def criteria_table(shown: ModuleView, *, linked: bool) -> Markup:
    """Return each criterion with its proof: the dossier's rows."""
    if not shown.dossier.proofs:
        return section("Criteria", empty("They appear here when the plan is made."), id_="criteria")
    rows_ = {
        p.number: (
            [el("small", f"{p.number} "), el("b", p.criterion.id), " ", prose(p.criterion.text)],
            chip(p.criterion.state),
            _proof(p),
            _built(shown, p, linked=linked),
        )
        for p in shown.dossier.proofs
    }
    met, count = shown.module.criteria
    open_ones = [p.number for p in shown.dossier.proofs if p.criterion.holds != "yes"]
    folded = [number for number in rows_ if number not in open_ones] if linked and open_ones else []

    def proven(numbers: Iterable[int], label: str) -> Markup:
        head = ("Criterion", "State", "The judge names=", "Built by=")
        return table(head, [rows_[number] for number in numbers], label)

    first = proven(open_ones if folded else rows_, "Criteria")
    summary = el("summary", f"{plural(len(folded), 'criterion', 'criteria')} met, with the proof")
    more = el("details", summary, proven(folded, "Criteria that are met")) if folded else None
    return section("Criteria", first, more, note=f"{met} of {count} met", id_="criteria")


def _built(shown: ModuleView, proof: Proof, *, linked: bool) -> Child:
    words = {State.IN_PROGRESS: "under way", State.PENDING: "not begun", State.FAILED: "failed"}

    def state(task: Task) -> Markup:
        if task.commit:
            return el("code", task.commit[:8])
        return el("small", "skipped" if task.given_up else words.get(task.state, ""))

    lines = (
        el("span.below", shown.task(task) if linked else task.name, " ", state(task)) for task in proof.tasks
    )
    return lines if proof.tasks else el("small", "no task yet")


def judged_words(criterion: CriterionState) -> Child:
    """Return what the judge names for a criterion; the state stands before it where that is not met."""
    if not criterion.named:
        return None
    against = None if criterion.holds == "yes" else el("small", f"{criterion.state}: ")
    return [against, prose(criterion.evidence or "no evidence")]


def _proof(proof: Proof) -> Child:
    """Return the judge's words on a criterion, and the tests that they name."""
    if not proof.criterion.named:
        return None
    saw = f"lopen saw: {proof.seen}" if proof.seen else plural(len(proof.tests), "test")
    named = proof.tests and el(
        "details",
        el("summary", el("small", saw), el("span.unseen", f" of {proof.criterion.id}")),
        el("ul.tests", (el("li", el("code", test)) for test in proof.tests)),
    )
    again = f"after {plural(proof.rejections, 'rejection')}" if proof.rejections else ""
    notes = ", ".join(note for note in ("accepted by a person" if proof.by_person else "", again) if note)
    return [
        judged_words(proof.criterion),
        el("small", f" ({notes})") if notes else None,
        named or None,
        [
            el("span.below", plural(n, "test"), " in ", el("code", file))
            for file, n in proof.test_files.items()
        ],
        [el("span.below.bad", "no test run has ", el("code", name)) for name in proof.missing_tests],
        None if named or not proof.seen else el("small.below", saw),
    ]


def verdicts(shown: ModuleView, *, open_all: bool = False) -> Markup:
    """Return the verdicts, newest first, with their findings and the answered questions."""
    found = [verdict(shown, each, whole=open_all) for each in reversed(shown.dossier.history.verdicts)]
    newest, earlier = (found, []) if open_all else (found[:SHOWN_VERDICTS], found[SHOWN_VERDICTS:])
    more = el("details", el("summary", f"{len(earlier)} earlier"), earlier) if earlier else None
    none = empty("No finished work was judged yet.")
    return section("Verdicts", newest or none, more, note=len(found) or None)


def verdict(shown: ModuleView, given: Mapping[str, Any], *, whole: bool = False) -> Markup:
    """Return one verdict."""
    subject, tree = given["subject"], shown.session.tree
    named = tree.task(subject) or tree.component(subject)
    kind = "" if given["scope"] == "task" else f"{given['scope']}, "
    sure = "" if given["confidence"] == "high" else f"{given['confidence']} confidence, "
    questions = [
        el("li", prose(q["text"]), " ", el("b", q["answer"].replace("_", " ")), ": ", prose(q["because"]))
        for q in given.get("questions", ())
    ]
    count = f"{plural(len(questions), 'question')} answered"
    return el(
        "article.verdict",
        el(
            "p",
            chip(dossier.judged(given)),
            " ",
            el("b", named.name if named else subject),
            " ",
            el("small", kind, sure, ago(given["given_at"])),
        ),
        el("p", prose(given["summary"])),
        findings(given["findings"]),
        el("details", el("summary", count), el("ul", questions), open=whole) if questions else None,
    )


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
    everything = shown.place.module(shown.module.module, "events", session=shown.session.id)
    listed = el("ol.log.fixed", lines)
    return section("What happened", listed, link("All events", everything), note="newest first")


def _notes(shown: ModuleView) -> Markup | None:
    said = shown.session.dialogue
    notes = [
        *(("you decided", f"{asked} {answer}") for asked, answer in said.answers),
        *(("assumed", text) for text in said.assumptions),
        *(("you accepted", text) for text in said.accepted),
        *(("no test notices the change", text) for text in dossier.survivors(shown.dossier.history)),
    ]
    listed = some("ul.list", (el("li", el("small", kind), el("span", prose(text))) for kind, text in notes))
    return section("Worth knowing", listed) if listed else None


def events_page(shown: ModuleView, events: Sequence[e.Recorded], earlier: str | None) -> str:
    """Return the page of a session's events, newest last; `earlier` is the address of those before."""
    name = shown.module.module
    hint = {"placeholder": "Filter", "aria_label": "Filter events by text"}
    search = el("input", type="search", data_filter="#events > li", **hint)
    body = [
        el("h1", f"What happened in {name}"),
        el("div.acts", search, link("Earlier events", earlier) if earlier else None),
        el("ol.log", event_lines(events, verbose=True), id_="events"),
    ]
    return frame(shown.place, f"{name} events", name, *body, waits=shown.waits)


def diff_page(shown: ModuleView, change: str) -> str:
    """Return the page of the whole module's change."""
    name = shown.module.module
    commands = copyable(f"lopen merge {name}"), " or ", copyable(f"lopen pr {name}")
    bring = [" To bring it in: ", *commands] if shown.module.ended else []
    about = "From the start of its branch to its work as it is now."
    body = el("h1", f"What {name} changes"), el("p.about", about, *bring), diff(change)
    return frame(shown.place, f"{name} diff", name, *body, waits=shown.waits)


def report_page(shown: ModuleView, changes: Sequence[tuple[Task, str]]) -> str:
    """Return the dossier as one file that needs nothing else: `changes` are the tasks with their diffs."""
    module = shown.module
    style = resources.files("lopen.server.dashboard").joinpath("static", "style.css").read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    ran = {v.task: v for v in shown.dossier.history.verifications if v.tool == "verify_tests"}

    def printed(task: Task) -> Markup | None:
        run = ran.get(task.id)
        if run is None:
            return None
        return el(
            "details.run",
            el("summary", f"What the tests printed: {run.result}"),
            el("pre.output", run.output, tabindex=0, aria_label="What the tests printed"),
        )

    tasks = (
        section(
            task.name,
            el("p", prose(task.description)),
            el("p", el("small", "commit ", el("code", task.commit or "none"))),
            printed(task),
            diff(change, folded=True) if change else None,
        )
        for task, change in changes
    )
    page = document(
        f"{module.module} · {shown.place.project} · report of lopen",
        [
            el("meta", http_equiv="Content-Security-Policy", content=policy),
            Markup(f"<style>{style}</style>"),
        ],
        el(
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
        ),
    )
    return _AGO.sub(r"\1\2", page)
