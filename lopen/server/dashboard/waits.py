"""The decisions that wait for a person, each with the fields and buttons that settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lopen.application.overview import ProjectOverview, Standing, Wait
from lopen.core.money import dollars
from lopen.limits.budget import BudgetState
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    Place,
    act,
    ago,
    copyable,
    el,
    field,
    link,
    press,
    prose,
    some,
    unfold,
)
from lopen.workflow.pauses import Question

LARGEST_EXTENSION = 1_000_000
TITLES = {
    "question": "asks",
    "gate": "waits for your approval",
    "interrupted": "was interrupted",
    "person": "is paused by you",
    "failed": "failed",
    "ready": "can go on",
    "approved": "is approved and not built yet",
}
LONGEST_TITLE = 100
KINDS = {
    "question": "ask",
    "gate": "ask",
    "approved": "calm",
    "ready": "calm",
    "person": "calm",
    "interrupted": "calm",
}


def waiting(place: Place, overview: ProjectOverview) -> Markup | None:
    """Return the part of the first page that stands over everything else; None where nothing waits."""
    shown = [need(place, module, overview.limits.budgets) for module in overview.modules if module.wait]
    if not shown:
        return None
    count = f"{len(shown)} {'waits' if len(shown) == 1 else 'wait'} for you"
    return el("section.waits", el("h2", count), shown, aria_label="Waits for you")


def need(place: Place, module: Standing, budgets: Sequence[BudgetState]) -> Markup:
    """Return one decision: what is asked, why, and what can be done about it."""
    wait = module.wait
    assert wait is not None
    said, _, rest = wait.message.partition("\n")
    title = TITLES.get(wait.kind, "stopped")
    if title in ("stopped", "failed") and said and len(said) <= LONGEST_TITLE:
        title, said = f"{title}: {said}", ""
    if wait.kind in ("gate", "approved", "question", "interrupted", "person"):
        said, rest = "", ""
    at, cost = place.module(module.module), module.pace.spent_usd
    facts = [ago(wait.since), _progress(module), f"{dollars(cost)} spent" if cost else None]
    small = el("small", *((" · " if n else "", fact) for n, fact in enumerate(filter(None, facts))))
    return el(
        f"article.need.{KINDS.get(wait.kind, 'stop')}",
        el("h3", link(module.module, at), " ", prose(title), " ", small),
        [some("p", prose(each)) for each in (said, rest, wait.mend)],
        findings(wait.findings),
        some("pre.output", wait.output, tabindex=0, aria_label="The end of the last failed verification"),
        some("ul.changes", (el("li", prose(line)) for line in wait.changes)),
        el("div.acts", _acts(place, module, wait, budgets)),
        id_=f"need-{module.module}",
    )


def _progress(module: Standing) -> str | None:
    if module.tasks.tasks:
        return f"task {min(module.tasks.tasks_done + 1, module.tasks.tasks)} of {module.tasks.tasks}"
    return f"{module.criteria[1]} criteria" if module.criteria[1] else None


def findings(found: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Return the findings of a verdict, each with its criterion and place."""

    def item(each: Mapping[str, Any]) -> Markup:
        at = ":".join(str(part) for part in (each.get("path"), each.get("line")) if part)
        criterion = each.get("criterion") or ""
        named = None if each["message"].startswith(criterion) else el("b", criterion)
        text = (named, " ", prose(each["message"]), " ")
        return el(f"li.{each.get('severity', 'error')}", text, some("code", at) if each.get("path") else None)

    return some("ul.findings", map(item, found))


def _acts(place: Place, module: Standing, wait: Wait, budgets: Sequence[BudgetState]) -> list[Child]:
    """Return the fields and buttons that settle a wait."""
    session = module.session
    resume = None if wait.at_terminal else place.href("api", "sessions", session, "resume")
    go_on = press("Go on", resume, kind=".do", label=f"Go on with {module.module}") if resume else None
    if wait.question is not None and wait.question.answer is None:
        return [_answer(place, module, wait.question, resume)]
    if wait.question is not None:
        label = f"Change the answer for {module.module}"
        return [go_on, unfold("Change the answer…", _answer(place, module, wait.question, None), label=label)]
    if wait.kind == "gate":
        read = link("Read and approve", place.module(module.module, "specification"), button=".do")
        cost = wait.estimate_usd
        likely = el("span.hint", f"about {dollars(cost[0])} to {dollars(cost[1])}") if cost else None
        return [read, likely, to_change(module.module)]
    if wait.kind == "approved":
        run = place.href("api", "modules", module.module, "run")
        return [press("Build", run, kind=".do", label=f"Build {module.module}")]
    if wait.command.startswith("lopen confirm"):
        return [_confirm(place, module, resume), _skip(place, wait), _change(place, module, wait)]
    if wait.kind == "budget":
        named = next((b for b in budgets if b.budget_id in wait.command.split()), None)
        if named is None:
            return [go_on]
        form = extend_form(place, named, then=resume)
        return [unfold("Extend…", form, kind=".do", label=f"Extend {named.budget_id}")]
    if wait.kind == "circuit" and "circuit ack" in wait.command:
        owner = wait.command.split()[-1]
        acknowledge, reset = (place.href("api", "circuit", owner, verb) for verb in ("acknowledge", "reset"))
        return [
            press("Acknowledge and go on", acknowledge, then=resume, kind=".do"),
            press("Only acknowledge", acknowledge, label=f"Only acknowledge {owner}"),
            press("Reset the circuit", reset),
        ]
    if wait.command.startswith("lopen resume"):
        return [go_on, _skip(place, wait), _change(place, module, wait)]
    return [el("span.hint", "in a terminal: ", copyable(wait.command))]


def to_change(module: str) -> Markup:
    """Return the command by which a person has the specification changed before it is approved."""
    command = f"lopen spec {module} -p 'what to change'"
    return el("p.hint.change", "to have it changed, in a terminal: ", copyable(command))


def _answer(place: Place, module: Standing, question: Question, resume: str | None) -> Markup:
    """Return the form that answers a question, or gives another answer than the one that stands."""
    named, stands = f"Answer for {module.module}", question.answer is not None
    given = question.answer or question.default
    acts = (
        el("input", name="text", value=given, required=True, aria_label=named),
        el("button" if stands else "button.do", "Change" if stands else "Answer"),
        [el("button", other, name="text", value=other) for other in question.options if other != given],
        el("button.quiet", "Answer, but do not go on yet", data_only=True) if resume else None,
        el("span.hint", "without an answer: ", el("b", given)) if given and not stands else None,
    )
    action = place.href("api", "sessions", module.session, "answer")
    return act(action, el("p", prose(question.text)), el("div.acts", *acts), then=resume, kind=".wide")


def _confirm(place: Place, module: Standing, resume: str | None) -> Markup:
    only = el("button.quiet", "Confirm, but do not go on yet", data_only=True) if resume else None
    form = act(
        place.href("api", "sessions", module.session, "confirm"),
        field("note", "Note for the model (optional)", kind="area"),
        el("div.acts", el("button.do", "Go on"), only),
        then=resume,
    )
    label = f"Let {module.module} go on, with a note"
    return unfold("Let it go on, with a note…", form, kind=".do", label=label)


def _skip(place: Place, wait: Wait) -> Markup | None:
    return skip(place, wait.task.id, wait.task.name) if wait.task is not None and wait.task.open else None


def skip(place: Place, task: str, name: str) -> Markup:
    """Return the form that gives a task up."""
    form = act(
        place.href("api", "tasks", task, "skip"),
        el("p", f"{name}: its criteria stay open, and the report says so."),
        field("reason", "Reason", required=True),
        el("button.danger", "Skip the task"),
    )
    return unfold("Skip the task…", form, label=f"Skip {name}")


def _change(place: Place, module: Standing, wait: Wait) -> Markup | None:
    if wait.task is None:
        return None
    return link("Show the last change", place.module(module.module, "tasks", wait.task.id))


def extend_form(place: Place, budget: BudgetState, *, then: str | None = None) -> Markup:
    """Return the form that grants a budget more tokens."""
    more = min(LARGEST_EXTENSION, max(1_000, -(-budget.max_tokens // 4)))
    most = {"min": 1, "max": LARGEST_EXTENSION}
    return act(
        place.href("api", "budget", budget.budget_id, "extend"),
        field("additional_tokens", "Additional tokens", kind="number", value=more, required=True, **most),
        field("reason", "Reason", required=True),
        el(
            "div.acts",
            el("button.do", "Extend and go on" if then else "Extend"),
            el("button.quiet", "Only extend", data_only=True) if then else None,
        ),
        then=then,
    )
