"""`lopen status`: tasks, step, budgets, circuits, last verdicts, and what waits for a person; other modules in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lopen.application.command_context import CommandContext
from lopen.application.event_lines import MARKS, step_title
from lopen.cli.command import command
from lopen.cli.parameters import StatusArgument
from lopen.core.errors import ExitCode, StorageError
from lopen.core.money import apart, cost_text, dollars
from lopen.workflow.steps import phase_of
from lopen.workflow.task_tree import State, TaskTree, progress

if TYPE_CHECKING:
    from lopen.application.open_store import ProjectLimits
    from lopen.application.reports import SessionFacts
    from lopen.store.sessions import SessionStore
    from lopen.workflow.session import Session


SCREEN = 24  # lines


@command
def status(context: CommandContext, wanted: StatusArgument = None) -> ExitCode:
    """Show the state of a session, what it has spent, and what waits for you; without a name each module.

    It fits one screen; with -v also the step, and every finished task, budget and verdict.
    """
    from lopen.application.open_store import looked_up, open_store, shown_session
    from lopen.application.reports import read_session
    from lopen.application.servers import running_servers

    if wanted is not None:
        store, session = shown_session(context, wanted)
        sessions = [session]
    else:
        store = open_store(context)
        newest = store.latest()
        sessions = list(store.readable(store.ids(unfinished=True))) or ([newest] if newest else [])
    limits = looked_up(context, store.database)
    project: dict[str, Any] = {
        "servers": [{"url": s.url, "pid": s.pid} for s in running_servers(context.root)]
    }
    if wanted is None:
        project["modules"] = _tell_modules(context, store, sessions, limits)
    for server in project["servers"]:
        context.say(f"server: {server['url']} (to open it: lopen serve --link --open)")
    if not sessions:
        context.emit("status", session="", **project)
    found = [read_session(context.root, store, session) for session in sessions]
    for facts in found:
        session, waits = facts.session, facts.waits
        act = "merge" if session.finished else "attach"
        own = limits.of(f"session:{session.id}")
        context.emit(
            "status",
            **facts.to_json(),
            tokens=None if own is None else own.tokens_used,
            cost_usd=None if own is None else own.cost_usd,
            next=waits.command if waits else f"lopen {act} {session.module}",
            failed_verification=None if facts.failure is None else asdict(facts.failure),
            limits_unknown=limits.unknown or None,
            **project,
        )
        project = {}  # told once
        if not context.json:
            context.say("\n".join(lines(context, store, facts, limits, whole=context.verbose)))
    waiting = {f.session.module: f.waits.command for f in found if f.waits and f.waits.kind != "failed"}
    if len(sessions) > 1 and waiting:
        told = [f"{len(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for you:"]
        context.say("\n".join([*told, *(f"  {module}: {each}" for module, each in sorted(waiting.items()))]))
    if wanted is None and context.has_queue:
        _tell_queue(context)
    return ExitCode.OK


def _tell_queue(context: CommandContext) -> None:
    """Count the builds of the queue by state in a line."""
    from lopen.queue.opening import open_shared

    try:
        with closing(open_shared(context)) as queue:
            counts = Counter(placed.state for placed in queue.placed())
    except StorageError as error:
        context.warn(error.message)
        return
    if counts:
        told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        context.say(f"in the queue: {told}; which, and where: lopen queue")
        context.emit("queue", states=dict(counts))


def _tell_modules(
    context: CommandContext, store: SessionStore, sessions: Sequence[Session], limits: ProjectLimits
) -> list[dict[str, Any]]:
    """Show each module whose session is not shown in a line, or say how to start one; return every module."""
    from lopen.application.command_context import TO_START, nothing_here
    from lopen.application.reports import module_object
    from lopen.specification.modules import find_modules

    names, every = find_modules(context.root), []
    for name in names:
        found = module_object(context.root, store, name, limits.of(f"module:{name}"))
        spent = f"{found['tokens']:,} tokens, {cost_text(found['cost_usd'], found['unpriced_tokens'])}"
        if limits.unknown:
            found |= dict.fromkeys(("tokens", "cost_usd", "unpriced_tokens"))
        every.append(found)
        if all(session.module != name for session in sessions):
            done = f"{found['tasks_done']}/{found['tasks']} tasks" if found["tasks"] else "no tasks yet"
            context.say(f"{name}: {found['state']}, {done}, {'tokens unknown' if limits.unknown else spent}")
    if names and not sessions:
        context.say("\n".join([*limits.lines[:1], "no sessions yet; to start one: lopen run MODULE"]))
    elif not names and not sessions:
        context.say(f"{nothing_here(context.root)}; {TO_START}")
    return every


def lines(
    context: CommandContext,
    store: SessionStore,
    facts: SessionFacts,
    limits: ProjectLimits,
    *,
    whole: bool,
) -> list[str]:
    """Return the status of a session as lines for a person; without `whole` on one screen.

    On one screen the tree is shortened, and parts in order are left out.
    """
    from lopen.application.reports import closing_lines, present_verdicts, specification_line
    from lopen.application.workplaces import clone_of  # imports git
    from lopen.judge.verdict import verdict_from_json

    session, done = facts.session, progress(facts.session.tree)
    head = [f"{session.module}: {facts.status} (session {session.id})"]
    if whole and not session.finished:
        head.append(f"{step_title(facts.step)} ({phase_of(facts.step).replace('_', ' ')})")
    if done.components:
        head.append(
            f"criteria {len(facts.held)}/{len(session.plan.criteria)} · components {done.components_done}/{done.components}"
            f" · tasks {done.tasks_done}/{done.tasks}"
        )
    tail = [*limits.lines, *_spent(session, limits, whole=whole)]
    newest = {verdict["subject"]: verdict for verdict in facts.verdicts}
    present = [v for v in present_verdicts(store, session) if newest[v["subject"]] == v]
    verdicts = present[-3 if whole else -1 :]
    for verdict in verdicts[:-1] if facts.waits and facts.waits.cause else verdicts:
        tail += verdict_from_json(verdict).lines
    tail += [f"branch: {session.branch}"] if session.branch else []
    clone = clone_of(context.root, session.module)
    tail += [f"works in: {clone}"] if clone else []
    tail += specification_line(context.root, store, session)
    if whole:
        tail += [f"decided by a person: {asked} {answer}" for asked, answer in session.dialogue.answers]
        tail += [f"assumed: {line}" for line in session.dialogue.assumptions]
        tail += [f"accepted by a person: {line}" for line in session.dialogue.accepted]
    tail += [f"asked: {sentence}" for sentence in facts.asked]
    tail += facts.standstill_lines
    tail += closing_lines(context, session) if session.finished else []
    tree, room = tree_lines(session.tree, session.plan.selected), max(4, SCREEN - len(head) - len(tail) - 1)
    if not whole and len(tree) > room:
        tree = [line for line, is_open in _open_work(session.tree, session.plan.selected) if is_open]
    if not whole and len(tree) > room:
        tree = [*tree[: room - 1], f"    … {len(tree) - room + 1} more: lopen status {session.module} -v"]
    return [*head, *tree, *tail]


def _open_work(tree: TaskTree, selected: str | None) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the tree, with False for each that belongs to finished work; a component counts its tasks."""
    for component in tree.components:
        marked, *tasks = tree_lines(replace(tree, components=(component,)), selected)
        done = sum(t.state is State.COMPLETE for t in component.tasks)
        yield f"{marked} {done}/{len(tasks)}" if tasks else marked, True
        finished = component.state is State.COMPLETE
        yield from (
            (line, not finished and task.state is not State.COMPLETE)
            for line, task in zip(tasks, component.tasks, strict=True)
        )


def _spent(session: Session, limits: ProjectLimits, *, whole: bool) -> list[str]:
    """Return the session's spending, and its budgets and circuits: `whole` all, else those that are not in order."""
    from lopen.limits.report import budget_lines, circuit_lines

    task, own = session.task, f"session:{session.id}"
    wanted = {f"module:{session.module}", own, f"task:{task.id}" if task else ""}
    budgets = [b for b in limits.budgets if b.budget_id in wanted]
    circuits = [c for c in limits.circuits if c.circuit_id == own]
    told = []
    for budget in budgets:
        if budget.budget_type == "session":
            tokens = f" of {budget.max_tokens:,}" if budget.max_tokens else ""
            cost = cost_text(budget.cost_usd, budget.unpriced_tokens)
            if most := session.limits.max_cost_usd:
                spent, limit = apart(budget.cost_usd, most)
                cost = f"{cost.replace(dollars(budget.cost_usd), spent, 1)} of {limit}"
            told.append(f"spent: {cost}, {budget.tokens_used:,}{tokens} tokens")
    near, now = [b for b in budgets if whole or b.status != "active"], datetime.now(UTC)
    told += budget_lines(near) if near else []
    paused = session.pause is not None and session.pause.kind == "circuit"  # which says the same
    open_ones = [c for c in circuits if whole or (c.state != "closed" and not paused)]
    return [*told, *(line for c in open_ones for line in circuit_lines(c, limits.book, now))]


def tree_lines(tree: TaskTree, selected: str | None) -> list[str]:
    """Return the task tree with marks; an arrow marks the selected component."""
    told = []
    for component in tree.components:
        arrow = ">" if component.id == selected else " "
        told.append(f"{arrow} {MARKS[component.state]} {component.name}")
        told += [
            f"    {MARKS[t.state]} {t.id} {t.name}"
            + (f" (skipped: {t.given_up})" if t.given_up else "")
            + (f" (attempts not accepted: {t.failures})" if t.failures and not t.given_up else "")
            for t in component.tasks
        ]
    return told
