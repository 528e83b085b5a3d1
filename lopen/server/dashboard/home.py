"""The first page: what waits, what runs, the modules, then limits and spend in one row. And the list of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lopen.application.overview import ProjectOverview, Standing
from lopen.core.money import dollars
from lopen.server.dashboard.limits import budget_table
from lopen.server.dashboard.markup import (
    Child,
    Markup,
    Place,
    ago,
    chip,
    copyable,
    duration,
    el,
    empty,
    fact,
    frame,
    link,
    plural,
    prose,
    section,
    spark,
    table,
)
from lopen.server.dashboard.waits import waiting

Found = Sequence[tuple[Place, ProjectOverview]]


def home(found: Found) -> str:
    """Return the first page of a server's projects."""
    (place, first), *others = found
    needs = [waiting(*each) for each in found]
    body: list[Child] = [
        el("h1.unseen", "Overview"),
        needs,
    ]
    ready = sum(m.ended and not m.merged for _, overview in found for m in overview.modules)
    if ready:
        body.append(
            el("p.calm", f"{ready} {'module is' if ready == 1 else 'modules are'} ready for your review.")
        )
    elif not any(needs):
        body.append(el("p.calm", "Nothing waits for you."))
    running = [(at, module) for at, overview in found for module in overview.modules if module.act]
    if running:
        body.append(
            section("Running", el("div.cards", (_card(*each) for each in running)), note=len(running))
        )
    body += [_modules(at, overview, named=bool(others)) for at, overview in found]
    if others:
        total = dollars(sum(overview.spent_today_usd for _, overview in found))
        body.append(el("p.calm", f"{len(found)} projects spent ", el("b", total), " today."))
    body += [_limits(at, overview, named=bool(others)) for at, overview in found]
    waits = sum(module.wait is not None for _, overview in found for module in overview.modules)
    title = next(
        (f"{m.module} {'asks' if m.wait.kind == 'question' else 'waits'}" for m in first.modules if m.wait),
        "",
    )
    return frame(place, title, "Overview", *body, waits=waits)


def left(module: Standing) -> str:
    """Return how long the module still takes, as far as its own tasks tell."""
    if module.wait is not None:
        return "waits for you"
    if module.pace.left_s is not None:
        return f"about {duration(round(module.pace.left_s))}"
    return "known after the first task" if module.tasks.tasks else "known after planning"


def spent(module: Standing) -> list[Child]:
    """Return the cost so far, and the one that is expected."""
    expected = module.pace.expected_usd
    return [
        dollars(module.pace.spent_usd),
        el("small", f" of about {dollars(expected)}") if expected else None,
    ]


def criteria(module: Standing) -> str:
    """Return how many criteria are met."""
    return f"{module.criteria[0]} of {module.criteria[1]}" if module.criteria[1] else "–"


def mutants(module: Standing) -> str:
    """Return the share of mutants that the tests noticed."""
    noticed, ran = module.mutants
    return f"{100 * noticed // ran} % noticed" if ran else "–"


def doing(module: Standing) -> Child:
    """Return what the module's process does now, on one line that keeps its height."""
    if module.act is None:
        return None
    subject = el("b", f"{module.task.name}: ") if module.task else None
    text = el("span", subject, prose(module.act.text))
    now = el("p.now", el("i.spin", aria_hidden="true"), text, ago(module.act.since, lasts=True))
    return [now, (el("p.asked", prose(sentence)) for sentence in module.act.asked)]


def pips(module: Standing) -> Markup:
    """Return the tasks as a row of pieces: complete, under way, open."""
    count = module.tasks
    label = f"{count.tasks_done} of {count.tasks} tasks complete" if count.tasks else "not planned yet"
    under_way = count.tasks_done + (module.task is not None)
    kinds = [
        "done" if n < count.tasks_done else "begun" if n < under_way else "open" for n in range(count.tasks)
    ]
    return el("div.pips", (el(f"i.{kind}") for kind in kinds or ["begun"]), role="img", aria_label=label)


def _card(place: Place, module: Standing) -> Markup:
    step = (
        f"task {min(module.tasks.tasks_done + 1, module.tasks.tasks)} of {module.tasks.tasks}"
        if module.task
        else module.step
    )
    return el(
        "article.card",
        el("h3", link(module.module, place.module(module.module)), el("small", step)),
        doing(module),
        pips(module),
        el(
            "dl.facts",
            fact("elapsed", duration(round(module.pace.worked_s))),
            fact("time left", left(module)),
            fact("spent", *spent(module)),
            fact("criteria met", criteria(module)),
        ),
        el("small", "money spent, from its start until now"),
        spark(module.pace.spending, "Money spent, from its start until now"),
    )


def _modules(place: Place, overview: ProjectOverview, *, named: bool) -> Markup:
    title = f"Modules of {place.project}" if named else "Modules"
    if not overview.modules:
        return section(
            title, empty("No module has a specification yet. To start one: ", copyable("lopen init MODULE"))
        )
    rows = [
        (
            link(m.module, place.module(m.module)),
            chip(m.state),
            el("a", criteria(m), href=f"{place.module(m.module)}#criteria"),
            m.tests if m.tests is not None else "–",
            mutants(m).removesuffix(" noticed"),
            dollars(m.pace.spent_usd) if m.pace.spent_usd else "–",
            el("code", m.branch) if m.branch else "–",
            _next(place, m),
        )
        for m in overview.modules
    ]
    head = ("Module", "State", "Criteria met#", "Tests#", "Mutants noticed#", "Cost#", "Branch-", "Next=")
    return section(title, table(head, rows, title), note=len(rows))


def _next(place: Place, module: Standing) -> Child:
    """Return the next step of a module as a link."""
    at = place.module(module.module)
    if module.wait is not None:
        word = {"question": "Answer", "gate": "Read and approve", "approved": "Build"}.get(
            module.wait.kind, "See why"
        )
        return link(word, f"{at}#need-{module.module}")
    if module.merged:
        return el("small", f"in {module.merged}")
    if module.ended:
        return link("Review", place.module(module.module, "diff"))
    return link("Follow" if module.act else "See what is missing", at)


def _limits(place: Place, overview: ProjectOverview, *, named: bool) -> list[Child]:
    """Return what is close to its limit, then everything else about limits and spend in one row."""
    of = f" of {place.project}" if named else ""
    strained, open_circuits = overview.strained, overview.open_circuits
    unknown = overview.limits.unknown
    calm = len(overview.limits.budgets) - len(strained)
    said = (
        "cannot be read"
        if unknown
        else "all OK"
        if not (strained or open_circuits)
        else plural(len(strained) + len(open_circuits), "needs a look", "need a look")
    )
    circuits = f"{plural(len(open_circuits), 'circuit')} open" if open_circuits else "circuits OK"
    strip = el(
        "section.strip",
        el(
            "span",
            f"Limits{of}: ",
            el("b", said),
            el("small", f" {unknown or f'{calm} budgets below 80 %, {circuits}'}"),
        ),
        el("span", "Spent today ", el("b", dollars(overview.spent_today_usd))),
        el("small", "by the hour, last 24 hours "),
        spark(overview.spending, "Spend over the last 24 hours"),
        link("Limits, alerts and spend over time", place.href("limits")),
        aria_label=f"Limits and spend{of}",
    )
    near = section(f"Close to a limit{of}", budget_table(place, strained)) if strained else None
    return [near, strip]


def history(place: Place, sessions: Sequence[Mapping[str, Any]], waits: int) -> str:
    """Return the page of all sessions, newest first."""
    rows = [
        (
            link(each["session"], place.module(each["module"], session=each["session"])),
            each["module"],
            chip(each["status"]),
            f"{each['tasks_done']} of {each['tasks']}" if each["tasks"] else "–",
            ago(each["created_at"]),
        )
        for each in sessions
    ]
    shown = (
        table(("Session", "Module", "State", "Tasks#", "Begun"), rows, "Sessions")
        if rows
        else empty("No session yet.")
    )
    return frame(place, "History", "History", el("h1", "History"), shown, waits=waits)
