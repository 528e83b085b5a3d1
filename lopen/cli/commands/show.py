"""`lopen show` and `lopen diff`: a task, a verdict, a verification or a call in full, and the change of a task or module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lopen.application.command_context import CommandContext
from lopen.application.event_lines import MARKS
from lopen.cli.command import command
from lopen.cli.parameters import shown, tasks
from lopen.core.errors import ExitCode
from lopen.core.money import cost_text
from lopen.store.audit import CallRecord, VerifyResult
from lopen.workflow.task_tree import State

if TYPE_CHECKING:
    from lopen.application.reports import RecordDetails, TaskDetails

ShownArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK|CRITERION|VERDICT|CALL",
        help="A task's, criterion's or component's id, or verdict-HASH, call-N or verification-N as lopen log -v shows them.",
        autocompletion=shown,
    ),
]
DiffTask = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK|MODULE",
        help="Task or module (default: the latest session's module).",
        autocompletion=tasks,
    ),
]
StatOption = Annotated[bool, typer.Option("--stat", help="Only the files, with their numbers of lines.")]
LINES_OF_OTHERS = 10  # of a verification that is shown among others


@command
def show(context: CommandContext, wanted: ShownArgument) -> ExitCode:
    """Show a task with its criteria, diff, verifications, verdict and cost; or a criterion, verdict, call or verification."""
    from lopen.application.dossier import proof_of
    from lopen.application.open_store import open_store
    from lopen.application.reports import TaskDetails, details
    from lopen.cli.commands.report import proof_lines

    store = open_store(context)
    for session, proof in proof_of(store, wanted):
        context.emit("criterion", session=session.id, **proof.to_json())
        context.say("\n".join([f"criterion of {session.module}, session {session.id}:", *proof_lines(proof)]))
        return ExitCode.OK
    found = details(context, store, wanted)
    fields = found.fields()
    event = "task" if isinstance(found, TaskDetails) else found.kind
    context.emit(event, session=fields.pop("session"), **fields)
    if not context.json:
        lines = _task_lines(found) if isinstance(found, TaskDetails) else _record_lines(found)
        context.say("\n".join(lines))
        if isinstance(found, TaskDetails) and found.diff:
            context.say("\n" + found.diff.rstrip("\n"), quoted=True)
    return ExitCode.OK


@command
def diff(context: CommandContext, task: DiffTask = None, stat: StatOption = False) -> ExitCode:
    """Show what a task or module changed; without a name, what the latest session has changed since it began."""
    from lopen.application.open_store import newest_session, one_session, open_store
    from lopen.application.reports import find_task, gone_branch, module_diff, task_diff

    store = open_store(context)
    session = one_session(context, store, None) if task is None else newest_session(store, task)
    if session is not None:
        if gone := gone_branch(context, session):
            context.warn(f"{gone[0]}; to make it again: {gone[1]}")
        text = module_diff(context, session)
    else:
        session, found = find_task(context, store, task or "")
        text = task_diff(context, session, found)
    context.emit("diff", session=session.id, task=task, diff=text)
    if not context.json:
        shown = "\n".join(stat_lines(text)) if stat else text.rstrip("\n")
        context.say(shown or "no changes", quoted=True)
    return ExitCode.OK


def stat_lines(diff: str) -> Iterator[str]:
    """Yield each file of a diff with the number of lines that are new and that are gone."""
    from lopen.judge.diff_files import split_diff

    for part in split_diff(diff):
        marks = Counter(line[:1] for line in part.text.partition("\n@@")[2].split("\n")[1:])
        yield f"{part.path}: +{marks['+']} -{marks['-']}"


def _task_lines(found: TaskDetails) -> Iterator[str]:
    task = found.task
    state = f"skipped: {task.given_up}" if task.given_up else task.state.value.replace("_", " ")
    yield f"{task.id} {task.name} ({found.component} of {found.module}): {state}"
    if task.aside:
        yield f"its uncommitted work is in {task.aside}; to bring it back: lopen revert {found.module} --undo"
    if task.failures:
        yield f"attempts not accepted: {task.failures} ({'; '.join(dict.fromkeys(task.reasons))})"
    yield from (f"  {line}" for line in task.description.splitlines())
    if task.subtasks:
        yield "subtasks:"
        marks = {True: MARKS[State.COMPLETE], False: MARKS[State.PENDING]}
        yield from (f"  {marks[s.done]} {s.name}" for s in task.subtasks)
    if found.criteria:
        yield "criteria:"
    for criterion in found.criteria:
        told = f"  {criterion.id} {criterion.state}: {criterion.text}"
        yield f"{told} ({criterion.named})" if criterion.named else told
    for verdict in found.verdicts:
        yield from verdict_lines(verdict)
    yield from _among_others(found.verifications)
    cost = cost_text(found.cost_usd, found.unpriced_tokens)
    yield f"cost: {found.tokens:,} tokens, {cost} (judging is counted for the session)"
    yield f"commit: {task.commit}" if task.commit else "not committed"
    if found.diff_unknown:
        yield f"the diff cannot be read: {found.diff_unknown}"


def verdict_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Return a stored verdict as lines for a person."""
    from lopen.application.reports import CRITERION_WORDS, UNACCEPTED, verdict_name
    from lopen.judge.verdict import accepted, outcome, verdict_from_json

    given = verdict_from_json(verdict)
    yield (
        f"{verdict_name(verdict)} on {verdict['scope']} {verdict['subject']}: {outcome(given)}"
        f" ({verdict['confidence']} confidence): {verdict['summary']}"
    )
    yield from (f"  {finding.shown}" for finding in given.beside_summary.findings)
    words = CRITERION_WORDS if accepted(given) else CRITERION_WORDS | {"yes": UNACCEPTED}
    for criterion in verdict.get("criteria", ()):
        yield f"  {criterion['id']} {words[criterion['holds']]}: {criterion['evidence']}".rstrip(": ")
    for question in verdict.get("questions", ()):
        place = f"{question['path']}: " if question.get("path") else ""
        yield f"  {question['id']} {place}{question['text']}"
        yield f"    {question['answer'].replace('_', ' ')}: {question['because']}".rstrip(": ")


def _among_others(records: Sequence[VerifyResult]) -> Iterator[str]:
    """Return the verifications; the last of each command with the end of its output, and the checks of mutants and
    earlier tests whole.
    """
    latest = {record.tool: record.number for record in records}
    for record in records:
        if record.number != latest[record.tool]:
            yield from _verification_lines(record, 0)
        elif record.found is not None:
            yield from _verification_lines(record, None)
        else:
            yield from _verification_lines(record, 0 if record.passed else LINES_OF_OTHERS)


def _verification_lines(record: VerifyResult, most: int | None) -> list[str]:
    head = f"{record.name} {record.tool} `{record.command}`: {record.result}, {record.seconds:.1f} s"
    # The head has the first line of a check.
    lines = record.output.rstrip("\n").splitlines()[record.found is not None :]
    left = 0 if most is None else max(0, len(lines) - most)
    more = [f"  … {left} lines before: lopen show {record.name}"] if left and most else []
    hint = [f"  {record.hint}"] if record.hint and most != 0 else []
    return [head, *hint, *more, *(f"  | {line}" for line in lines[left:])]


def _record_lines(found: RecordDetails) -> Iterator[str]:
    match found.record:
        case VerifyResult():
            yield from _verification_lines(found.record, None)
        case CallRecord():
            yield from _call_lines(found.name, found.record)
            for record in found.verifications:
                yield from _verification_lines(record, None)
        case _:
            yield from verdict_lines(found.record)
            yield from _among_others(found.verifications)


def _call_lines(name: str, call: CallRecord) -> Iterator[str]:
    took = (
        "still running, or cut off" if call.outcome is None else f"{call.outcome}, {call.seconds or 0:.1f} s"
    )
    task = f" for {call.task}" if call.task else ""
    yield f"{name} {call.tool}{task} in iteration {call.iteration}, turn {call.turn}: {took}"
    yield f"  at {call.started_at:%Y-%m-%d %H:%M:%S} UTC with {call.arguments}"
    if call.error:
        yield f"  {call.error}"
