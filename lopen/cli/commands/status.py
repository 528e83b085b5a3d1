"""`lopen status`: show tasks, step, budgets, circuits, last verdicts, and what waits for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError
from lopen.cli.command import command
from lopen.cli.parameters import UnfinishedModule
from lopen.cli.rendering.lines import MARKS, step_title
from lopen.workflow.next_step import displayed_step, standing_work
from lopen.workflow.pauses import FAILURES_TO_ASK
from lopen.workflow.steps import phase_of
from lopen.workflow.task_tree import TaskTree, progress

if TYPE_CHECKING:
    from lopen.application.limits import ProjectLimits
    from lopen.limits.circuits.circuit import CircuitState
    from lopen.settings.schema import Settings
    from lopen.storage.sessions import SessionStore
    from lopen.workflow.session import Session


@command
def status(context: CommandContext, module: UnfinishedModule = None) -> ExitCode:
    """Show the state of a module's session, and what waits for you."""
    from lopen.application.limits import looked_up
    from lopen.application.open_store import open_store, store_of
    from lopen.application.servers import running_servers
    from lopen.application.session_report import session_object
    from lopen.application.waiting import present_state, standstill
    from lopen.documents.modules import find_modules, require_known
    from lopen.storage.audit import last_failure

    store = open_store(context)
    if module is not None:
        store = store_of(store, module)
    sessions = shown_sessions(store, module)
    if not sessions:
        if module is not None:
            require_known(module, find_modules(context.root))
            raise LopenError(f"{module} has no session yet", hint=f"to start one: lopen run {module}")
        context.say("no sessions yet; to start one: lopen run MODULE")
    for server in running_servers(context.root):
        context.say(f"server: {server.url} (to open it: lopen serve --link --open)")
        context.emit("server", url=server.url, pid=server.pid)
    for session in sessions:
        limits = looked_up(context, store.database)
        counted = [asdict(c) for c in session_counters(context, store, session, limits)]
        still = standstill(context.root, store, session) if session.status == "failed" else None
        failed = None if session.finished else last_failure(store.database, session.id)
        context.emit(
            "status",
            **session_object(store, session) | present_state(context.root, store, session),
            failure=None if still is None else asdict(still),
            failed_verification=None if failed is None else asdict(failed),
            counters=counted,
            limits_unknown=limits.unknown or None,
        )
        context.say("\n".join(lines(context, store, session, limits)))
    return ExitCode.OK


def shown_sessions(store: SessionStore, module: str | None) -> list[Session]:
    """Return the module's newest session; without a module, all unfinished ones, else the newest."""
    if module is not None:
        found = store.latest(module=module)
        return [found] if found else []
    unfinished = list(store.readable(store.ids(unfinished=True)))
    newest = store.latest()
    return unfinished or ([newest] if newest else [])


def lines(context: CommandContext, store: SessionStore, session: Session, limits: ProjectLimits) -> list[str]:
    """Return the status of a session as lines for a person."""
    from lopen.application.session_report import held_criteria
    from lopen.application.waiting import shown_status, standstill_lines

    done, verdicts, standing = progress(session.tree), store.verdicts(session.id), standing_work(session)
    criteria = len(held_criteria(session, verdicts))
    told = [f"{session.module}: {shown_status(context.root, session)} (session {session.id})"]
    if not session.finished:
        step = displayed_step(session)
        told.append(f"{step_title(step)} ({phase_of(step).replace('_', ' ')})")
    if done.components:
        told.append(
            f"criteria {criteria}/{len(session.criteria)} · components {done.components_done}/{done.components}"
            f" · tasks {done.tasks_done}/{done.tasks}"
        )
    told += tree_lines(session.tree, session.selected)
    told += limits_lines(context, store, session, limits)
    for verdict in [v for v in verdicts if not v["passed"] or v["subject"] in standing][-3:]:
        result = "passed" if verdict["passed"] else "failed"
        told.append(
            f"verdict on {verdict['scope']} {verdict['subject']}: {result} ({verdict['confidence']} confidence)"
        )
    if session.branch:
        told.append(f"branch: {session.branch}")
    told += work_tree_lines(context, session)
    told += [f"decided by a person: {asked} {answer}" for asked, answer in session.answers]
    told += [f"assumed: {line}" for line in session.assumptions]
    told += [f"accepted by a person: {line}" for line in session.accepted]
    return [*told, *standstill_lines(context.root, store, session)]


def work_tree_lines(context: CommandContext, session: Session) -> list[str]:
    """Name the session's work tree if it does not work in the person's checkout."""
    if session.finished or context.load().settings.git.isolation != "worktree":
        return []
    from lopen.application.work_trees import trees_folder  # imports git

    path = trees_folder(context.root) / session.module
    return [f"works in: {path}"] if path.is_dir() else []


def tree_lines(tree: TaskTree, selected: str | None) -> list[str]:
    """Return the task tree with marks; an arrow marks the selected component."""
    told = []
    for component in tree.components:
        arrow = ">" if component.id == selected else " "
        told.append(f"{arrow} {MARKS[component.state]} {component.name}")
        told += [
            f"    {MARKS[t.state]} {t.id} {t.name}"
            + (f" (skipped: {t.given_up})" if t.given_up else "")
            + (f" (failed {t.failures} in a row)" if t.failures and not t.given_up else "")
            for t in component.tasks
        ]
    return told


def limits_lines(
    context: CommandContext, store: SessionStore, session: Session, limits: ProjectLimits
) -> list[str]:
    """Return budgets, circuits and counters against their limits."""
    from lopen.limits.report import budget_lines, circuit_lines
    from lopen.retention.policy import retention_policy
    from lopen.retention.report import memory_line

    task = session.task
    wanted = {f"module:{session.module}", f"session:{session.id}", f"task:{task.id}" if task else ""}
    budgets = [b for b in limits.budgets if b.budget_id in wanted]
    circuits = [c for c in limits.circuits if c.circuit_id == f"session:{session.id}"]
    told = [*limits.lines, *(budget_lines(budgets) if budgets else [])]
    counted = [f"  {line}" for line in session_counters(context, store, session, limits)]
    memory = memory_line(context.root / ".lopen", retention_policy(context.load().settings))
    return [
        *told,
        *(line for c in circuits for line in circuit_lines(c, datetime.now(UTC))),
        memory,
        *counted,
    ]


def session_counters(
    context: CommandContext, store: SessionStore, session: Session, limits: ProjectLimits
) -> list[Counter]:
    """Return the counters of the guardrails against their limits."""
    circuit = next((c for c in limits.circuits if c.circuit_id == f"session:{session.id}"), None)
    return counters(session, context.load().settings, circuit)


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter and the limit at which lopen acts; `rung` is its recorded escalation."""

    name: str
    used: int
    limit: int
    rung: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.used}/{self.limit}" + (f" ({self.rung})" if self.rung else "")


def counters(session: Session, settings: Settings, circuit: CircuitState | None) -> list[Counter]:
    """Return every counter; failures are counted per task."""
    confirmed = session.confirmed
    found = [
        Counter("iterations", session.iterations, session.iterations_granted),
        Counter("questions asked", session.clarifications, settings.workflow.max_clarifications),
        *_failures(session, settings.workflow.failure_threshold),
        Counter(
            "failed boundaries in a row",
            session.failed_boundaries,
            confirmed.get("boundary", 0) + FAILURES_TO_ASK,
        ),
        Counter(
            "added tasks",
            sum(t.added for t in session.tree.tasks),
            max(session.planned_tasks, 1) + confirmed.get("added", 0),
        ),
        Counter(
            "files edited since the last test run",
            len(circuit.calls.edited) if circuit else 0,
            settings.tool_discipline.max_files_edited,
        ),
    ]
    if circuit is not None:
        found += [
            Counter(
                "calls since the last passing verify", circuit.calls.iteration_count, circuit.max_iterations
            ),
            Counter(
                "identical calls in a row", circuit.calls.duplicate_call_count, circuit.duplicate_threshold
            ),
        ]
    return found


def _failures(session: Session, threshold: int) -> list[Counter]:
    counts = {t.id: t.failures for t in session.tree.tasks if t.failures and not t.given_up}
    if session.step_failures:
        counts[session.step.value] = session.step_failures
    return [
        Counter(
            f"failures in a row of {subject}",
            failures,
            max(threshold, session.confirmed.get(subject, 0)),
            session.pressure.get(subject, ""),
        )
        for subject, failures in counts.items()
    ]
