"""A task's page: what was asked, what changed, every verdict on it, and what the commands printed."""

from __future__ import annotations

from collections.abc import Sequence

from lopen.application.reports import TaskDetails
from lopen.core.money import cost_text
from lopen.server.dashboard.diff import diff
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    ago,
    chip,
    duration,
    el,
    empty,
    fact,
    frame,
    link,
    prose,
    section,
    table,
)
from lopen.server.dashboard.module import ModuleView, judged_words, verdict
from lopen.server.dashboard.waits import skip
from lopen.store.audit import VerifyResult


def task_page(shown: ModuleView, found: TaskDetails) -> str:
    """Return the page of a task."""
    task, name = found.task, shown.module.module
    state = "skipped" if task.given_up else task.state.value.replace("_", " ")
    commit: Child = el("code", task.commit[:12]) if task.commit else "none yet"
    row = next((row for row in shown.dossier.line.rows if row.task == task.id), None)
    failed = [el("li", prose(reason)) for reason in task.reasons]
    refused = max(
        task.failures,
        sum(not v["passed"] for v in found.verdicts if task.id in (v["subject"], v.get("task"))),
    )
    criteria = [([el("b", c.id), " ", prose(c.text)], chip(c.state), judged_words(c)) for c in found.criteria]
    body: list[Child] = [
        el("p.about", link(f"← {name}", shown.place.module(name))),
        el(
            "div.head",
            el("div", el("h1", task.name, " ", chip(state)), el("p.about", prose(task.description))),
            el("div.acts", skip(shown.place, task.id, task.name)) if task.open else None,
        ),
        el(
            "dl.facts.panel",
            fact("component", found.component),
            fact("commit", commit),
            fact("spent", cost_text(found.cost_usd, found.unpriced_tokens)),
            fact("took", duration(round(row.worked_s)) if row else "–"),
            fact("attempts not accepted", refused),
        ),
        el("p.notice", "Skipped: ", prose(task.given_up)) if task.given_up else None,
        section("Why attempts failed", el("ul.findings", failed)) if failed else None,
        section(
            "Verdicts",
            [verdict(shown, v, whole=True) for v in reversed(found.verdicts)]
            or empty("The judge has not seen this task yet."),
        ),
        section(
            "Criteria",
            table(("Criterion", "State", "The judge names="), criteria, "Criteria"),
            id_="criteria",
        )
        if criteria
        else None,
        section(
            "Change",
            diff(found.diff) if found.diff else empty(found.diff_unknown or "There is no change yet."),
        ),
        section("What the commands printed", _printed(found.verifications)),
    ]
    return frame(shown.place, f"{task.name} · {name}", name, *body, waits=shown.waits)


def _printed(ran: Sequence[VerifyResult]) -> Child:
    if not ran:
        return empty("No verify command ran for this task yet.")
    return [_run(v, is_open=not n) for n, v in enumerate(reversed(ran))]


def _run(ran: VerifyResult, *, is_open: bool) -> Markup:
    tool = el("b", ran.tool.replace("_", " "))
    told = el("small", f" {duration(ran.seconds)}, ", ago(ran.at or None))
    if ran.found is not None:
        summary = el("summary", tool, ": ", prose(ran.result), told)
    else:
        state = chip("passed" if ran.passed else "failed")
        summary = el("summary", state, " ", tool, " ", el("code", ran.command), told)
    seen = {"tabindex": "0", "role": "region", "aria_label": f"Output of {ran.tool}"}
    return el(
        "details.run", summary, el("pre.output", ran.output or "It printed nothing.", **seen), open=is_open
    )
