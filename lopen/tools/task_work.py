"""Tools of step 6: task status, checklist, added work, and the verifications."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lopen.core.events import TaskChanged
from lopen.guardrails.guard import one_line
from lopen.judge.judging import BoundaryVerdict
from lopen.tools import calls
from lopen.tools.calls import ToolResult, done, failed
from lopen.tools.planning import task_from, unfit
from lopen.tools.task_completion import TASK_VERDICT, complete_task, false_claim, note_verdict
from lopen.tools.workbench import Workbench
from lopen.verification.runners import shown_output
from lopen.workflow import changes
from lopen.workflow.next_step import Trigger, enter_step, review
from lopen.workflow.session import Session
from lopen.workflow.task_tree import State, Task

MEND = "run_command `{command}` mends what the linter can mend by itself"
STEADY = frozenset({"verify_lint", "verify_build"})  # over the same files these say the same; a test may not
SIGNALLED = 128  # from this exit code on a signal ended the command
LEFT_SHOWN = 20  # files that a verify command left, by name


def update_task_status(bench: Workbench, wanted: calls.UpdateTaskStatus) -> ToolResult:
    """End the task in progress. `complete`: lopen commits; the calls after it in the turn are not run. `failed` gives
    up a task that cannot be done; `note` says why.
    """
    session = bench.session
    task = session.tree.task(wanted.task_id)
    if task is None or session.task is None or task.id != session.task.id:
        said = "is not the task in progress" if task else "is not a task"
        answer = failed(f"{wanted.task_id!r} {said}", _current(bench))
        if wanted.status == "complete":
            return false_claim(bench, f"{wanted.task_id[:80]!r} is claimed complete, which {said}", answer)
        return answer
    match wanted.status:
        case "in_progress":
            return done(task_id=task.id, status="in_progress")
        case "failed":
            note = wanted.note or "the model gave no reason"
            return _fail(bench, session, task.fail(note, counted=bench.evidence.counted))
        case "complete":
            return complete_task(bench, task)


def _current(bench: Workbench) -> str:
    task = bench.session.task
    return f"the task in progress is {task.id} ({task.name})" if task else "no task is in progress"


def _fail(bench: Workbench, session: Session, task: Task) -> ToolResult:
    """Save the session with the failed task; the iteration ends."""
    owner = session.tree.owner(task.id)
    decision = enter_step(changes.with_task(session, task), Trigger.TASK_ITERATION_COMPLETE)
    why = task.reasons[-1][:500]
    told = TaskChanged(task.id, task.name, owner.name if owner else "", State.FAILED.value, why)
    bench.journal.save(decision.session, told, *decision.events)
    return replace(done(task_id=task.id, status="failed"), recorded=True)


def add_task(bench: Workbench, wanted: calls.AddTask) -> ToolResult:
    """Add a task to a component: work the module needs that no task covers."""
    component = bench.session.tree.component(wanted.component)
    if component is None:
        names = ", ".join(c.name for c in bench.session.tree.components)
        return failed(f"there is no component {wanted.component!r}", f"components: {names}")
    if any(t.name.casefold() == wanted.name.casefold() for t in component.tasks):
        return failed(
            f"{component.name} has a task named {wanted.name!r} already", "read_plan shows the tasks"
        )
    task = Task(
        bench.new_task_id(),
        wanted.name,
        f"{wanted.description}\n\nAdded because: {wanted.reason}",
        type=wanted.type or "implement",
        added=True,
    )
    told = TaskChanged(task.id, task.name, component.name, State.PENDING.value, wanted.reason[:500])
    after = changes.add_task(bench.session, component.id, task)
    pause = review(after)
    bench.journal.save(changes.ask_person(after, pause), told)
    return replace(done(task_id=task.id), pause=pause)


def split_task(bench: Workbench, wanted: calls.SplitTask) -> ToolResult:
    """Replace the task in progress by two or more smaller ones, in order, where it is too large for one
    task. The first keeps the id and the work done so far, and goes on in this conversation.
    """
    session, task = bench.session, bench.session.task
    owner = session.tree.owner(wanted.task_id)
    if task is None or owner is None or task.id != wanted.task_id:
        return failed(f"{wanted.task_id!r} is not the task in progress", _current(bench))
    if refusal := unfit(wanted.tasks, owner, [t for t in owner.tasks if t.id != task.id]):
        return refusal
    first, *others = (
        _piece(bench.new_task_id() if n else task.id, p, task) for n, p in enumerate(wanted.tasks)
    )
    first = replace(first, state=task.state, base=task.base, failures=task.failures, reasons=task.reasons)
    # The verdict was on more than the first piece.
    bench.evidence.note(TASK_VERDICT, None)
    told = [
        TaskChanged(t.id, t.name, owner.name, t.state.value, wanted.reason[:500]) for t in (first, *others)
    ]
    after = changes.split_task(session, [first, *others])
    pause = review(after)
    bench.journal.save(changes.ask_person(after, pause), *told)
    recorded = [{"id": t.id, "name": t.name} for t in (first, *others)]
    note = f"go on with {first.id} alone; each of the others gets a conversation of its own"
    return replace(done(tasks=recorded, note=note), pause=pause)


def _piece(task_id: str, wanted: calls.TaskInput, whole: Task) -> Task:
    """Return a piece of a task; values that it does not name come from the whole."""
    piece = task_from(task_id, wanted)
    return replace(
        piece,
        type=wanted.type or whole.type,
        spec_sections=piece.spec_sections or whole.spec_sections,
        files=piece.files or whole.files,
        criteria=piece.criteria or whole.criteria,
        added=whole.added,
    )


def verify_command(tool: str, bench: Workbench, _: calls.NoInput) -> ToolResult:
    """Run a verify command of the approved specification."""
    if repeated := _failed_already(tool, bench):
        return repeated
    result = bench.project.verifier.run(tool)
    if result is None:
        return failed(f"the specification has no {tool.replace('_', '-')} command", "it is not required then")
    bench.evidence.note(tool, result.tree if result.passed else None)
    if not result.passed:
        bench.evidence.failed[tool] = result.tree
    shown: dict[str, Any] = {
        "passed": result.passed,
        "command": result.command,
        "exit_code": result.exit_code,
        "output": shown_output(result.output, passed=result.passed),
    }
    fix = bench.project.verifier.commands.get("verify-fix")
    if hint := result.hint or (
        MEND.format(command=fix)
        if fix and tool == "verify_lint" and not result.passed and not bench.evidence.ran_last(fix)
        else ""
    ):
        shown["hint"] = hint
    if not result.passed and (alone := bench.project.verifier.left_out()):
        shown["not_in_the_clean_room"] = alone
    if result.left.changed:
        shown["put_back"] = list(result.left.changed[:LEFT_SHOWN])
    if result.left.added:
        shown["left_uncommitted"] = list(result.left.added[:LEFT_SHOWN])
    if result.left.locked:
        shown["lock_files_written"] = list(result.left.locked)
    return ToolResult(True, shown)


def _failed_already(tool: str, bench: Workbench) -> ToolResult | None:
    """Return the answer to a repeated check whose failure this conversation has seen on the same tree, else None.

    It runs again if it was stopped, or if another process ran it.
    """
    if tool not in STEADY or tool not in bench.evidence.failed:
        return None
    bench.project.verifier.touch()
    known = bench.project.verifier.fresh(tool)
    if known is None or known.passed or known.hint or known.tree != bench.evidence.failed[tool]:
        return None
    if known.exit_code is None or not 0 < known.exit_code < SIGNALLED:
        return None
    return _repeated(f"{tool} failed with exit code {known.exit_code}", exit_code=known.exit_code)


def _repeated(what: str, **fields: Any) -> ToolResult:
    """Answer in one line; the earlier result stays the one that counts."""
    told = (
        f"nothing changed since {what} in this conversation: mend what that result names, then call it again"
    )
    return ToolResult(True, {"passed": False, **fields, "skipped": True, "error": told})


def verify_task_completion(bench: Workbench, wanted: calls.VerifyTask) -> ToolResult:
    """Have the judge look at the task's change and the verify results; of the last open task also at all that it
    completes, up to the whole module. `note` is shown to the judge as a claim.
    """
    task = bench.session.task
    if task is None or wanted.task_id != task.id:
        return failed(f"{wanted.task_id!r} is not the task in progress", _current(bench))
    note = (wanted.note or "").strip()
    if note.casefold().startswith("assumed:"):
        bench.journal.save(changes.assume(bench.session, one_line(note, 1_000), task=task.id))
        note = ""  # the judge reads it as an assumption
    judged = bench.judge.verdict_on("task", task.id, bench.evidence.builder(note))
    note_verdict(bench, judged)
    answer = ToolResult(True, judged.verdict.to_tool_result(), pause=judged.pause)
    if judged.passed or judged.pause is not None:
        bench.evidence.counted = False
        return answer
    known, digest = bench.evidence.failed, judged.verdict.evidence_hash
    if known.get(TASK_VERDICT) == digest:
        return _repeated(f"{TASK_VERDICT} rejected the work")
    known[TASK_VERDICT] = digest
    if digest == bench.session.limits.rejected or not all(result.passed for result in judged.results):
        return answer
    return _count_rejection(bench, judged, answer)


def _count_rejection(bench: Workbench, judged: BoundaryVerdict, answer: ToolResult) -> ToolResult:
    """Count rejected work whose verify commands pass as a failed attempt; the last allowed one ends the iteration.

    Verify commands that fail are the model's to mend, and the circuits bound them.
    """
    verdict = judged.verdict
    session = changes.count_rejection(bench.session, verdict.summary, verdict.evidence_hash)
    task = session.task
    assert task is not None
    if task.failures >= bench.settings.workflow.failure_threshold:
        _fail(bench, session, task.to(State.FAILED))
        return replace(answer, recorded=True)
    bench.journal.save(session)
    bench.evidence.counted = True
    return answer
